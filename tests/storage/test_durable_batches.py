"""What it costs to keep a batch, in calls, statements and pages: a batch on disk is one in memory and little else.

The limits keep what was won. They are some 5 % above what was counted with Python 3.11, and not a matter of the load.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.arrange.memory import Memory
from halfjoin.engine.storage import encoding, journal
from halfjoin.engine.storage.encoding import decode, encode, layout_of
from halfjoin.engine.storage.journal import Answered, Journal, New
from halfjoin.engine.storage.ownership import FILE
from tests.support.any_updates import SEEDS, some_columns, some_updates
from tests.support.counting import calls

TABLE = "CREATE TABLE t (k bigint PRIMARY KEY, v bigint, name text)"
MORE_CALLS = 127  # four of them find out whether the folder and its lock are still there
PAGES = 1  # of a batch of one row: the end of the table of lines


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[hj.Engine]:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(TABLE)
        for number in range(3):
            engine.apply(batch(number), time=number)
        yield engine


def batch(number: int, rows: int = 1) -> dict[str, pa.Table]:
    """New rows of the table."""
    keys = range(number * rows, (number + 1) * rows)
    return {"t": pa.table({"k": [*keys], "v": [key % 7 for key in keys], "name": [f"name {key % 9}" for key in keys]})}


def kept_in(engine: hj.Engine) -> Journal:
    """The engine's journal."""
    return engine._store._journal  # type: ignore[attr-defined, no-any-return]


def pages(folder: Path, step: Callable[[], object]) -> int:
    """The pages that a step writes into the write-ahead file. It begins anew after a checkpoint of all of it."""
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as other:
        def checkpoint() -> tuple[int, int, int]:
            return other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()  # type: ignore[no-any-return]

        assert checkpoint()[1] == checkpoint()[2]
        step()
        return checkpoint()[1]


def test_a_batch_makes_few_calls_more_than_in_memory(engine: hj.Engine) -> None:
    counted: dict[bool, list[int]] = {False: [], True: []}
    with hj.Engine(clock="own") as memory:
        memory.execute(TABLE)
        for number in range(3, 24):
            for one in (memory, engine):
                counted[one is engine].append(calls(partial(one.apply, batch(number), time=number)))
    plain, kept = (sorted(found)[len(found) // 2] for found in counted.values())
    assert kept - plain <= MORE_CALLS


def test_a_batch_is_four_statements(engine: hj.Engine) -> None:
    """BEGIN, the updates, the last line, COMMIT."""
    found: list[str] = []
    kept_in(engine)._db.set_trace_callback(found.append)
    for number in range(3, 103):
        engine.apply(batch(number), time=number)
    assert len(found) == 4 * 100


def test_a_batch_writes_one_page(engine: hj.Engine, tmp_path: Path) -> None:
    found = [pages(tmp_path / "w", partial(engine.apply, batch(at), time=at)) for at in range(3, 43)]
    assert sorted(found)[len(found) // 2] <= PAGES
    assert sum(found) < 3 * len(found)


def test_closings_are_remembered_while_lines_go(engine: hj.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "CLOSINGS", 20)
    monkeypatch.setattr(journal, "_FEW_LINES", 7)
    for at in range(3, 60):
        engine.apply(batch(at), time=at)
    wanted = [one.low for one in kept_in(engine).closings()]
    assert kept_in(engine).pending() == engine._store._upkeep.pending - (20 - 2) * 64  # type: ignore[attr-defined]  # two define
    engine.flush()
    assert [one.low for one in kept_in(engine).closings()] == wanted == [*range(59, 39, -1)]
    assert kept_in(engine)._db.execute("SELECT count(*) FROM line").fetchone() == (20,)
    assert kept_in(engine).pending() == 0


def test_the_next_entry_of_one_that_failed_is_kept(tmp_path: Path) -> None:
    with closing(Journal(tmp_path)) as made:
        answered = Answered("twice", b"", 1, 0, 1, "local", "", 0.0)
        made.append({}, 1, answered, None, {})
        with pytest.raises(hj.StorageError, match="UNIQUE"):
            made.append({}, 2, answered, None, {})
        with pytest.raises(hj.StorageError, match="UNIQUE"), made.together():
            made.append({}, 3, None, None, {})
            made.append({}, 4, answered, None, {})
        assert made.upper == 1
        made.append({}, 5, None, None, {})
        with closing(Journal(tmp_path, read_only=True)) as other:
            assert other.entry == made.entry == made.begun and other.upper == 5


def test_few_pages_wait_for_a_checkpoint(engine: hj.Engine, tmp_path: Path) -> None:
    for number in range(3, 403):
        engine.advance(number + 1)
    assert (tmp_path / "w" / f"{FILE}-wal").stat().st_size < 100 * 4_200


def test_rows_are_compressed_where_this_saves_pages(engine: hj.Engine, tmp_path: Path) -> None:
    """500 rows: 24 KB as they are."""
    assert pages(tmp_path / "w", partial(engine.apply, batch(1, 500), time=9)) <= PAGES + 5


def test_what_is_flushed_is_not_written_again(tmp_path: Path) -> None:
    """Also where SQLite overwrites by default what is deleted: batches would wait for it."""
    data = encoding.Piece(1, 5, bytes(1 << 20))
    with closing(Journal(tmp_path)) as made:
        made.define("", 0, [New("tables", "t", 0, b"", [data])], (), (), {}, (), (), ())
        found = pages(tmp_path, lambda: (made.flushed(1, 1, 0, 1, 5, {}), made.trim()))
        assert made.waiting() == {} and made.pieces(1, 0) == []
    assert found < 20


def test_parts_are_counted_where_the_budget_is_near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts, used = list[int](), Memory.used

    def counted(memory: Memory) -> int:
        counts.append(used(memory))
        return counts[-1]

    monkeypatch.setattr(Memory, "used", counted)
    with hj.Engine(tmp_path / "w", clock="own", memory="1MB") as engine:
        engine.execute(TABLE)
        engine.apply(batch(0), time=0)
        counts.clear()
        for number in range(1, 50):
            engine.apply(batch(number), time=number)
        assert len(counts) <= 1
        for number in range(50, 100):
            engine.apply(batch(number, 1_000), time=number)
            assert used(engine._memory) <= 1_000_000
        assert len(counts) > 5
        assert engine.read("t").num_rows == 50 + 50_000


@given(SEEDS, st.sampled_from([1, 3, 700]))
def test_an_entry_is_the_stream_of_a_writer_of_arrow(seed: int, length: int) -> None:
    random = np.random.default_rng(seed)
    rows = some_updates(random, some_columns(random, length), length)
    assume(rows.diff.dtype == np.int64)
    schema = {name: column.type for name, column in rows.columns.items()}
    (piece,) = encode(rows)
    table, sink = rows.table(changes=True), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    plain = sink.getvalue().to_pybytes()
    assert piece.data == plain if len(plain) < 2_000 else len(piece.data) < len(plain)
    layout = layout_of(schema)
    (bare,), (other,) = encode(rows, layout), encode(rows, layout.append(pa.field("more", pa.int8())))
    assert len(bare.data) < len(piece.data) == len(other.data)
    for found in decode([piece.data], schema, "here") + decode([bare.data], schema, "here", layout.serialize()):
        assert repr(found.table(changes=True).to_pylist()) == repr(table.to_pylist())
    with pytest.raises(hj.StorageError, match="here cannot be read"):
        decode([bare.data], schema, "here")

"""Collections larger than the memory budget: the view law with all rows on disk, and how much memory is used."""

from __future__ import annotations

import gc
import json
import random
import re
import shutil
import sqlite3
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from threading import Event, current_thread
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings

import halfjoin as hj
from halfjoin.engine.arrange import collection as collections
from halfjoin.engine.storage import delta, filing, merging, parquet, parquet_reader, stored_run
from halfjoin.engine.storage.arranging import Arrangement
from halfjoin.engine.updates import limits
from tests.laws.test_view_law import programs
from tests.oracle.replay import Replay
from tests.oracle.rows import Bag, bag
from tests.oracle.streams import Program, Step
from tests.support.seeds import some

BUDGETS = (1, 1, 500, 3_000, None)  # bytes: nothing fits, nothing for long, some, everything


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the limits small: few rows fill several row groups, files and ranges, and are left in files at first."""
    _set(monkeypatch, ((parquet, "GROUP_ROWS", 8), (parquet, "FILE_ROWS", 100), (stored_run, "SEARCHED_ROWS", 1),
                       (merging, "RANGE_BYTES", 4_000), (collections, "LOOKUP_ROWS", 1),
                       (collections, "BEHIND", 20)))  # fmt: skip


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the limits tiny: two rows are many, and there are several parts of each kind."""
    _set(monkeypatch, (
        (parquet, "GROUP_ROWS", 2), (parquet, "FILE_ROWS", 5), (limits, "READ_ROWS", 3),
        (merging, "RANGE_BYTES", 100), (filing, "BULK_ROWS", 4),
        (limits, "MORSEL_ROWS", 3), (limits, "PIECE_ROWS", 3), (delta, "GROWTH", 2),
    ))  # fmt: skip


def _set(monkeypatch: pytest.MonkeyPatch, values: Iterable[tuple[object, str, int]]) -> None:
    for module, name, value in values:
        monkeypatch.setattr(module, name, value)


class TightReplay(Replay):
    """A replay with a memory budget. Between two steps it may flush, compact, evict or reopen."""

    def __init__(self, retain: int, folder: Path, seed: int) -> None:
        self._folder, self._random = folder, random.Random(seed)
        super().__init__(retain, folder)
        self._reopen()

    def _reopen(self) -> None:
        self.engine.close()
        self.engine = hj.Engine(self._folder, memory=self._random.choice(BUDGETS))

    def step(self, step: Step) -> None:
        for _ in range(self._random.choice((0, 1, 1, 2))):
            match self._random.choice(("open", "flush", "flush", "compact", "evict", "evict")):
                case "open":
                    self._reopen()
                case "flush":
                    self.engine.flush()
                case "compact":
                    self.engine.compact()
                case "evict":
                    for collection in self.engine._state.collections():
                        collection.unload()
        super().step(step)
        held = self.engine._memory
        assert held.limit is None or held.used() <= held.limit


@settings(max_examples=max(some(10), settings().max_examples // 2))
@given(programs())
@pytest.mark.usefixtures("tiny")
def test_view_law_with_everything_on_disk(program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        replay = TightReplay(program.retain, Path(folder) / "w", seed=len(program.steps))
        try:
            for step in program.steps:
                replay.step(step)
                replay.check_now()
            replay.check_all()
            replay.engine.flush()
            with hj.Engine(Path(folder) / "w", read_only=True, memory=1) as reader:
                for name in replay.watched:
                    there, here = (one.read(name, multiplicity=True) for one in (reader, replay.engine))
                    assert bag(there) == bag(here)
        finally:
            replay.engine.close()


TABLES = """
CREATE TABLE orders (id bigint, line integer, buyer text NOT NULL, PRIMARY KEY (id, line));
CREATE TABLE buyers (name text PRIMARY KEY, region integer);
"""
JOIN = "SELECT o.id, o.line, b.region FROM orders o, buyers b WHERE o.buyer = b.name"


def _orders(first: int, last: int) -> pa.Table:
    ids = list(range(first, last))
    buyers = [f"buyer {n * 7 % 30}" for n in ids]
    return pa.table({"id": pa.array(ids), "line": pa.array([n % 3 for n in ids], pa.int32()), "buyer": buyers})


def _buyers(first: int, last: int) -> pa.Table:
    return pa.table({"name": [f"buyer {n}" for n in range(first, last)],
                     "region": pa.array([n % 4 for n in range(first, last)], pa.int32())})


def _joined(orders: range, buyers: range) -> Bag:
    rows = ((n, n % 3, n * 7 % 30 % 4) for n in orders if n * 7 % 30 in buyers)
    return Counter(rows)


def _made(folder: Path, memory: int = 1) -> hj.Engine:
    """A warehouse with all rows on disk, and with arrangements by text."""
    engine = hj.Engine(folder, memory=memory)
    engine.execute(TABLES)
    engine.apply({"orders": _orders(0, 60), "buyers": _buyers(0, 20)}, time=1)
    engine.execute(f"CREATE MATERIALIZED VIEW joined AS {JOIN}")
    engine.apply({"buyers": _buyers(20, 25)}, time=2)
    engine.flush()
    return engine


def _arrangements(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("arrangements/*/*") if path.is_dir())


def _stored(engine: hj.Engine) -> set[str]:
    """The arrangements that have files, after all collections are opened."""
    for collection in engine._state.collections():
        assert collection.runs is not None
    return {one.name for one in engine.stats().arrangements if one.files}


def _check(engine: hj.Engine, time: int) -> None:
    """Change both sides at a time from 3 on, and check that the join finds the rows on disk."""
    engine.apply({"orders": _orders(57 + time, 58 + time), "buyers": _buyers(22 + time, 23 + time)}, time=time)
    assert bag(engine.read("joined")) == _joined(range(58 + time), range(23 + time))


def test_what_is_held_stays_within_the_budget(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", memory=4_000) as engine:
        engine.execute(TABLES)
        engine.execute(f"CREATE MATERIALIZED VIEW joined AS {JOIN}")
        used = []
        for number in range(20):
            engine.apply({"orders": _orders(number * 10, number * 10 + 10), "buyers": _buyers(number, number + 1)})
            stats = engine.stats()
            used.append(stats.memory)
            assert stats.memory == sum(one.row_bytes + one.index_bytes for one in stats.collections)
            assert stats.memory <= 4_000 == stats.budget
        assert max(used) > 1_000
        assert sum(one.files for one in stats.collections) > 0
        assert bag(engine.read("joined")) == _joined(range(200), range(20))


def test_nothing_keeps_what_is_unloaded(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY)")
        for k in range(3):
            engine.apply({"t": [{"k": k}]})
        engine.compact()
        table = engine._state.tables["t"]
        (run,) = table.runs
        engine.apply({})
        held = weakref.ref(next(iter(run.pieces())).diff)
        del run
        table.unload()
        gc.collect()
        assert held() is None
        assert engine.read("t").num_rows == 3


def test_a_collection_that_fits_again_is_in_memory_again(tmp_path: Path) -> None:
    _made(tmp_path / "w").close()
    with hj.Engine(tmp_path / "w", memory="1GB") as engine:
        _check(engine, 3)
        assert all(not one.files for one in engine.stats().collections)
        engine.flush()
    assert not _arrangements(tmp_path / "w")


def test_no_batch_waits_for_an_arrangement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _made(tmp_path / "w", memory=1 << 30) as engine:
        engine.apply({"orders": _orders(60, 3000)}, time=3)
    assert not _arrangements(tmp_path / "w")
    makers, extend, go = list[str](), Arrangement.extend, Event()

    def counted(*arguments: Any) -> int | None:
        makers.append(current_thread().name)
        assert go.wait(60)
        return extend(*arguments)

    def check(time: int) -> None:
        engine.apply({"buyers": _buyers(21 + time, 22 + time)}, time=time)
        assert bag(engine.read("joined")) == _joined(range(3000), range(22 + time))

    monkeypatch.setattr(Arrangement, "extend", counted)
    with hj.Engine(tmp_path / "w", memory=100_000) as engine:  # for some batches, but not for the orders
        store: Any = engine._store
        for time in (4, 5):
            check(time)
        assert store._flusher.busy
        go.set()
        store._flusher.wait()
        for time in (6, 7):
            check(time)
        assert makers == ["halfjoin-flush"]
        assert engine._state.collection("orders").held[0].arranged  # type: ignore[attr-defined]


def test_an_arrangement_on_disk_lives_as_long_as_its_users(tmp_path: Path) -> None:
    with _made(tmp_path / "w") as engine:
        # orders(id, line) needs none: the table's own files are sorted by it.
        assert _stored(engine) == {"orders(buyer)", "buyers(name)"}
        before = len(_arrangements(tmp_path / "w"))
        engine.execute("DROP MATERIALIZED VIEW joined")
        engine.flush()
        assert len(_arrangements(tmp_path / "w")) == before - 1
        assert _stored(engine) == {"buyers(name)"}  # the primary key's


TAGGED = """
CREATE TABLE posts (id bigint PRIMARY KEY, tags bigint[]);
CREATE TABLE topics (tag bigint, topic text);
CREATE MATERIALIZED VIEW found AS
    SELECT p.id, t.topic FROM posts p, unnest(p.tags) AS u (tag), topics t WHERE u.tag = t.tag;
"""
BY_TAG = "posts(unnest(tags))"


def _posts(first: int, last: int, most: int = 4) -> list[dict[str, object]]:
    """Some tags come twice, or are NULL; some posts have none."""
    return [{"id": n, "tags": [*(n * i % 11 for i in range(n % most)), *([n % 7, n % 7, None] if n % 3 else [])]}
            for n in range(first, last)]  # fmt: skip


def _topics(*tags: int) -> pa.Table:
    return pa.table({"tag": pa.array(tags, pa.int64()), "topic": [f"topic {n}" for n in tags]})


def _found(posts: Iterable[dict[str, object]], *tags: int) -> Bag:
    pairs = [(post["id"], tag) for post in posts for tag in post["tags"]]  # type: ignore[attr-defined]
    return Counter((number, f"topic {tag}") for number, tag in pairs if tag in tags)


@pytest.mark.usefixtures("tiny")
def test_keys_that_a_table_function_makes_are_arranged_on_disk(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        engine.execute(TAGGED)
        engine.apply({"posts": _posts(0, 60), "topics": _topics(1, 2)}, time=1)
        engine.flush()
        assert BY_TAG in _stored(engine)
        engine.apply({"topics": _topics(3, 4, 5)}, time=2)  # a post may have several of them
        assert bag(engine.read("found")) == _found(_posts(0, 60), 1, 2, 3, 4, 5)
        engine.apply({"posts": hj.deletes(_posts(20, 30))}, time=3)
        engine.compact()
        engine.apply({"topics": _topics(0, 6), "posts": _posts(60, 62)}, time=4)
        left = [*_posts(0, 20), *_posts(30, 62)]
        assert bag(engine.read("found")) == _found(left, *range(7))
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        engine.apply({"topics": _topics(7)}, time=5)
        assert bag(engine.read("found")) == _found(left, *range(8))
        assert BY_TAG in _stored(engine)


def test_keys_with_many_entries_a_row_stay_off_disk(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        engine.execute(TAGGED)
        posts = [{"id": n, "tags": list(range(n, n + 40))} for n in range(50)]
        engine.apply({"posts": posts}, time=1)
        engine.flush()
        engine.apply({"topics": _topics(3, 40)}, time=2)
        assert bag(engine.read("found")) == _found(posts, 3, 40)
        assert BY_TAG not in _stored(engine)


def test_keys_of_users_functions_stay_off_disk(tmp_path: Path) -> None:
    def times(factor: int) -> Any:
        return lambda batch: pa.record_batch(
            {"__row": pa.array(range(len(batch))), "y": pc.multiply(batch.column(0), factor)}
        )

    def opened() -> hj.Engine:
        return hj.Engine(tmp_path / "w", memory=1)

    with opened() as engine:
        engine.register_table_function("scaled", times(1), returns={"y": "bigint"}, version="1")
        engine.execute(
            "CREATE TABLE a (x bigint); CREATE TABLE b (y bigint); CREATE MATERIALIZED VIEW v AS "
            "SELECT a.x FROM a, scaled(a.x) AS s (y), b WHERE s.y = b.y"
        )
        engine.apply({"a": [{"x": n} for n in range(40)]}, time=1)
        engine.flush()
    with opened() as engine:  # what a copy in files would not know of
        engine.register_table_function("scaled", times(2), returns={"y": "bigint"}, version="1")
        engine.apply({"b": [{"y": 6}]}, time=2)
        assert engine.read("v").to_pylist() == [{"x": 3}]
        assert _stored(engine) == set()


def test_what_is_on_disk_is_explained(tmp_path: Path) -> None:
    with _made(tmp_path / "w") as engine:
        _stored(engine)
        assert re.search(r"^on disk: orders \(\d+ files, 0.0 MB\), buyers \(", engine.explain("joined"), re.MULTILINE)
    with hj.Engine(tmp_path / "w", memory="1GB") as engine:
        _stored(engine)
        assert "on disk" not in engine.explain("joined")


def test_more_views_over_the_same_tables_keep_no_more_on_disk(tmp_path: Path) -> None:
    def size() -> int:
        engine.compact()
        assert _stored(engine) == {"orders(buyer)", "buyers(name)"}
        return sum(one.file_bytes for one in engine.stats().collections if one.kind == "table")

    with _made(tmp_path / "w") as engine:
        before, arrangements = size(), _arrangements(tmp_path / "w")
        for number in range(9):
            engine.execute(f"CREATE MATERIALIZED VIEW more{number} AS {JOIN} AND o.line < {number}")
        assert (size(), _arrangements(tmp_path / "w")) == (before, arrangements)


def test_lookups_read_a_few_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _made(tmp_path / "w") as engine:
        engine.apply({"orders": _orders(100, 400)}, time=3)
        engine.compact()
        engine.read("orders")
        groups: set[tuple[int, int]] = set()
        columns = parquet_reader.OpenFile.columns
        monkeypatch.setattr(parquet_reader.OpenFile, "columns", lambda self, numbers, schema: (
            groups.update((id(self), int(number)) for number in numbers), columns(self, numbers, schema))[1])
        engine.apply({"orders": _orders(70, 71)}, time=4)  # the primary key, and buyers by name
        assert 1 <= len(groups) <= 6
        groups.clear()
        engine.apply({"buyers": _buyers(28, 29)}, time=5)  # orders by buyer: a tenth of 360 rows, two in a row group
        assert 1 <= len(groups) <= 40


@pytest.mark.parametrize("harm", ["missing folder", "missing file", "torn file", "torn log", "later version"])
def test_a_damaged_arrangement_is_made_anew(tmp_path: Path, harm: str) -> None:
    folder = tmp_path / "w"
    _made(folder).close()
    for path in _arrangements(folder):
        files, logs = sorted(path.glob("*.parquet")), sorted((path / "_delta_log").glob("*.json"))
        match harm:
            case "missing folder":
                shutil.rmtree(path)
            case "missing file":
                files[0].unlink()
            case "torn file":
                files[0].write_bytes(files[0].read_bytes()[:-30])
            case "torn log":
                logs[-1].write_bytes(b"{")
            case "later version":  # a flush that was cut short after the arrangement's commit
                last = int(logs[-1].stem)
                copy = json.loads(next(line for line in logs[-1].read_text().splitlines() if '"add"' in line))
                copy["add"]["path"] = "no.parquet"
                (path / "_delta_log" / f"{last + 1:020}.json").write_text(json.dumps(copy))
    with hj.Engine(folder, memory=1) as engine:
        _check(engine, 3)
        engine.flush()
        _check(engine, 4)
        assert _stored(engine) == {"orders(buyer)", "buyers(name)"}


def test_an_outdated_arrangement_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    with _made(folder) as engine:
        engine.apply({"orders": _orders(60, 63)}, time=3)
    with sqlite3.connect(folder / "journal.sqlite") as journal:
        # As if a version of halfjoin that knows no arrangements had flushed.
        journal.execute("UPDATE arrangement SET flushed = flushed - 1")
    with hj.Engine(folder, memory=1) as engine:
        assert bag(engine.query(JOIN)) == _joined(range(63), range(25))
        engine.apply({"buyers": _buyers(25, 26)}, time=4)
        assert bag(engine.read("joined")) == _joined(range(63), range(26))


def test_a_view_that_is_replaced_keeps_the_files_of_the_new_one(tmp_path: Path) -> None:
    with _made(tmp_path / "w") as engine:
        for number in (30, 40):
            engine.execute(f"CREATE OR REPLACE MATERIALIZED VIEW joined AS {JOIN} AND o.id < {number}")
            assert bag(engine.read("joined")) == _joined(range(number), range(25))
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        assert bag(engine.read("joined")) == _joined(range(40), range(25))
        engine.flush()
        assert bag(engine.read("joined")) == _joined(range(40), range(25))


def test_a_reader_follows_what_is_flushed_and_merged(tmp_path: Path) -> None:
    with _made(tmp_path / "w") as engine, hj.Engine(tmp_path / "w", read_only=True, memory=1) as reader:
        for number in range(20):
            engine.apply({"orders": _orders(60 + number, 61 + number)}, time=10 + number)
            if number % 3 == 0:
                engine.flush()
            if number % 7 == 0:
                engine.compact()
                for file in (tmp_path / "w").glob("*/*/*.parquet"):  # as an hour later
                    if file.name not in _named(file.parent):
                        file.unlink()
            assert bag(reader.read("joined")) == _joined(range(61 + number), range(25))
            assert reader.stats().memory <= 1


def _named(folder: Path) -> set[str]:
    """The names of the files of a Delta table's newest version."""
    return set(pa.table(DeltaTable(str(folder)).get_add_actions())["path"].to_pylist())


def test_a_repeated_batchs_answer_is_read_lazily(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"k": k % 40, "x": k} for k in range(300)]
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        engine.execute("CREATE TABLE t (k bigint, x bigint); CREATE MATERIALIZED VIEW v AS SELECT k, x FROM t")
        first = engine.apply({"t": rows}, time=1, batch_id="one")
        engine.apply({"t": [{"k": 1, "x": 1, "__diff": -1}]}, time=2)
        engine.flush()
    read, found = parquet_reader.OpenFile.read, []
    monkeypatch.setattr(parquet_reader.OpenFile, "read", lambda *given: found.append(given) or read(*given))
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        again = engine.apply({"t": rows}, time=1, batch_id="one")
        assert not found and repr(again).endswith("diffs={v: in files})")
        engine.compact()
        for file in (tmp_path / "w" / "views" / "v").glob("*.parquet"):
            file.unlink()
        assert bag(again.diffs["v"]) == bag(first.diffs["v"])
        assert found

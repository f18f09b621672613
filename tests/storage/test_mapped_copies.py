"""Mapped copies: lookups find the same there as in files, and the work of a batch is that of its rows."""

from __future__ import annotations

import logging
import os
import pickle
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event
from time import sleep

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.storage import arranging, copying, lots, mapped, merging, parquet, stored_run
from halfjoin.engine.storage.copying import Copying
from halfjoin.engine.storage.lookup import KeySearch
from halfjoin.engine.storage.lots import Lot
from halfjoin.engine.storage.mapped import Copies
from halfjoin.engine.storage.parquet_reader import OpenFile, opened
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.system.behind import Behind
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes
from halfjoin.engine.updates.updates import Ints, Updates, concat
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT, DATE, TEXT

SCHEMA = {"k": pa.int64(), "d": pa.date32(), "s": pa.string(), "l": pa.list_(pa.int64()),
          "i": pa.month_day_nano_interval()}  # fmt: skip
COLUMNS = {"k": Column("k", BIGINT, True), "d": Column("d", DATE, True), "s": Column("s", TEXT, True)}
ROWS = st.tuples(
    st.none() | st.integers(-3, 12), st.none() | st.integers(0, 4), st.none() | st.sampled_from(["", "a", "é\0"]),
    st.none() | st.lists(st.integers(0, 2), max_size=2), st.none() | st.just((1, 30, 5)), st.integers(0, 3),
    st.sampled_from([-1, 1, 2]),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 16)


def _updates(rows: list[tuple[object, ...]]) -> Updates:
    cells = [pa.array([row[i] for row in rows], pa.int32() if kind == pa.date32() else kind).cast(kind)
             for i, kind in enumerate(SCHEMA.values())]  # fmt: skip
    time, diff = (np.array([row[i] for row in rows], np.int64) for i in (5, 6))
    return Updates(dict(zip(SCHEMA, cells, strict=True)), time, diff)


def _copies(folder: str | Path) -> Copies:
    def fresh() -> LocalPlace:
        return LocalPlace(Path(tempfile.mkdtemp(dir=folder)))

    return Copies(fresh, Behind())


def _wear(run: StoredRun) -> None:
    """Have lookups decode enough rows."""
    for file in run.files:
        opened(run.place, file.name).decoded = len(run)


def _copied(run: StoredRun) -> list[bool]:
    """Wait for copies. Returns whether each lot has one."""
    assert run.copies._behind is not None
    run.copies._behind.wait()
    return [run.copies.of(lot) is not None for lot, _ in run.opening(run.place, run.files, run.schema).lots]


def _bag(updates: Updates) -> list[str]:
    return sorted(map(repr, updates.table(changes=True).to_pylist()))


@given(st.lists(st.lists(ROWS, max_size=20), max_size=3), st.sampled_from([*COLUMNS, "code"]), st.data())
def test_a_copy_gives_what_its_file_gives(
    parts: list[list[tuple[object, ...]]], sort: str, data: st.DataObject
) -> None:
    names = data.draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=2, unique=True))
    wanted = _updates(data.draw(st.lists(ROWS, min_size=1, max_size=4)))
    key = ArrangementKey("c", tuple(COLUMNS[name] for name in names))
    columns, keys = key_columns(key, {}), [wanted.columns[name] for name in names]
    probes, coded = np.unique(codes(keys, len(wanted))), sort == "code"
    layout = {**SCHEMA, arranging.CODE: pa.int64()} if coded else SCHEMA

    def looked_up(run: StoredRun) -> list[str]:
        found = list(run.narrowed(key, columns, keys, SCHEMA))
        return [line for one in found for _, rows in one.index(key, columns).find(probes)
                for line in _bag(one.updates.select(SCHEMA).take(rows))]  # fmt: skip

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        place = LocalPlace(Path(folder))
        patch.setattr(parquet, "GROUP_ROWS", 3)
        patch.setattr(lots, "BYTES", data.draw(st.sampled_from([1, 400, 1 << 20])))
        filed = [one.with_columns({arranging.CODE: pa.array(codes(columns(one)[0], len(one)))}) if coded else one
                 for one in map(_updates, filter(None, parts))]  # fmt: skip
        files = tuple(file for one in filed
                      for file in parquet.write(place, one, layout, [arranging.CODE if coded else sort]))  # fmt: skip
        run = StoredRun(place, files, layout, coded=coded, copies=_copies(folder))
        there = looked_up(StoredRun(place, files, layout, coded=coded))
        copied = data.draw(st.booleans())
        patch.setattr(mapped, "SHARE", mapped.SHARE * copied)
        patch.setattr(stored_run, "SEARCHED_ROWS", 0)  # else so few rows need no index
        _wear(run)
        assert sorted(looked_up(run)) == sorted(there)
        for lot, _ in run.opening(place, files, layout).lots:
            run.copies.looked_up(lot, layout)
        assert all(one == copied for one in _copied(run))
        assert None not in run.copies._indexes.values()
        for most in (limits.READ_ROWS, 2):
            patch.setattr(limits, "READ_ROWS", most)
            assert sorted(looked_up(run)) == sorted(there)
        assert not list(Path(folder).glob("*/*"))  # copies have no names


@pytest.mark.parametrize("name", ["__code", "__codes of d", "1"])
def test_a_column_of_any_name_keeps_its_values(name: str, tmp_path: Path) -> None:
    schema, place = {"d": pa.date32(), name: pa.int64()}, LocalPlace(tmp_path)
    values = {"d": pa.array(range(10), pa.int32()).cast(pa.date32()), name: pa.array([n * 7 % 5 for n in range(10)])}
    rows = Updates(values, np.zeros(10, np.int64), np.ones(10, np.int64))
    files, wanted = tuple(parquet.write(place, rows, schema, ["d"])), rows.take(np.array([2, 6]))
    both = Column("d", DATE, True), Column(name, BIGINT, True)
    for key in (ArrangementKey("c", both[:1]), ArrangementKey("c", both)):
        columns = key_columns(key, {})
        keys = list(wanted.columns.values())[: len(key.keys)]
        run = StoredRun(place, files, schema, copies=_copies(tmp_path))
        _wear(run)
        for _ in range(2):  # in the file, then in its copy
            found = [one.updates.select(schema) for one in run.narrowed(key, columns, keys, schema)]
            assert _bag(concat(found)) == _bag(wanted)
            assert _copied(run) == [True]


class _Work:
    """Counts the rows that lookups decode, and those that they take from copies; and the files and copies searched."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.decoded = self.copied = self.taken = self.searched = 0
        find, make, find_mapped = KeySearch.find, Copies._make, KeySearch.find_mapped

        def counted(search: KeySearch, source: OpenFile, *rest: object) -> Iterator[Updates]:
            before = source.decoded
            self.searched += 1
            yield from find(search, source, *rest)  # type: ignore[arg-type]
            self.decoded += source.decoded - before

        def made(copies: Copies, lot: Lot, *rest: object) -> None:
            self.copied += lot.rows
            make(copies, lot, *rest)  # type: ignore[arg-type]

        def mapped_rows(*arguments: object) -> Iterator[Updates]:
            self.searched += 1
            for updates in find_mapped(*arguments):  # type: ignore[arg-type]
                self.taken += len(updates)
                yield updates

        patch.setattr(KeySearch, "find", counted)
        patch.setattr(Copies, "_make", made)
        patch.setattr(KeySearch, "find_mapped", mapped_rows)


def _copying(engine: hj.Engine) -> Copying:
    found: Copying = engine._store._copying  # type: ignore[attr-defined]
    return found


def _wait(engine: hj.Engine) -> None:
    """Wait until nothing goes on behind the batches."""
    _copying(engine)._behind.wait()


def _lots(engine: hj.Engine) -> set[Lot]:
    """The lots that have copies, or wait for them."""
    return {lot for copies in _copying(engine)._copies.values() for lot in copies._made}


COUNT = 3_000  # orders
VIEW = "SELECT o.id, o.amount, b.region FROM orders o, buyers b WHERE o.buyer = b.id"


def _orders(keys: range) -> pa.Table:
    return pa.table({"id": pa.array(keys), "buyer": [n * 7 % 500 for n in keys], "amount": [n % 9 for n in keys]})


def _on_disk(folder: Path) -> hj.Engine:
    """An engine with the orders on disk, and with memory for some batches."""
    with hj.Engine(folder) as engine:
        engine.execute("CREATE TABLE orders (id bigint PRIMARY KEY, buyer bigint, amount bigint)")
        engine.execute("CREATE TABLE buyers (id bigint PRIMARY KEY, region bigint)")
        engine.execute(f"CREATE MATERIALIZED VIEW joined AS {VIEW}")
        buyers = pa.table({"id": pa.array(range(500)), "region": pa.array([n % 5 for n in range(500)])})
        engine.apply({"orders": _orders(range(0, 2 * COUNT, 2)), "buyers": buyers}, time=1)
        engine.compact()
    return hj.Engine(folder, memory=200_000)


def _upsert(engine: hj.Engine, number: int, size: int) -> range:
    """Replace so many orders, evenly over all of them, by orders with this number as the amount. Returns their ids."""
    keys = range(2 * (number * 13 % (COUNT // size)), 2 * COUNT, 2 * COUNT // size)
    batch = _orders(keys).set_column(2, "amount", pa.array([number] * size))
    engine.apply({"orders": hj.upserts(batch)}, time=number)
    return keys


@pytest.mark.parametrize("size", [2, 200])
def test_the_work_of_a_batch_follows_its_rows(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halfjoin.engine.storage.warehouse.Warehouse.do_due_work", lambda *_: None)
    with _on_disk(tmp_path / "w") as engine:
        work, amounts = _Work(monkeypatch), {2 * n: 2 * n % 9 for n in range(COUNT)}
        for number in range(2, 120):
            was = work.decoded, work.copied, work.taken
            amounts |= dict.fromkeys(_upsert(engine, number, size), number)
            _wait(engine)
            done = [now - before for now, before in zip((work.decoded, work.copied, work.taken), was, strict=True)]
            assert work.copied <= mapped.SHARE * work.decoded  # rent or buy
            if work.copied and not any(done[:2]):
                break
        assert done[:2] == [0, 0]
        assert size <= done[2] <= 2 * size  # the rows that the batch replaces, looked up and checked
        found = engine.read("joined").sort_by("id")
        assert dict(zip(found["id"].to_pylist(), found["amount"].to_pylist(), strict=True)) == amounts


def test_copies_end_with_their_files_and_with_the_engine(tmp_path: Path) -> None:
    def known() -> set[str]:
        copying._behind.wait()
        return {name for one in copying._copies.values() for lot in one._made if one.of(lot) for name in lot.names}

    def opened() -> list[str]:
        found = []
        for number in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):  # that of the listing itself
                found.append(os.readlink(f"/proc/self/fd/{number}"))
        return [name for name in found if name.endswith(" (deleted)") and str(staging) in name]

    staging = tmp_path / "w" / "staging"
    with _on_disk(tmp_path / "w") as engine:
        copying = _copying(engine)
        for time in range(2, 5):
            _upsert(engine, time, 200)
        first = known()
        assert first
        assert not opened()  # a mapping needs no open file, of which a process may have few
        assert not [path for path in staging.rglob("*") if path.is_file()]  # copies have no names
        engine.compact()
        for time in range(5, 8):
            _upsert(engine, time, 200)
        assert known() and not known() & first
    assert not copying._copies
    assert not list(staging.glob("*/*"))


def test_a_full_disk_only_makes_lookups_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(mapped, "FREE", 0.5)  # twice the disk
    with _on_disk(tmp_path / "w") as engine, caplog.at_level(logging.WARNING, "halfjoin"):
        for time in range(2, 6):
            keys = _upsert(engine, time, 200)
            _wait(engine)
        found = engine.read("joined").to_pylist()
        assert len(found) == COUNT
        assert {row["amount"] for row in found if row["id"] in keys} == {5}
    assert "cannot be mapped into memory, so lookups stay slow: the disk has only" in caplog.text


def test_a_key_that_sorts_nothing_gets_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "FILE_ROWS", 100)
    monkeypatch.setattr(stored_run, "SEARCHED_ROWS", 0)
    monkeypatch.setattr(mapped, "SHARE", 0)  # no copies
    schema, place, count = {"k": pa.int64(), "n": pa.int64()}, LocalPlace(tmp_path), 1000
    rows = Updates({"k": pa.array(range(count)), "n": pa.array([k * 389 % count for k in range(count)])},
                   np.zeros(count, np.int64), np.ones(count, np.int64))  # fmt: skip
    files = tuple(parquet.write(place, rows, schema, ["k"]))
    key, work = ArrangementKey("c", (Column("n", BIGINT),)), _Work(monkeypatch)
    run = StoredRun(place, files, schema, copies=_copies(tmp_path))
    for decoded in (count, count, 16):  # without an index, on the way to one, with one: one row group
        before = run.decoded
        found = concat([one.updates for one in run.narrowed(key, key_columns(key, {}), [pa.array([500])], ["k"])])
        assert found.columns["k"].to_pylist() == [500]
        assert run.decoded - before == decoded
        assert _copied(run) == [False]
    assert work.searched == 2 * len(files)


@pytest.mark.parametrize("size", [1, 20])
def test_a_lookup_searches_the_files_that_may_have_its_keys(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "FILE_ROWS", 50)
    monkeypatch.setattr(lots, "BYTES", 1)
    schema, place = {"k": pa.int64()}, LocalPlace(tmp_path)
    rows = Updates({"k": pa.array(range(1000))}, np.zeros(1000, np.int64), np.ones(1000, np.int64))
    files = tuple(parquet.write(place, rows, schema, ["k"]))
    key, wanted = ArrangementKey("c", (Column("k", BIGINT),)), pa.array(range(300, 300 + size))
    run = StoredRun(place, files, schema, copies=_copies(tmp_path))
    _wear(run)
    work = _Work(monkeypatch)
    for taken in (0, size):  # in the file, then in its copy
        work.searched = 0
        found = [one.updates for one in run.narrowed(key, key_columns(key, {}), [wanted], ["k"])]
        assert concat(found).columns["k"].to_pylist() == wanted.to_pylist()
        assert (work.searched, work.taken) == (1, taken)
        assert sum(_copied(run)) == 1


def test_batches_go_on_while_copies_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, go = mapped._mapped, Event()

    def waiting(*arguments: object) -> object:
        assert go.wait(60)
        return make(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(mapped, "_mapped", waiting)
    with _on_disk(tmp_path / "w") as engine:
        for number in range(2, 6):
            _upsert(engine, number, 200)
        before = _lots(engine)
        engine.compact()  # the files for which copies wait are replaced
        keys = _upsert(engine, 6, 200)
        go.set()
        _wait(engine)
        after = _lots(engine)
        assert after and not after & before
        found = engine.read("joined").to_pylist()
        assert len(found) == COUNT
        assert {row["amount"] for row in found if row["id"] in keys} == {6}


def test_no_copy_is_made_for_an_engine_that_closes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, written = Event(), list[str]()
    write = mapped._copied

    def slow(lot: Lot, name: str, *rest: object) -> pa.Array:
        begun.set()
        while not copying._behind._closed:
            sleep(0.001)
        written.append(name)
        return write(lot, name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(mapped, "_copied", slow)
    with _on_disk(tmp_path / "w") as engine:
        copying = _copying(engine)
        _upsert(engine, 2, 200)
        assert begun.wait(60)
    assert len(written) == 1  # of the first copy's columns
    assert not copying._behind.busy


def test_copies_take_half_of_the_memory_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lots, "BYTES", 20_000)
    monkeypatch.setattr(parquet, "FILE_ROWS", 200)
    monkeypatch.setattr(merging, "RANGE_BYTES", 10_000)
    monkeypatch.setattr(copying, "machine_memory", lambda: 100_000)
    with _on_disk(tmp_path / "w") as engine:
        for time in range(2, 8):
            _upsert(engine, time, 200)
        _wait(engine)
        sizes = [lot.size for lot in _lots(engine)]
        assert 30_000 < sum(sizes) <= 50_000 and len(sizes) > 1


def test_tasks_of_spark_have_no_copies(tmp_path: Path) -> None:
    run = StoredRun(LocalPlace(tmp_path), (), SCHEMA, copies=_copies(tmp_path))
    assert pickle.loads(pickle.dumps(run)).copies._fresh is None


def test_a_copy_made_meanwhile_takes_back_what_the_file_gave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "READ_ROWS", 3)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 3)
    schema, place, count = {"k": pa.int64(), "n": pa.int64()}, LocalPlace(tmp_path), 10
    rows = Updates({"k": pa.array([5] * count), "n": pa.array(range(count))}, np.zeros(count, np.int64),
                   np.arange(1, count + 1))  # fmt: skip
    files = tuple(parquet.write(place, rows, schema, ["k"]))
    copied = tuple(one for some in (rows.slice(0, 7), rows.slice(7, 10))
                   for one in parquet.write(place, some, schema, ["k"]))  # fmt: skip
    with (tmp_path / copied[1].name).open("r+b") as damaged:  # behind the magic number: pages, not the footer
        damaged.seek(4)
        damaged.write(bytes(60))
    key = ArrangementKey("c", (Column("k", BIGINT),))
    arranged = StoredRun(place, copied, schema, copies=_copies(tmp_path))
    run = StoredRun(place, files, schema, {key: arranged})
    found = list[Updates]()
    for one in run.narrowed(key, key_columns(key, {}), [pa.array([5])], ["n"]):
        assert isinstance(one, Run)
        found.append(one.updates)
        _wear(arranged)
        (lot, _), _ = arranged.opening(place, copied, schema).lots
        arranged.copies.looked_up(lot, schema)
        assert _copied(arranged) == [True, False]
        monkeypatch.setattr(limits, "READ_ROWS", 4)  # a copy gives its rows in other parts
    assert len(found) > 2
    whole = concat(found)
    total: Ints = np.zeros(count, np.int64)
    np.add.at(total, whole.columns["n"].to_numpy(), whole.diff)
    assert total.tolist() == rows.diff.tolist()

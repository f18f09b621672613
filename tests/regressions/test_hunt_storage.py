"""Defects of the storage that a search found, each in the smallest program that shows it."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Condition, RLock
from typing import Any
from weakref import WeakSet

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable

import halfjoin as hj
from halfjoin.engine.arrange.changes import StoredChanges
from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.batch.subscription import Subscription
from halfjoin.engine.sinks.sinks import Sinks
from halfjoin.engine.storage import delta, filing, parquet, place, stored_run
from halfjoin.engine.storage import reader as reader_module
from halfjoin.engine.storage.delta import DeltaFolder, Layout
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.updates.updates import Updates
from tests.oracle.rows import bag

ROWS = [{"k": number, "v": number % 7} for number in range(40)]
LAYOUT = Layout({"k": pa.int64()}, ("k",))


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Make the disk look full to files in folders of a kind (`tables`, `views`, `arrangements`)."""
    kinds = set[str]()
    write = LocalPlace.write

    def refusing(self: LocalPlace, name: str, data: pa.Buffer) -> None:
        if kinds & set(self.path.parts):
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, name, data)

    monkeypatch.setattr(LocalPlace, "write", refusing)
    yield kinds.add


def _updates(*values: int) -> Updates:
    ones = np.ones(len(values), np.int64)
    return Updates({"k": pa.array(values, pa.int64())}, ones, ones)


@pytest.mark.parametrize("count", [31, 32, 33, 70])
def test_a_table_may_have_many_columns(tmp_path: Path, count: int) -> None:
    names = [f"c{number}" for number in range(count)]
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(f"CREATE TABLE t ({', '.join(f'{name} bigint' for name in names)})")
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM t WHERE c0 > 0")
        for time in range(25):  # past a checkpoint of the log
            engine.apply({"t": [dict.fromkeys(names, time)]}, time=time)
            engine.flush()
        engine.apply({"t": [dict.fromkeys(names, 99)]}, time=1000, close=False)
        engine.compact()
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.read("t").num_rows == 25
        assert engine.advance(to=1001).diffs["v"]["c0"].to_pylist() == [99]
        assert engine.read("v").num_rows == 25


def test_a_table_whose_first_flush_was_cut_short_is_made_anew(tmp_path: Path) -> None:
    """Also the table of an older version, whose log lacks facts that this version reads."""
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute(f"CREATE TABLE t ({', '.join(f'c{number} bigint' for number in range(40))})")
        engine.apply({"t": [{"c0": 1}]})
    table = tmp_path / "w" / "tables" / "t"
    old = DeltaTable.create(table.as_uri(), parquet.file_schema({f"c{number}": pa.int64() for number in range(40)}))
    assert old.version() == 0
    with hj.Engine(tmp_path / "w") as engine:
        engine.flush()
        assert engine.read("t").num_rows == 1
    assert "delta.dataSkippingNumIndexedCols" in DeltaTable(table).metadata().configuration


@pytest.mark.parametrize("id", [5, b"x", "\ud800"])
@pytest.mark.parametrize("kept", [False, True])
def test_a_batch_id_is_text(tmp_path: Path, id: Any, kept: bool) -> None:
    with hj.Engine(tmp_path / "w" if kept else None) as engine:
        engine.execute("CREATE TABLE t (a int)")
        with pytest.raises(hj.HalfjoinError, match="is not text"):
            engine.apply({"t": [{"a": 1}]}, batch_id=id)
        assert engine.read("t").num_rows == 0


def test_another_processs_commit_is_not_there_twice(tmp_path: Path) -> None:
    """The earlier writer goes on flushing after another one has opened the warehouse and flushed the same updates."""
    mine, its = (DeltaFolder(LocalPlace(tmp_path / "t"), "app") for _ in range(2))
    version = mine.append([_updates(1)], [], LAYOUT, 1, None)
    assert its.append([_updates(2)], [], LAYOUT, 2, version) == 2
    with pytest.raises(hj.StorageError, match="written by another process"):
        mine.append([_updates(2)], [], LAYOUT, 2, version)
    assert mine.recover(1, version) == (2, 2)
    assert sum(file.rows for file in mine.files(2)) == 2


def test_a_merge_that_removes_files_is_one_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "KEEP_HOURS", 0)
    table = DeltaFolder(LocalPlace(tmp_path / "t"), "app")
    version = None
    for entry in range(1, 4):
        version = table.append([_updates(entry)], [], LAYOUT, entry, version)
    assert version is not None
    merged = table.merge(LAYOUT, 0, version, everything=True)
    assert merged == DeltaTable(tmp_path / "t").version() == version + 1
    assert len([*(tmp_path / "t").glob("*.parquet")]) == 1
    assert table.append([_updates(4)], [], LAYOUT, 4, merged) == merged + 1


def test_every_folder_that_is_made_outlives_a_power_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = set[Path]()

    def noting(path: Path) -> None:
        synced.add(path.resolve())

    monkeypatch.setattr(place, "sync", noting)
    folder = tmp_path / "a" / "b" / "w"
    with hj.Engine(folder) as engine:
        engine.execute("CREATE TABLE t (k bigint, v bigint)")
        engine.apply({"t": ROWS})
        engine.flush()
    made = folder / "tables" / "t" / place.LOG
    assert {path.parent for path in (made, *made.parents) if path.is_relative_to(tmp_path / "a")} <= synced


def test_a_bulk_batch_on_a_full_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: Callable[[str], None]
) -> None:
    monkeypatch.setattr(filing, "BULK_ROWS", 30)
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint, v bigint)")
        full("tables")
        with pytest.raises(hj.StorageError, match="the rows of t cannot be written"):
            engine.apply({"t": ROWS}, time=1)
        engine.apply({"t": ROWS[:3]}, time=1)
        assert engine.read("t").num_rows == 3


def test_a_full_disk_does_not_stand_in_the_way_of_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: Callable[[str], None]
) -> None:
    monkeypatch.setattr(stored_run, "SEARCHED_ROWS", 1)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 4)
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, v bigint)")
        engine.execute("CREATE MATERIALIZED VIEW w AS SELECT a.k FROM t AS a, t AS b WHERE a.v = b.v AND b.k = 3")
        engine.apply({"t": ROWS}, time=1)
        engine.flush()
        engine.apply({"t": hj.upserts([{"k": 50, "v": 1}])}, time=2)
    full("tables")
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        assert engine.read("t").num_rows == 41
        assert bag(engine.read("w")) == {(number,): 1 for number in range(3, 40, 7)}


def test_a_folder_that_cannot_be_removed_does_not_undo_a_drop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear = LocalPlace.clear

    def failing(self: LocalPlace, keep: Any = ()) -> None:
        raise PermissionError(f"no permission for {self}")

    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint, v bigint)")
        engine.apply({"t": ROWS}, time=1)
        engine.flush()
        monkeypatch.setattr(LocalPlace, "clear", failing)
        engine.execute("DROP TABLE t; CREATE TABLE t (k text)")
        engine.apply({"t": [{"k": "a"}]}, time=2)
        engine.flush()
        assert engine.read("t").to_pylist() == [{"k": "a"}]
    monkeypatch.setattr(LocalPlace, "clear", clear)
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.read("t").to_pylist() == [{"k": "a"}]
    shutil.rmtree(tmp_path / "w")


@pytest.mark.parametrize("kept", [False, True])
def test_there_is_an_end_of_time(tmp_path: Path, kept: bool) -> None:
    with hj.Engine(tmp_path / "w" if kept else None, clock="wall") as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        engine.apply({"t": [{"k": 1}]}, time=2**63 - 2)
        for change in (lambda: engine.apply({"t": [{"k": 2}]}), lambda: engine.execute("INSERT INTO t VALUES (2)")):
            with pytest.raises(hj.InvalidTime, match="every time below upper = 9223372036854775807 is closed"):
                change()
        assert engine.read("t").num_rows == 1
        assert engine.advance().upper == 2**63 - 1


@pytest.mark.parametrize("change", ["batch", "definition"])
def test_an_interrupted_reader_takes_each_batch_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint); CREATE TABLE u (k bigint)")
        engine.apply({"t": [{"k": 1}], "u": [{"k": 1}]}, time=1)
        with hj.Engine(tmp_path / "w", read_only=True) as reader:
            assert reader.read("t").num_rows == reader.read("u").num_rows == 1
            engine.apply({"t": [{"k": 2}], "u": [{"k": 2}]}, time=2)
            if change == "definition":
                engine.execute("CREATE TABLE other (k bigint)")
            with monkeypatch.context() as interrupted:
                advance, calls = Collection.advance, list[str]()

                def once(self: Collection, upper: int) -> None:
                    calls.append(self.name)
                    if len(calls) == 2:
                        raise KeyboardInterrupt
                    advance(self, upper)

                interrupted.setattr(Collection, "advance", once)
                interrupted.setattr(reader_module, "restore", _interrupted)
                with pytest.raises(KeyboardInterrupt):
                    reader.read("t")
            assert bag(reader.read("t")) == bag(reader.read("u")) == {(1,): 1, (2,): 1}


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("flushes", [0, 1, 6])
def test_a_reader_tells_a_dropped_table_from_its_namesake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flushes: int
) -> None:
    with hj.Engine(tmp_path / "w", clock="wall") as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        for time in range(3):
            engine.apply({"t": [{"k": -1}]}, time=time)
            engine.flush()
        with hj.Engine(tmp_path / "w", read_only=True) as reader, monkeypatch.context() as meanwhile:
            files = DeltaFolder.files

            def slow(self: DeltaFolder, version: int | None, rows: int | None = None) -> Any:
                meanwhile.undo()
                engine.execute("DROP TABLE t; CREATE TABLE t (k bigint)")
                for number in range(6):
                    engine.apply({"t": [{"k": number}]})
                    if number < flushes:
                        engine.flush()
                return files(self, version, rows)

            meanwhile.setattr(DeltaFolder, "files", slow)
            assert sorted(reader.read("t")["k"].to_pylist()) == list(range(6))


def test_a_reader_says_what_it_cannot_read(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        engine.apply({"t": [{"k": 1}]})
        engine.flush()
        with hj.Engine(tmp_path / "w", read_only=True) as reader:
            shutil.rmtree(tmp_path / "w" / "tables" / "t")
            for _ in range(2):
                with pytest.raises(hj.StorageError, match="tables/t is missing"):
                    reader.read("t")


def test_an_interrupt_after_a_batch_loses_no_subscribed_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
        subscription = engine.subscribe("v", snapshot=False)
        with monkeypatch.context() as interrupted:
            interrupted.setattr(Sinks, "offer", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                engine.apply({"t": [{"k": 1}]}, time=1)
        engine.apply({"t": [{"k": 2}]}, time=2)
        engine.close()
        assert [table["k"].to_pylist() for table in subscription] == [[1], [2]]


def test_a_subscription_gives_unreadable_changes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    updates = _updates(7)
    first = StoredChanges(LAYOUT.schema, (Run(updates),), 0, 9, True)
    changed = RLock()
    subscription = Subscription([first], 9, 9, (changed, Condition(changed)), WeakSet())
    subscription.close()
    with monkeypatch.context() as failing:
        failing.setattr(Run, "pieces", _refused)
        with pytest.raises(hj.StorageError):
            next(subscription)
    assert next(subscription)["k"].to_pylist() == [7]


def _refused(*_: object) -> None:
    raise hj.StorageError("not now")


@pytest.mark.parametrize("text", ["\U0001f600", "\U00020000", "\U0010ffff", "\x01", "\\u0041", '"'])
def test_a_sink_finds_any_text_again(tmp_path: Path, text: str) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k text); CREATE SINK s FROM t INTO DELTA 's'")
        engine.apply({"t": [{"k": text}, {"k": "b"}]})
        engine.apply({"t": hj.deletes([{"k": text}])})
        engine.flush()
    assert DeltaTable(tmp_path / "w" / "sinks" / "s").to_pyarrow_table()["k"].to_pylist() == ["b"]


APPEND = """
import sys, halfjoin as hj
with hj.Engine(sys.argv[1]) as engine:
    engine.apply({"t": [{"k": int(sys.argv[2])}]}, time=int(sys.argv[2]))
"""


def test_an_engine_that_opens_takes_no_locks_from_others(tmp_path: Path) -> None:
    """By POSIX, who closes a file gives up all locks that the process has on it, and so those of an older engine. Then
    another process took itself for the last one, and removed the write-ahead file that the older engine still read."""
    folder = tmp_path / "w"
    with hj.Engine(folder, clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint)")
    with hj.Engine(folder, read_only=True) as reader:
        for number in range(1, 4):
            hj.Engine(folder, read_only=True).close()
            subprocess.run([sys.executable, "-c", APPEND, str(folder), str(number)], check=True, timeout=60)
            assert (folder / "journal.sqlite-wal").exists()
            assert reader.read("t").num_rows == number
        with hj.Engine(folder) as engine:
            assert engine.read("t").num_rows == 3

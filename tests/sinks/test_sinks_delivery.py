"""Sinks after failures, missed batches and large changes: each change arrives once, with few rows in memory."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import halfjoin as hj
from halfjoin.engine.sinks import courier, sinks, table
from halfjoin.engine.sinks.delivery import Delivery
from halfjoin.engine.storage import delta, parquet
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Updates
from tests.oracle.rows import bag
from tests.support.sinking import DDL, FOLDER, opened, put, rows, shown


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / FOLDER


@pytest.fixture
def engine(folder: Path) -> Iterator[hj.Engine]:
    with opened(folder) as engine:
        yield engine


def test_a_table_that_somebody_else_wrote_is_left_alone(
    engine: hj.Engine, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine.execute("CREATE SINK s FROM big INTO DELTA 's'")
    put(engine, 1, 1)
    engine.flush()
    path = folder / "sinks" / "s"
    stranger = pa.table({"k": pa.array([5], pa.int64()), "v": pa.array([5], pa.int32())})
    write_deltalake(path, stranger, mode="append")
    for time in (2, 3, 4):
        put(engine, time, time)  # batches go on
        with pytest.raises(hj.StorageError, match=r"s: somebody else wrote the table.*version 3 \(WRITE\).*DROP SINK"):
            engine.flush()
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1
    assert rows(path) == {(1, 9): 1, (5, 5): 1}
    assert "somebody else" in str(shown(engine)[0]["error"])
    assert engine.read("big").num_rows == 4
    engine.execute("DROP SINK s; CREATE SINK s FROM big INTO DELTA 'again'")
    assert len(rows(folder / "sinks" / "again")) == 4


def test_a_foreign_commit_after_the_sinks_own_is_seen(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.execute("CREATE SINK s FROM big INTO DELTA 's'")
    durable = LocalPlace.make_durable

    def noted(self: LocalPlace) -> None:
        durable(self)
        path = folder / "sinks" / "s"
        if self.path == path:  # not the warehouse's own tables
            monkeypatch.undo()
            write_deltalake(path, DeltaTable(path).to_pyarrow_table(), mode="append")

    monkeypatch.setattr(LocalPlace, "make_durable", noted)
    put(engine, 1, 1)
    for time in (2, 3):
        with pytest.raises(hj.StorageError, match="somebody else wrote the table"):
            engine.flush()
        put(engine, time, time)
    assert rows(folder / "sinks" / "s") == {(1, 9): 2}


@pytest.mark.parametrize("emptied", [False, True])
def test_a_table_that_was_removed_is_made_again(engine: hj.Engine, folder: Path, emptied: bool) -> None:
    engine.execute("CREATE SINK s FROM big INTO DELTA 's'")
    put(engine, 1, 1)
    engine.flush()
    shutil.rmtree(folder / "sinks" / "s")
    if emptied:
        (folder / "sinks" / "s").mkdir()
    put(engine, 2, 2)
    put(engine, 3, 3)
    put(engine, 4, 4)
    engine.flush()
    assert rows(folder / "sinks" / "s") == {(1, 9): 1, (2, 9): 1, (3, 9): 1, (4, 9): 1}


def test_an_unreadable_view_is_not_delivered_until_it_heals(engine: hj.Engine, folder: Path) -> None:
    engine.execute("CREATE SINK s FROM ratio INTO DELTA 's'")
    put(engine, 1, 1, v=2)
    put(engine, 2, 2, v=0)
    put(engine, 3, 3, v=3)
    with pytest.raises(hj.StorageError, match="ratio cannot be read as of 3: division by zero"):
        engine.flush()
    assert rows(folder / "sinks" / "s") == {(1, 6): 1}
    engine.apply({"t": hj.deletes([{"k": 2, "v": 0}])}, time=4)
    engine.flush()
    assert rows(folder / "sinks" / "s") == {(1, 6): 1, (3, 4): 1}
    assert [sink.error for sink in engine.stats().sinks] == [None]


def test_a_row_that_is_there_fewer_than_no_times_is_waited_for(engine: hj.Engine, folder: Path) -> None:
    engine.execute("CREATE TABLE bag (k bigint); CREATE SINK s FROM bag INTO DELTA 's'")
    engine.apply({"bag": [{"k": 1}]}, time=1)
    engine.apply({"bag": hj.deletes([{"k": 2}])}, time=2)
    engine.apply({"bag": [{"k": 3}]}, time=3)
    with pytest.raises(hj.StorageError, match=r"bag holds a row -1 times, which no table can show: .'k': 2"):
        engine.flush()
    assert rows(folder / "sinks" / "s") == {(1,): 1}
    engine.apply({"bag": [{"k": 2}, {"k": 2}]}, time=4)
    engine.flush()
    assert rows(folder / "sinks" / "s") == {(1,): 1, (2,): 1, (3,): 1}
    assert [sink.error for sink in engine.stats().sinks] == [None]


def test_a_commit_whose_answer_was_lost_is_not_made_again(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.execute("CREATE SINK s FROM t INTO DELTA 's'")
    commit = table.SinkTable._commit

    def lost(self: table.SinkTable, *arguments: object) -> None:
        commit(self, *arguments)  # type: ignore[arg-type]
        monkeypatch.undo()
        raise OSError("the connection was closed")

    monkeypatch.setattr(table.SinkTable, "_commit", lost)
    put(engine, 1, 1)
    with pytest.raises(hj.StorageError, match="the connection was closed"):
        _wait(engine)
    put(engine, 2, 2)
    put(engine, 3, 3)
    engine.flush()
    history = DeltaTable(folder / "sinks" / "s").history()
    assert [commit.get("halfjoin.upper") for commit in history] == ["4", "3", "2", "0", None]
    assert len(rows(folder / "sinks" / "s")) == 3


def _wait(engine: hj.Engine) -> None:
    """Wait until the offered batches are delivered or have failed. Does not start another try."""
    _, found = engine._sinks._couriers["s"]
    found.wait()
    if found.error is not None:
        raise found.error


@pytest.mark.parametrize("left", [b"", b'{"commitInfo":{"timest', b"\0" * 300])
def test_what_a_power_failure_left_of_a_commit_is_none(engine: hj.Engine, folder: Path, left: bytes) -> None:
    engine.execute("CREATE SINK s FROM t INTO DELTA 's'")
    put(engine, 1, 1)
    put(engine, 2, 2)
    engine.close()
    (folder / "sinks" / "s" / "_delta_log" / f"{3:020}.json").write_bytes(left)
    with hj.Engine(folder):
        assert len(rows(folder / "sinks" / "s")) == 2
    shutil.rmtree(folder / "sinks" / "s" / "_delta_log")
    (folder / "sinks" / "s" / "_delta_log").mkdir()
    (folder / "sinks" / "s" / "_delta_log" / f"{0:020}.json").write_bytes(left)
    with hj.Engine(folder):
        assert len(rows(folder / "sinks" / "s")) == 2


def test_what_does_not_continue_the_table_is_not_delivered(tmp_path: Path) -> None:
    source = table.TableShape("t", {"k": pa.int64()}, ["k"])
    found = courier.Courier("s", table.SinkTable(lambda: LocalPlace(tmp_path / "s"), "an id", source))
    one = Updates({"k": pa.array([1])}, np.array([0]), np.array([1]))
    found.gap = False
    found.offer(Delivery(None, 5, (one,)))
    found.wait()
    assert (found.upper, found.gap) == (5, False)
    found.offer(Delivery(7, 9, (one,)))  # whoever offers it was interrupted before what came between
    found.wait()
    assert (found.upper, found.gap, found.waiting) == (5, True, 0)
    assert rows(tmp_path / "s") == {(1,): 1}


def test_what_history_no_longer_has_is_found_as_a_difference(engine: hj.Engine, folder: Path) -> None:
    engine.execute("CREATE SINK s FROM big INTO DELTA 's'")
    put(engine, 1, 1, 2)
    engine.flush()
    kept = folder / "kept"
    shutil.copytree(folder / "sinks" / "s", kept)
    put(engine, 2, 3)
    engine.apply({"t": hj.deletes([{"k": 1, "v": 9}])}, time=3)
    engine.advance(to=100)
    engine.compact()
    engine.close()
    shutil.rmtree(folder / "sinks" / "s")
    shutil.copytree(kept, folder / "sinks" / "s")  # as if the process had died before those batches were delivered
    with hj.Engine(folder):
        assert rows(folder / "sinks" / "s") == {(2, 9): 1, (3, 9): 1}
        assert "history does not reach back" in DeltaTable(folder / "sinks" / "s").history(1)[0]["halfjoin.note"]


@pytest.mark.parametrize(("most", "uppers"), [(64, ["6", "5", "4", "2"]), (2, ["6", "2"])])
def test_each_batch_that_was_missed_is_a_commit_of_its_own(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch, most: int, uppers: list[str]
) -> None:
    """As if the process had died before it delivered them. Very many batches share one commit."""
    monkeypatch.setattr(sinks, "MOST_MISSED", most)
    engine.execute("CREATE SINK s FROM big INTO DELTA 's'")
    path, kept = folder / "sinks" / "s", folder / "kept"
    put(engine, 1, 1)
    engine.flush()
    shutil.copytree(path, kept)
    expected = {}
    for time, gone in ((3, 1), (4, 3), (5, 4)):
        engine.apply({"t": [{"k": time, "v": 9}, {"k": gone, "v": 9, "__diff": -1}]}, time=time)
        expected[str(time + 1)] = bag(engine.read("big"))
    engine.close()
    shutil.rmtree(path)
    shutil.copytree(kept, path)
    with hj.Engine(folder):
        found = {commit["halfjoin.upper"]: commit["version"] for commit in DeltaTable(path).history()
                 if commit.get("halfjoin.upper", "0") != "0"}  # fmt: skip
        assert list(found) == uppers
        assert all(rows(path, found[upper]) == seen for upper, seen in expected.items() if upper in found)


def test_what_is_in_files_is_delivered_in_pieces(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first fill, a gap or a difference of any size has few rows in memory at a time."""
    most, held = 100, []
    monkeypatch.setattr(limits, "PIECE_ROWS", most)
    monkeypatch.setattr(table, "ROWS", 50)
    monkeypatch.setattr(limits, "READ_ROWS", most)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 25)
    summed = table.SinkTable._summed
    monkeypatch.setattr(table.SinkTable, "_summed",
                        lambda self, rows: [held.append(len(rows)), summed(self, rows)][1])  # fmt: skip
    path, kept = folder / "sinks" / "s", folder / "kept"
    with hj.Engine(folder, memory=1, retain=5) as engine:
        engine.execute(DDL)
        put(engine, 1, *range(2000))
        engine.apply({"t": hj.deletes([{"k": k, "v": 9} for k in range(0, 2000, 3)])}, time=2)
        engine.flush()
        engine.execute("CREATE SINK s FROM big INTO DELTA 's'")
        assert max(held) <= 2 * most and sum(held) >= 2000
        assert rows(path) == bag(engine.read("big"))
        shutil.copytree(path, kept)
        put(engine, 3, *range(5000, 6000))
        engine.apply({"t": hj.deletes([{"k": k, "v": 9} for k in range(1, 2000, 3)])}, time=4)
    for last in (20, 21):  # a gap, and one that history does not reach back to
        shutil.rmtree(path)
        shutil.copytree(kept, path)
        held.clear()
        with hj.Engine(folder, memory=1) as engine:
            assert rows(path) == bag(engine.read("big"))
            assert max(held) <= 2 * most and sum(held) >= 1600
            engine.advance(to=last)
            engine.compact()


def test_a_full_disk_delays_the_table_alone(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.execute("CREATE SINK s FROM big INTO DELTA 's'")
    write = LocalPlace.write

    def full(self: LocalPlace, name: str, data: pa.Buffer) -> None:
        if "sinks" in self.path.parts:
            raise OSError(28, "No space left on device")
        write(self, name, data)

    monkeypatch.setattr(LocalPlace, "write", full)
    monkeypatch.setattr(courier, "MOST_WAITING", 3)  # what waits longer is taken from history again
    for time in range(1, 6):
        put(engine, time, time)
    with pytest.raises(hj.StorageError, match=r"s: .*No space left"):
        engine.flush()
    assert engine.read("big").num_rows == 5
    assert shown(engine)[0]["upper"] == 0 and shown(engine)[0]["waiting"] in (1, 2, 3)
    with pytest.raises(hj.StorageError, match="No space left"):
        engine.execute("CREATE SINK other FROM big INTO DELTA 'other'")
    monkeypatch.undo()
    engine.execute("CREATE SINK other FROM big INTO DELTA 'other'")
    put(engine, 6, 6)
    engine.flush()
    assert sum(rows(folder / "sinks" / "s").values()) == 6
    assert {path.name for path in (folder / "sinks" / "s").glob("*.parquet")} == set(
        map(str, pa.table(DeltaTable(folder / "sinks" / "s").get_add_actions())["path"].to_pylist())
    ), "files of failed commits are there"


def test_a_deletion_rewrites_the_files_that_hold_the_row_alone(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "ROWS", 10)
    put(engine, 1, *range(100))
    engine.execute("CREATE SINK s FROM t INTO DELTA 's'")
    path = folder / "sinks" / "s"
    before = set(DeltaTable(path).file_uris())
    assert len(before) == 10
    engine.apply({"t": hj.deletes([{"k": 42, "v": 9}, {"k": 47, "v": 9}, {"k": 91, "v": 9}])}, time=2)
    engine.flush()
    assert len(before - set(DeltaTable(path).file_uris())) == 2
    assert sum(rows(path).values()) == 97


def test_small_files_are_merged_and_old_ones_removed(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "KEEP_HOURS", 0)
    monkeypatch.setattr(table, "CLEAN_EVERY", 10)
    engine.execute("CREATE SINK s FROM t INTO DELTA 's'")
    path = folder / "sinks" / "s"
    (path / "of the user.txt").write_text("mine")
    for time in range(60):
        put(engine, time, time)
    engine.flush()
    found = DeltaTable(path)
    assert sum(rows(path).values()) == 60
    assert len(found.file_uris()) <= 2 * delta.GROWTH
    assert len(list(path.glob("*.parquet"))) < 60
    assert (path / "of the user.txt").exists()
    merged = [commit for commit in found.history() if commit.get("halfjoin.note") == "files merged"]
    assert merged and all(rows(path, c["version"]) == rows(path, c["version"] - 1) for c in merged[:1])


def test_the_checkpoints_of_many_versions_are_few(
    engine: hj.Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "ENTRIES_A_VERSION", 2)  # as with 50 after 25 times as many versions
    engine.execute("CREATE SINK s FROM t INTO DELTA 's'")
    for time in range(200):
        put(engine, time, time)
        if time % 50 == 0:
            engine.flush()
    engine.flush()
    path = folder / "sinks" / "s"
    versions = [int(file.name[:20]) for file in sorted(path.glob("_delta_log/*.checkpoint.parquet"))]
    steps = [later - one for one, later in pairwise(versions)]
    assert steps[0] == 20 and steps == sorted(steps) and steps[-1] >= 60, versions
    assert sum(rows(path).values()) == 200


def test_a_sink_that_misses_nothing_loads_nothing(engine: hj.Engine, folder: Path) -> None:
    engine.execute("CREATE SINK s FROM big INTO DELTA 's'")
    put(engine, 1, 1)
    put(engine, 2, 2, v=1)  # not in the view, so that the table does not know of it
    engine.close()
    version = DeltaTable(folder / "sinks" / "s").version()
    with hj.Engine(folder) as again:
        assert [sink.upper for sink in again.stats().sinks] == [3]
        assert not any(collection.runs for collection in again.stats().collections)
    assert DeltaTable(folder / "sinks" / "s").version() == version

"""Files that were read stay open while they are there, and not too many of them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time as clock
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfjoin as hj
from halfjoin.engine.storage import delta, flusher, open_files
from halfjoin.engine.storage.open_files import Recent, close_inside, read
from halfjoin.engine.storage.parquet import write_file, write_plain
from halfjoin.engine.storage.parquet_reader import opened
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.updates.updates import Updates


def held(folder: Path) -> list[str]:
    """The files of rows in a folder, or removed from it, that this process has open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:  # that of the listing itself
            continue
    return [name for name in found if name.startswith(str(folder)) and ".parquet" in name]


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="lists open files")
def test_removed_files_take_no_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "KEEP_HOURS", 0)
    with hj.Engine(tmp_path / "w", memory=1, clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY)")
        for time in range(1, 6):
            engine.apply({"t": [{"k": time}]}, time=time)
            engine.compact()
            assert engine.read("t").num_rows == time
        assert not [name for name in held(tmp_path) if name.endswith("(deleted)")]
        assert held(tmp_path)
        with hj.Engine(tmp_path / "w", read_only=True) as reader:
            assert reader.read("t").num_rows == 5
    assert not held(tmp_path)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="lists open files")
def test_a_reader_closes_what_another_process_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "KEEP_HOURS", 0)
    monkeypatch.setattr(flusher, "close_removed", lambda: None)  # in the other process, it closes nothing here
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY)")
        with hj.Engine(tmp_path / "w", memory=1, read_only=True) as reader:
            for time in range(1, 6):
                engine.apply({"t": [{"k": time}]}, time=time)
                engine.compact()
                assert reader.read("t").num_rows == time
            reader.read("t")
            assert not [name for name in held(tmp_path) if name.endswith("(deleted)")]


def test_a_file_of_another_warehouse_does_not_end_a_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its disk may have failed, or it may be removed at that moment."""
    size = LocalPlace.size

    def failing(self: LocalPlace, name: str) -> int | None:
        if self.path == tmp_path / "other":
            raise OSError("Stale file handle")
        return size(self, name)

    (tmp_path / "other").mkdir()
    write_plain(LocalPlace(tmp_path / "other"), "part", pa.table({"k": [1]}))
    open_files.OPEN.of(LocalPlace(tmp_path / "other"), "part")
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY)")
        engine.apply({"t": [{"k": 1}]}, time=1)
        monkeypatch.setattr(LocalPlace, "size", failing)
        engine.flush()


def test_one_thread_at_a_time_reads_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if an engine has closed the file meanwhile, and so another one has its footer anew."""
    place, schema, ones = LocalPlace(tmp_path), {"k": pa.int64()}, np.ones(3, np.int64)
    write_file(place, "part", Updates({"k": pa.array(range(3))}, ones, ones), schema, ["k"])
    before = opened(place, "part")
    close_inside(place)
    after, reading, read = opened(place, "part"), list[pq.ParquetFile](), pq.ParquetFile.read_row_groups

    def watched(self: pq.ParquetFile, *args: Any, **named: Any) -> pa.Table:
        assert self not in reading
        reading.append(self)
        clock.sleep(0.05)
        reading.remove(self)
        return read(self, *args, **named)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", watched)
    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(lambda one: one.columns(np.array([0]), schema), (before, after)):
            assert found["k"].to_pylist() == [0, 1, 2]


def test_the_file_not_read_for_longest_is_closed(tmp_path: Path) -> None:
    place, files = LocalPlace(tmp_path), Recent(2, lambda place, name: read(place, name, None))
    for name in "abc":
        write_plain(place, name, pa.table({"k": [name]}))
    a, b = files.of(place, "a"), files.of(place, "b")
    assert files.of(place, "a") is a
    files.of(place, "c")
    assert files.of(place, "a") is a
    assert files.of(place, "b") is not b
    (tmp_path / "a").unlink()
    close_inside(LocalPlace(tmp_path.parent))
    with pytest.raises(FileNotFoundError):
        files.of(place, "a")


def test_another_file_of_the_name_is_another(tmp_path: Path) -> None:
    """A folder that is put back has files of the same names."""
    place, schema, one = LocalPlace(tmp_path), {"k": pa.int64()}, np.ones(1, np.int64)
    for length in (1, 2):
        rows = Updates({"k": pa.array(range(length))}, np.repeat(one, length), np.repeat(one, length))
        write_file(place, "part", rows, schema, ["k"])
        assert opened(place, "part").rows == length
        close_inside(place)


@pytest.mark.parametrize(("allowed", "most"), [(256, 64), (20_000, 256), (resource.RLIM_INFINITY, 256)])
def test_some_systems_allow_few_open_files(monkeypatch: pytest.MonkeyPatch, allowed: int, most: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (allowed, allowed))
    assert open_files._most() == most


def _with_few_files(folder: str) -> None:
    """Runs in a process that has not used Delta tables yet: their library panics if it can open no files."""
    engine = hj.Engine(folder, clock="own")
    engine.execute("CREATE TABLE t (k bigint); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    said = set()
    for more in range(12):
        engine.apply({"t": [{"k": more}]}, time=more)
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1 + more, before[1]))
        for work in (engine.flush, lambda: engine.execute("CREATE SINK s FROM v INTO DELTA 's'")):
            try:
                work()
            except hj.StorageError as problem:
                said.add("tokio" in str(problem) or "UnixStream" in str(problem))
                assert "Too many open files" in str(problem), problem
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        engine.execute("DROP SINK IF EXISTS s")
    engine.flush()
    print(True in said, engine.read("v").to_pylist())


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="counts open files")
def test_a_panic_of_a_library_is_an_error_of_the_disk(tmp_path: Path) -> None:
    code = f"from tests.storage.test_open_files import _with_few_files; _with_few_files({str(tmp_path / 'w')!r})"
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True [{'n': 12}]\n"

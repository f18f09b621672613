"""Files that were read stay open while they are there, and not too many of them."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.storage import delta, open_files
from halfjoin.engine.storage.open_files import OpenFiles
from halfjoin.engine.storage.parquet import write_plain
from halfjoin.engine.storage.place import LocalPlace


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


def test_the_file_not_read_for_longest_is_closed(tmp_path: Path) -> None:
    place, files = LocalPlace(tmp_path), OpenFiles(2)
    for name in "abc":
        write_plain(place, name, pa.table({"k": [name]}))
    a, b = files.file(place, "a"), files.file(place, "b")
    assert files.file(place, "a") is a
    files.file(place, "c")
    assert files.file(place, "a") is a
    assert files.file(place, "b") is not b
    (tmp_path / "a").unlink()
    files.close_removed()
    with pytest.raises(FileNotFoundError):
        files.file(place, "a")


@pytest.mark.parametrize(("allowed", "most"), [(256, 64), (20_000, 256), (resource.RLIM_INFINITY, 256)])
def test_some_systems_allow_few_open_files(monkeypatch: pytest.MonkeyPatch, allowed: int, most: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (allowed, allowed))
    assert open_files._most() == most

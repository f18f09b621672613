"""A warehouse that is moved, removed or replaced while an engine has it open: no batch is acknowledged that nobody will
see again, and nothing goes into another warehouse."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import halfjoin as hj

GONE = pytest.raises(hj.HalfjoinError, match=r"was (moved or removed|replaced) while this engine had it open")
WAYS: dict[str, Callable[[Path], object]] = {
    "removed": shutil.rmtree,
    "moved": lambda folder: folder.rename(folder.with_name("elsewhere")),
    "without its journal": lambda folder: [path.unlink() for path in folder.glob("journal*")],
    "without its write-ahead file": lambda folder: (folder / "journal.sqlite-wal").unlink(),
    "without its lock": lambda folder: (folder / "lock").unlink(),
}


def filled(folder: Path, time: int) -> hj.Engine:
    """An open engine with a table of one row."""
    engine = hj.Engine(folder, retain=5, clock="own")
    engine.execute("CREATE TABLE t (k bigint)")
    engine.apply({"t": [{"k": time}]}, time=time)
    return engine


@pytest.mark.parametrize("way", WAYS)
def test_no_batch_is_acknowledged_there(tmp_path: Path, way: str) -> None:
    with filled(tmp_path / "w", 1000) as engine:
        WAYS[way](tmp_path / "w")
        with GONE:
            engine.apply({"t": [{"k": 1}]}, time=1001)
        with GONE:
            engine.execute("CREATE TABLE u (k bigint)")
        assert engine.read("t").to_pylist() == [{"k": 1000}]


def test_a_file_in_place_of_the_warehouse(tmp_path: Path) -> None:
    with filled(tmp_path / "w", 1000) as engine:
        (tmp_path / "w").rename(tmp_path / "v")
        (tmp_path / "w").write_text("")
        with GONE:
            engine.apply({"t": [{"k": 1}]}, time=1001)


def test_a_warehouse_put_back_goes_on(tmp_path: Path) -> None:
    with filled(tmp_path / "w", 1000) as engine:
        (tmp_path / "w").rename(tmp_path / "v")
        with GONE:
            engine.apply({"t": [{"k": 1}]}, time=1001)
        (tmp_path / "v").rename(tmp_path / "w")
        engine.apply({"t": [{"k": 1}]}, time=1001)
        engine.flush()
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.read("t").num_rows == 2


def test_nothing_is_flushed_into_the_next_warehouse(tmp_path: Path) -> None:
    """Its updates would be taken for this one's, and get times of this one's history."""
    with filled(tmp_path / "w", 1000) as former:
        shutil.rmtree(tmp_path / "w")
        with filled(tmp_path / "w", 1) as engine:
            for work in (former.flush, former.compact):
                with GONE:
                    work()
            engine.apply({"t": [{"k": 2}]}, time=2)
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.read("t", as_of=1).num_rows == 1
        assert engine.read("t").num_rows == 2


def test_a_reader_says_that_its_warehouse_is_gone(tmp_path: Path) -> None:
    with filled(tmp_path / "w", 1) as former, hj.Engine(tmp_path / "w", read_only=True) as reader:
        assert reader.read("t").num_rows == 1
        former.close()
        shutil.rmtree(tmp_path / "w")
        with GONE:
            reader.read("t")
        with filled(tmp_path / "w", 1), GONE:
            reader.read("t")

"""Copies of a warehouse's folder: what is a backup, and what is told of one that is none."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import halfjoin as hj

DDL = """CREATE TABLE t (id bigint PRIMARY KEY);
    CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n, max(id) AS last FROM t"""
WRITER = f"""
import itertools, sys
import halfjoin as hj
engine = hj.Engine(sys.argv[1], clock="own")
engine.execute({DDL!r})
for time in itertools.count(1):
    engine.apply({{"t": [{{"id": time}}]}}, time=time)
    print(time, flush=True)
    if time % 20 == 0:
        engine.flush()
"""


def _apply(engine: hj.Engine, *times: int) -> None:
    for time in times:
        engine.apply({"t": [{"id": time}]}, time=time)


def _journal_alone(source: Path, target: Path) -> None:
    """Copy the journal as of now, without the tables."""
    target.mkdir()
    with closing(sqlite3.connect(source / "journal.sqlite")) as one, closing(
            sqlite3.connect(target / "journal.sqlite")) as other:  # fmt: skip
        one.backup(other)


def _tables(source: Path, target: Path) -> None:
    for folder in filter(Path.is_dir, source.iterdir()):
        shutil.copytree(folder, target / folder.name)


@contextmanager
def _writing(folder: Path) -> Iterator[hj.Engine]:
    """A warehouse of three batches, of which the last one is not flushed."""
    with hj.Engine(folder, clock="own") as engine:
        engine.execute(DDL)
        _apply(engine, 1, 2)
        engine.flush()
        _apply(engine, 3)
        yield engine


def test_a_copy_of_a_closed_warehouse_goes_on(tmp_path: Path) -> None:
    with _writing(tmp_path / "w"):
        pass
    shutil.copytree(tmp_path / "w", tmp_path / "copy")
    with hj.Engine(tmp_path / "w") as engine:
        _apply(engine, 4)
        engine.flush()
    for _ in range(2):
        with hj.Engine(tmp_path / "copy") as engine:
            assert engine.read("n").to_pylist() == [{"n": 3, "last": 3}]
            engine.flush()


def test_a_copy_of_a_stopped_process_goes_on(tmp_path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, tmp_path / "w"], stdout=subprocess.PIPE, text=True)
    try:
        assert writer.stdout is not None
        while int(writer.stdout.readline()) < 50:
            pass
        writer.send_signal(signal.SIGSTOP)
        shutil.copytree(tmp_path / "w", tmp_path / "copy")
        writer.send_signal(signal.SIGCONT)
        writer.stdout.readline()
    finally:
        writer.kill()
        rest, _ = writer.communicate()
    with hj.Engine(tmp_path / "copy") as engine:
        (found,) = engine.read("n").to_pylist()
        assert 50 <= found["n"] == found["last"] <= 50 + len(rest.splitlines()) + 1
        _apply(engine, found["last"] + 1)
        engine.flush()
        assert engine.read("n").to_pylist() == [{"n": found["n"] + 1, "last": found["n"] + 1}]


def test_a_journal_that_is_older_than_its_tables_is_refused(tmp_path: Path) -> None:
    with _writing(tmp_path / "w") as engine:
        _journal_alone(tmp_path / "w", tmp_path / "copy")
        _apply(engine, 4, 5)
        engine.flush()
        _tables(tmp_path / "w", tmp_path / "copy")
    with pytest.raises(hj.StorageError, match=r"copy/.* has batches up to entry \d+, but the journal ends at"):
        hj.Engine(tmp_path / "copy")
    with hj.Engine(tmp_path / "copy", read_only=True) as reader:
        assert reader.read("n").to_pylist() == [{"n": 3, "last": 3}]


def test_a_flush_does_not_take_batches_for_flushed_that_are_not(tmp_path: Path) -> None:
    """The tables are put back while the engine runs."""
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(DDL)
        _apply(engine, 1)
        engine.flush()
        _journal_alone(tmp_path / "w", tmp_path / "copy")
        _tables(tmp_path / "w", tmp_path / "copy")
        _apply(engine, 2, 3, 4)
        engine.flush()
    with hj.Engine(tmp_path / "copy") as engine:
        shutil.rmtree(tmp_path / "copy" / "tables")
        shutil.copytree(tmp_path / "w" / "tables", tmp_path / "copy" / "tables")
        engine.apply({"t": [{"id": 7}]}, time=2)
        with pytest.raises(hj.StorageError, match="the journal ends at"):
            engine.flush()
        assert sorted(engine.read("t")["id"].to_pylist()) == [1, 7]


def test_tables_that_are_older_than_the_journal_are_an_error(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(DDL)
        _apply(engine, 1)
        engine.flush()
        shutil.copytree(tmp_path / "w" / "tables", tmp_path / "old")
        _apply(engine, 2)
        engine.flush()
    shutil.rmtree(tmp_path / "w" / "tables")
    (tmp_path / "old").rename(tmp_path / "w" / "tables")
    with hj.Engine(tmp_path / "w") as engine, pytest.raises(hj.StorageError, match=r"version .* of the table .*/t"):
        engine.read("t")

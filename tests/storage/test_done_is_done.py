"""What follows the commit may fail, on a full disk say, or where no thread can be started: no error tells otherwise."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.storage.journal import Journal

VIEW = "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT k FROM t WHERE k"


def broken(self: Journal, *args: Any) -> Any:
    """Fail as a journal on a disk that is full, or whose reads fail."""
    with self._guarded():
        raise sqlite3.OperationalError("database or disk is full")


def no_thread(self: Thread) -> None:
    """Fail as where the system has no more threads."""
    raise RuntimeError("can't start new thread")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[hj.Engine]:
    """An engine with a table and a view of it, both of which are in files."""
    with hj.Engine(tmp_path / "w", clock="own") as made:
        made.execute(f"CREATE TABLE t (k bigint); {VIEW} > 0")
        made.apply({"t": [{"k": 1}, {"k": 2}]}, time=1)
        made.flush()
        yield made
    with hj.Engine(tmp_path / "w") as again:
        assert sorted(row["k"] for row in again.read("v").to_pylist()) == [2, 3]


@pytest.mark.parametrize("failing", ["removed", "unclaimed", "pending", "collections"])
def test_a_kept_definition_has_not_failed(
    engine: hj.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    commit = Journal._keep

    def kept(self: Journal) -> None:
        commit(self)
        monkeypatch.setattr(Journal, failing, broken)

    monkeypatch.setattr(Journal, "_keep", kept)
    engine.execute(f"SET TIME = 2; BEGIN; {VIEW} > 1; INSERT INTO t VALUES (3); COMMIT")
    assert engine.read("v").num_rows == 2
    monkeypatch.undo()
    assert engine.read("t").num_rows == 3


def test_a_sink_without_a_thread_falls_behind(
    engine: hj.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.execute("CREATE SINK s FROM v INTO DELTA 's'")
    engine.flush()
    with monkeypatch.context() as without:
        without.setattr(Thread, "start", no_thread)
        engine.apply({"t": [{"k": 1, "__diff": -1}, {"k": 3}]}, time=2)
        assert engine.stats().sinks[0].error == "the table cannot be written: can't start new thread"
    engine.flush()
    assert engine.stats().sinks[0].error is None

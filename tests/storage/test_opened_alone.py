"""What a batch opens, it asks the journal for alone: a warehouse may have thousands of collections."""

from __future__ import annotations

from pathlib import Path

import pytest

import halfjoin as hj
from halfjoin.engine.storage.journal import Journal


def test_a_collection_is_read_from_the_journal_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hj.Engine(tmp_path) as engine:
        for n in range(20):
            engine.execute(f"CREATE TABLE t{n} (k bigint PRIMARY KEY, x bigint); INSERT INTO t{n} VALUES (1, 2)")
    found: list[int] = []
    collections = Journal.collections

    def counted(journal: Journal, number: int | None = None) -> list[object]:
        rows = collections(journal, number)
        found.append(len(rows))
        return [*rows]

    with hj.Engine(tmp_path) as engine:
        monkeypatch.setattr(Journal, "collections", counted)
        for n in range(5):
            engine.execute(f"UPDATE t{n} SET x = 3")
        assert found and max(found) == 1
        assert engine.query("SELECT x FROM t4").to_pylist() == [{"x": 3}]

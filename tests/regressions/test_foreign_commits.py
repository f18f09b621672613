"""Commits of others in the tables of a warehouse: their rows do not count, and the message's remedy works."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import halfjoin as hj
from halfjoin.engine.storage import delta
from tests.oracle.rows import bag

ALL = {(1, 10): 1, (2, 20): 1}
_OTHER = pa.table({"k": [1], "v": [99], "__time": [1], "__diff": [1]})


def _filled(folder: Path) -> None:
    with hj.Engine(folder) as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY, v bigint); CREATE TABLE u (k bigint)")
        engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k, v FROM t")
        for number in (1, 2):
            engine.apply({"t": [{"k": number, "v": 10 * number}], "u": [{"k": number}]}, time=number)
            engine.flush()


def _append(path: Path) -> None:
    write_deltalake(path, _OTHER, mode="append")


def _overwrite(path: Path) -> None:
    write_deltalake(path, _OTHER, mode="overwrite")


def _delete(path: Path) -> None:
    DeltaTable(path).delete("k = 1")


def _property(path: Path) -> None:
    DeltaTable(path).alter.set_table_properties({"delta.appendOnly": "true"})


def _optimize(path: Path) -> None:
    DeltaTable(path).optimize.compact()


def _vacuum(path: Path) -> None:
    DeltaTable(path).optimize.compact()
    DeltaTable(path).vacuum(0, dry_run=False, enforce_retention_duration=False)


def _checkpoint(path: Path) -> None:
    DeltaTable(path).create_checkpoint()
    DeltaTable(path).cleanup_metadata()


def _taken_back(path: Path) -> None:
    version = DeltaTable(path).version()
    _append(path)
    DeltaTable(path).restore(version)


def _put_right(message: str) -> None:
    """Follow the message's remedy."""
    found = re.search(r"DeltaTable\('([^']+)'\)\.restore\((\d+)\)", message)
    assert found is not None, message
    DeltaTable(found[1]).restore(int(found[2]))


@pytest.mark.parametrize("change", [_append, _overwrite, _delete, _property])
@pytest.mark.parametrize("name", ["tables/t", "views/w"])
def test_a_foreign_commit_is_reported_until_it_is_taken_back(
    tmp_path: Path, change: Callable[[Path], None], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "w"
    _filled(folder)
    change(folder / name)
    with hj.Engine(folder) as engine:
        assert f"somebody else wrote the table {folder / name}" in caplog.text
        broken = {c.name for c in engine.stats().collections if c.foreign}
        assert broken == {name.partition("/")[2]}
        assert bag(engine.read("t")) == bag(engine.read("w")) == ALL
        engine.apply({"t": [{"k": 3, "v": 30}], "u": [{"k": 3}]}, time=3)
        for step in (engine.flush, engine.compact, engine.flush):
            with pytest.raises(hj.StorageError, match=f"somebody else wrote the table .*{name}.*restore"):
                step()
        assert DeltaTable(folder / "tables" / "u").to_pyarrow_table().num_rows == 3
        assert bag(engine.read("t")) == bag(engine.read("w")) == {**ALL, (3, 30): 1}
    with hj.Engine(folder, read_only=True) as reader:
        assert {c.name for c in reader.stats().collections if c.foreign} == broken
        assert bag(reader.read("t")) == bag(reader.read("w")) == {**ALL, (3, 30): 1}
    with hj.Engine(folder) as engine:
        with pytest.raises(hj.StorageError) as problem:
            engine.flush()
        _put_right(str(problem.value))
        engine.flush()
        assert not any(c.foreign for c in engine.stats().collections)
        engine.compact()
        assert bag(engine.read("t")) == bag(engine.read("w")) == {**ALL, (3, 30): 1}
    for path, rows in (("tables/t", 3), ("views/w", 3), ("tables/u", 3)):
        assert DeltaTable(folder / path).to_pyarrow_table().num_rows == rows
    with hj.Engine(folder) as engine:
        assert bag(engine.read("t")) == bag(engine.query("SELECT * FROM w")) == {**ALL, (3, 30): 1}


@pytest.mark.parametrize("memory", [None, 1])
@pytest.mark.parametrize("care", [_optimize, _vacuum, _checkpoint, _taken_back])
def test_care_that_changes_no_rows_is_harmless(
    tmp_path: Path, care: Callable[[Path], None], memory: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "w"
    _filled(folder)
    with hj.Engine(folder, memory=memory) as engine, hj.Engine(folder, read_only=True, memory=memory) as reader:
        for number in range(3, 9):
            for path in ("tables/t", "views/w"):
                care(folder / path)
            rows = {(k, 10 * k): 1 for k in range(1, number)}
            assert bag(engine.read("t")) == bag(reader.read("t")) == bag(reader.read("w")) == rows
            if number % 2:
                engine.close()
                engine = hj.Engine(folder, memory=memory)
            engine.apply({"t": [{"k": number, "v": 10 * number}]}, time=number)
            engine.flush()
            if number == 6:
                engine.compact()
        with pytest.raises(hj.InvalidRow):
            engine.apply({"t": [{"k": 1, "v": 1}]}, time=20)
        engine.close()
    assert "somebody" not in caplog.text
    assert DeltaTable(folder / "tables" / "t").to_pyarrow_table().num_rows == 8


def test_a_foreign_commit_between_the_steps_of_a_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "w"
    _filled(folder)
    for step in ("append", "merge", "held"):
        with hj.Engine(folder) as engine, monkeypatch.context() as meanwhile:
            original: Any = getattr(delta.DeltaFolder, step)

            def late(self: Any, *args: Any, original: Any = original, **kwargs: Any) -> Any:
                meanwhile.undo()
                _append(Path(str(self.place)))
                return original(self, *args, **kwargs)

            rows = engine.read("t").num_rows
            meanwhile.setattr(delta.DeltaFolder, step, late)
            engine.apply({"t": [{"k": 5 + rows, "v": 5}]}, time=engine.stats().upper)
            for _ in range(2):
                try:
                    engine.flush()
                except hj.StorageError as problem:
                    message = str(problem)
            assert engine.read("t").num_rows == rows + 1
        with hj.Engine(folder) as engine:
            assert engine.read("t").num_rows == rows + 1
            with pytest.raises(hj.StorageError, match="somebody else wrote"):
                engine.flush()
            _put_right(message)
            engine.compact()
        with hj.Engine(folder) as engine:
            assert engine.read("t").num_rows == rows + 1


def test_a_table_put_where_one_is_to_be_stays(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    with hj.Engine(folder) as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        engine.apply({"t": [{"k": 1}]}, time=1)
        write_deltalake(folder / "tables" / "t", _OTHER)
        with pytest.raises(hj.StorageError, match=r"somebody else made the table .*tables/t; move it away"):
            engine.flush()
        (folder / "tables" / "t").rename(tmp_path / "t")
        engine.flush()
        assert bag(engine.read("t")) == {(1,): 1}
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 1

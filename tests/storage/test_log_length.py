"""The log of a table does not grow with its flushes, and is never shorter than its readers may need."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable

import halfjoin as hj
from halfjoin.engine.storage import delta
from halfjoin.engine.storage.commits import shorten
from halfjoin.engine.storage.delta import DeltaFolder, Layout
from halfjoin.engine.storage.place import LOG, LocalPlace
from halfjoin.engine.updates.updates import Updates
from tests.oracle.rows import bag

LAYOUT = Layout({"k": pa.int64()}, ("k",))
FLUSHES = 70


def _appended(table: DeltaFolder, count: int, version: int | None = None) -> int | None:
    for entry in range(count):
        one = np.ones(1, np.int64)
        version = table.append([Updates({"k": pa.array([entry])}, one, one)], [], LAYOUT, entry, version)
    return version


def test_the_logs_of_many_flushes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "KEEP_HOURS", 0)
    folder, kept = tmp_path / "w", {(number,): 1 for number in range(1, FLUSHES + 1)}
    with hj.Engine(folder, clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
        with hj.Engine(folder, read_only=True, memory=1) as reader:
            for number in range(1, FLUSHES + 1):
                engine.apply({"t": [{"k": number}]}, time=number)
                engine.flush()
                assert reader.read("v").num_rows == number
    for name in ("tables/t", "views/v"):
        assert len(os.listdir(folder / name / LOG)) < FLUSHES / 2
        assert DeltaTable(folder / name).to_pyarrow_table().num_rows == FLUSHES
    with hj.Engine(folder) as engine:
        assert bag(engine.read("v")) == kept
        engine.apply({"t": [{"k": 0}]}, time=FLUSHES + 1)
        engine.flush()
        assert DeltaTable(folder / "views/v").to_pyarrow_table().num_rows == FLUSHES + 1


def test_the_version_before_a_checkpoint_stays(tmp_path: Path) -> None:
    """It was the newest one until now, however old it is."""
    table = DeltaFolder(LocalPlace(tmp_path / "t"), "app")
    version, old = _appended(table, 18), time.time() - 40 * 24 * 3600
    for name in os.listdir(tmp_path / "t" / LOG):
        os.utime(tmp_path / "t" / LOG / name, (old, old))
    last = _appended(table, 1, version)
    assert (tmp_path / "t" / LOG / f"{last:020}.checkpoint.parquet").exists()
    shorten(table.place, 1)
    assert DeltaTable(tmp_path / "t", version=version).version() == version
    shorten(table.place, 0)
    assert DeltaTable(tmp_path / "t").version() == last
    assert not (tmp_path / "t" / LOG / f"{version:020}.json").exists()


def test_the_shortened_log_of_an_earlier_collection_is_ours(tmp_path: Path) -> None:
    earlier, later = (DeltaFolder(LocalPlace(tmp_path / "t"), f"app/{number}") for number in (1, 2))
    _appended(earlier, 30)
    shorten(earlier.place, 0)
    assert later.recover(0, None) == (0, None)
    _appended(later, 2)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 2

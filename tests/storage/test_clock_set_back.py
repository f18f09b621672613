"""A clock that is set back while an engine runs takes no files from it."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.storage import delta, filing, upkeep
from halfjoin.engine.storage.delta import DeltaFolder

ROWS = 40


@pytest.mark.parametrize("hours", [1.5, 30])
def test_the_files_of_a_batch_stay_that_comes_during_a_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: float
) -> None:
    """A merge removes files that no version has, but not those that this process has written since it started."""
    monkeypatch.setattr(delta, "_STARTED", time.time() + 3600 * hours)
    monkeypatch.setattr(filing, "BULK_ROWS", ROWS)
    flushing, applied, append = Event(), Event(), DeltaFolder.append

    def slow(at: DeltaFolder, *args: Any) -> Any:
        made = append(at, *args)
        if at.place.uri.endswith("tables/t") and not applied.is_set():
            flushing.set()
            assert applied.wait(60)
        return made

    with hj.Engine(tmp_path, clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        for at in range(delta.GROWTH):
            engine.apply({"t": [{"k": at}]}, time=at)
            engine.flush()
        monkeypatch.setattr(DeltaFolder, "append", slow)
        with monkeypatch.context() as patch:
            patch.setattr(upkeep, "FLUSH_BYTES", 1)
            engine.apply({"t": [{"k": at} for at in range(ROWS // 2)]}, time=100)
        assert flushing.wait(60)
        engine.apply({"t": [{"k": at} for at in range(ROWS)]}, time=101)
        applied.set()
        engine.compact()
    with hj.Engine(tmp_path) as engine:
        assert engine.read("t").num_rows == delta.GROWTH + ROWS // 2 + ROWS

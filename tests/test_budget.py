"""Collections larger than the budget: the view law where everything stays on disk, and what is held meanwhile."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

import halfjoin as hj
from halfjoin.engine import dataflow
from halfjoin.engine.storage import delta, merging, parquet, stored_run, warehouse
from tests.oracle.replay import Replay
from tests.oracle.rows import bag
from tests.oracle.streams import Program, Step
from tests.test_view_law import programs

BUDGETS = (1, 1, 500, 3_000, 1_000_000)  # bytes: nothing fits, nothing for long, some, everything


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows are many: row groups, files, ranges and parts of every kind."""
    for module, name, value in (
        (parquet, "GROUP_ROWS", 2), (parquet, "FILE_ROWS", 5), (stored_run, "READ_ROWS", 3),
        (stored_run, "SEARCHED_ROWS", 1), (merging, "RANGE_BYTES", 100), (warehouse, "BULK_ROWS", 4),
        (dataflow, "FILL_ROWS", 3), (dataflow, "MORSEL", 3), (delta, "GROWTH", 2),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


class TightReplay(Replay):
    """A replay with a budget, in which anything may go to disk between any two steps."""

    def __init__(self, retain: int, folder: Path, seed: int) -> None:
        self._folder, self._random = folder, random.Random(seed)
        super().__init__(retain, folder)
        self._reopen()

    def _reopen(self) -> None:
        self.engine.close()
        self.engine = hj.Engine(self._folder, memory=self._random.choice(BUDGETS))

    def step(self, step: Step) -> None:
        for _ in range(self._random.choice((0, 1, 1, 2))):
            match self._random.choice(("open", "flush", "flush", "compact", "evict", "evict")):
                case "open":
                    self._reopen()
                case "flush":
                    self.engine.flush()
                case "compact":
                    self.engine.compact()
                case "evict":
                    for collection in self.engine._state.collections():
                        collection.unload()
        super().step(step)
        held = self.engine._memory
        assert held.limit is None or held.used() <= held.limit


@settings(max_examples=settings().max_examples * 2)
@given(programs())
def test_view_law_with_everything_on_disk(program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        replay = TightReplay(program.retain, Path(folder) / "w", seed=len(program.steps))
        try:
            for step in program.steps:
                replay.step(step)
                replay.check_now()
            replay.check_all()
            replay.engine.flush()
            with hj.Engine(Path(folder) / "w", read_only=True, memory=1) as reader:
                for name in replay.watched:
                    assert bag(reader.read(name)) == bag(replay.engine.read(name))
        finally:
            replay.engine.close()

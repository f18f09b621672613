"""The durability law without kills: a warehouse that is closed and reopened is the same."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings

import halfjoin as hj
from halfjoin.engine.storage import upkeep
from tests.laws.test_view_law import programs
from tests.oracle.replay import Replay
from tests.oracle.streams import Program, Step
from tests.support.seeds import some


class DurableReplay(Replay):
    """A replay that may reopen, flush or compact the engine between any two steps."""

    def __init__(self, retain: int, folder: Path | str, seed: int) -> None:
        super().__init__(retain, folder)
        self._folder, self._random = folder, random.Random(seed)

    def step(self, step: Step) -> None:
        for _ in range(self._random.choice((0, 1, 1, 2))):
            match self._random.choice(("open", "open", "flush", "compact")):
                case "open":
                    self.engine.close()
                    self.engine = hj.Engine(self._folder)
                case "flush":
                    self.engine.flush()
                case "compact":
                    self.engine.compact()
        super().step(step)


@settings(max_examples=max(some(10), settings().max_examples // 2))
@given(programs())
def test_view_law_over_reopened_warehouses(program: Program) -> None:
    with tempfile.TemporaryDirectory() as folder:
        replay = DurableReplay(program.retain, Path(folder) / "w", seed=len(program.steps))
        with replay.engine:
            for step in program.steps:
                replay.step(step)
            replay.engine.close()
            replay.engine = hj.Engine(Path(folder) / "w")
            replay.check_now()
            replay.check_all()
            replay.engine.close()


def test_concurrent_flushes_lose_and_double_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "FLUSH_BYTES", 4000)
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint, v text)")
        engine.execute("CREATE MATERIALIZED VIEW w AS SELECT k FROM t WHERE k % 2 = 0")
        for number in range(120):
            engine.apply({"t": [{"k": number, "v": "x" * 20}]}, time=number)
            if number % 50 == 49:
                assert engine.read("t").num_rows == number + 1
    with hj.Engine(tmp_path / "w") as engine:
        assert sorted(engine.read("t")["k"].to_pylist()) == list(range(120))
        assert sorted(engine.read("w")["k"].to_pylist()) == list(range(0, 120, 2))
        assert engine.read("t", as_of=10).num_rows == 11

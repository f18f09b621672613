"""The durability law under SIGKILL: a reopened warehouse has exactly the acknowledged batches, and so have its sinks.

An everyday run kills a few times; HALFJOIN_CRASHES=300 kills many times.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from deltalake import DeltaTable

import halfjoin as hj
from tests.oracle.rows import Bag, bag
from tests.support.crashing import BUDGETS, VIEW, batch, contents, kind
from tests.support.seeds import some

CRASHES = int(os.environ.get("HALFJOIN_CRASHES") or some(5))
START_SECONDS = 120
ROOT = Path(__file__).resolve().parents[2]


def test_killed_at_any_instant(tmp_path: Path) -> None:
    rng = random.Random(CRASHES)
    done = -1
    for round in range(CRASHES):
        if done > 400:  # as many steps again take long to work out
            done, tmp_path = -1, tmp_path / "next"
            tmp_path.mkdir()
        folder = tmp_path / "w"
        done = _check(folder, _killed(folder, tmp_path / f"notes {round}", done, rng), round)


def _killed(folder: Path, notes: Path, done: int, rng: random.Random) -> int:
    """Start after step `done`, and kill at a random instant. Returns the last acknowledged step."""
    command = [sys.executable, "-m", "tests.support.crashing", str(folder), str(notes), str(done + 1)]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        opening = rng.random() < 0.1  # now and then while the warehouse is opened
        deadline = time.monotonic() + START_SECONDS
        while not opening and not (notes.exists() and notes.read_text()):
            assert process.poll() is None, "the process ended by itself"
            assert time.monotonic() < deadline, "the process does not start"
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.8))
        assert process.poll() is None, "the process ended by itself"
    finally:
        process.kill()
        process.wait()
    lines = notes.read_text().split() if notes.exists() else []
    steps = [int(line) for line in lines if line != "open"]
    assert steps == list(range(done + 1, done + 1 + len(steps)))
    return steps[-1] if steps else done


def _check(folder: Path, acknowledged: int, round: int) -> int:
    """Open the warehouse, compare it, and retry steps that are done. Returns the last step that it has."""
    with hj.Engine(folder, memory=BUDGETS[round % len(BUDGETS)]) as engine:
        found = _contents(engine)
        # The step under way when the process was killed may be there, too: nobody was told either way.
        there = [last for last in (acknowledged, acknowledged + 1) if contents(last) == found]
        assert there, f"round {round}: not the contents after step {acknowledged} or the next one"
        done = there[-1] if kind(acknowledged + 1) == "batch" else there[0]
        for head, _, sql in (statement.partition(" AS ") for statement in VIEW.split(";")):
            if (name := head.split()[-1]) in found:
                assert bag(engine.query(sql)) == found[name]
        for step in range(max(2, done - 5), done + 1):
            if kind(step) == "batch":
                upper = engine.stats().upper
                assert engine.apply(batch(step), time=step, batch_id=str(step)).upper == step + 1
                assert engine.stats().upper == upper
        assert _contents(engine) == found, f"round {round}: a batch tried again changed something"
        engine.flush()
        for sink in engine.stats().sinks:
            _check_sink(folder / "sinks" / sink.target, sink.collection, found, f"round {round}: sink {sink.name}")
    return done


def _check_sink(table: Path, collection: str, found: dict[str, Bag], what: str) -> None:
    """Check that the last version is what the engine reads, and each earlier one the contents at its own time."""
    assert bag(DeltaTable(table).to_pyarrow_table()) == found[collection], what
    for commit in DeltaTable(table).history(8):
        upper = int(commit.get("halfjoin.upper", 0))
        version = bag(DeltaTable(table, version=commit["version"]).to_pyarrow_table())
        expected = contents(upper - 1).get(collection, {}) if upper else {}
        assert version == expected, f"{what}: version {commit['version']} as of {upper - 1}"


def _contents(engine: hj.Engine) -> dict[str, Bag]:
    names = [collection.name for collection in engine.stats().collections if "#" not in collection.name]
    return {name: bag(engine.read(name)) for name in names}

"""The two runners give one answer: random programs through the local runner, Spark, and a mix of both."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.spark import primary_keys, probing, runner
from tests.oracle.choice import Seeded
from tests.oracle.rows import Bag, bag, updates
from tests.oracle.schema import BY_NAME, TABLES
from tests.oracle.streams import Advance, Apply, Compact, Create, Drop, Program, Step, Tune, random_program
from tests.support.small_jobs import INTERPRETED

PROGRAMS = int(os.environ.get("HALFJOIN_FUZZ", "4"))


def _carry_out(engine: hj.Engine, step: Step, given: Callable[[pa.Table], Any] | None = None) -> dict[str, Bag]:
    """Run a step. Returns the changes of each view, each row and time once. `given` converts the rows."""
    match step:
        case Apply(changes, close):
            tables = {name: BY_NAME[name].arrow(rows) for name, rows in changes.items()}
            applied = engine.apply({name: given(table) if given else table for name, table in tables.items()},
                                   close=close)  # fmt: skip
        case Advance(to):
            applied = engine.advance(to=to)
        case Compact():
            engine.compact()
            return {}
        case Tune(sql):
            _ = engine.execute(sql) if sql else engine.flush()
            return {}
        case Create(view):
            engine.execute(view.ddl)
            return {}
        case Drop(view):
            engine.execute(f"DROP MATERIALIZED VIEW {view.name}")
            return {}
    found = {}
    for name, table in applied.diffs.items():
        changes = updates(table)
        found[name] = Counter({(row, time): diff for row, time, diff in changes})
        assert len(found[name]) == len(changes), f"{name}: changes not consolidated"
        assert all(found[name].values()), f"{name}: an empty change"
    return found


def _limited(patch: pytest.MonkeyPatch, chance: random.Random) -> None:
    """Change the limits of tasks, so that all kinds of half-joins occur, each with several tasks."""
    patch.setattr(probing, "STREAM_ROWS", chance.choice([0, 2, 1 << 20]))
    patch.setattr(probing, "SHARE_ROWS", chance.choice([1, 1 << 20]))
    patch.setattr(primary_keys, "CHECKED_ROWS", chance.choice([1, 1 << 17]))


@pytest.mark.parametrize("mixed", [False, True], ids=["spark", "mixed"])
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_agrees_with_the_local_runner(spark: Any, seed: int, mixed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    program = random_program(Seeded(1000 * mixed + seed))
    chance = random.Random(seed)
    with hj.Engine(retain=program.retain) as local, hj.Engine(retain=program.retain, spark=spark) as other:
        for engine in (local, other):
            for table in TABLES:
                engine.execute(table.ddl)
        for step in program.steps:
            other._runners.setting = chance.choice(["local", "spark"]) if mixed else "spark"
            _limited(monkeypatch, chance)
            assert _carry_out(other, step) == _carry_out(local, step), step
        _same_contents(program, local, other)


@pytest.fixture
def compiling(spark: Any) -> Iterator[Any]:
    """The session as users have it: Spark compiles expressions and stages."""
    for name in INTERPRETED:
        spark.conf.unset(name)
    yield spark
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_agrees_in_a_warehouse(compiling: Any, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step chooses a runner. Rows come as Arrow tables or DataFrames. Sometimes the engine is reopened."""
    monkeypatch.setattr(runner, "FEW", 0)
    program = random_program(Seeded(2000 + seed))
    chance = random.Random(seed)
    with hj.Engine(retain=program.retain) as local:
        other = hj.Engine(tmp_path, retain=program.retain, spark=compiling)
        for engine in (local, other):
            for table in TABLES:
                engine.execute(table.ddl)
        for step in program.steps:
            event = chance.random()
            if event < 0.1:
                other.flush()
            elif event < 0.2:
                other.close()
                other = hj.Engine(tmp_path, retain=program.retain, spark=compiling)
            other._runners.setting = chance.choice(["local", "spark"])
            _limited(monkeypatch, chance)
            given = compiling.createDataFrame if chance.random() < 0.3 else None
            assert _carry_out(other, step, given) == _carry_out(local, step), step
        _same_contents(program, local, other)
        other.close()


def _same_contents(program: Program, local: hj.Engine, other: hj.Engine) -> None:
    for step in program.steps:
        if isinstance(step, Create):
            ours, theirs = (engine.read(step.view.name, multiplicity=True) for engine in (local, other))
            assert bag(ours) == bag(theirs), step.view.ddl

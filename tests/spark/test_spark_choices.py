"""Spark takes the first order of a path that has several; the rows and the errors are those of the local runner."""

from __future__ import annotations

import random
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.planner import choices as choosing
from tests.oracle.cycles import TABLES, batches, join_of
from tests.oracle.rows import bag


@pytest.mark.parametrize("shape", ["triangle of three tables", "four-cycle"])
def test_the_first_order_gives_the_same(spark: Any, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "SMALL", 0)
    choices = random.Random(shape)
    sql = join_of(shape, choices).sql
    with hj.Engine(retain=100) as local, hj.Engine(retain=100, spark=spark) as other:
        for engine in (local, other):
            for name, columns in TABLES.items():
                engine.execute(f"CREATE TABLE {name} ({', '.join(map(' '.join, columns.items()))})")
            engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
            assert "on Spark the first" in engine.explain("v")
        for number, (time, batch) in enumerate(batches(choices, 5, 8)):
            other._runners.setting = "local" if number == 2 else "spark"
            for engine in (local, other):
                engine.apply(batch, time=time, close=False)
                engine.advance(to=time + 1)
            ours, theirs = (engine.read("v", multiplicity=True) for engine in (local, other))
            assert bag(ours) == bag(theirs), number
        assert len(ours)

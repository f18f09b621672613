"""Expressions as deep as a statement may be go through Spark, also from a deep stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import halfjoin as hj

CHAINS = {"sum": " + ".join(["a"] * 490), "text": " || ".join(["b"] * 490)}


def _from_below(frames: int, work: Callable[[], Any]) -> Any:
    return work() if frames == 0 else _from_below(frames - 1, work)


@pytest.mark.parametrize("chain", CHAINS)
def test_deep_expressions_in_tasks(spark: Any, chain: str) -> None:
    with hj.Engine(spark=spark, runner="spark", clock="own") as engine:
        engine.execute("CREATE TABLE t (a bigint, b text)")
        engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {CHAINS[chain]} AS x FROM t")
        assert _from_below(400, lambda: engine.apply({"t": [{"a": 2, "b": "yz"}]}, time=1)).runner == "spark"
        assert engine.read("v").to_pylist() == [{"x": 980 if chain == "sum" else "yz" * 490}]

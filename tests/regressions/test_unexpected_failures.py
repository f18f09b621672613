"""An expression that is known not to fail, and fails: the batch is an error, and no row is lost without a word."""

from __future__ import annotations

import pytest

import halfjoin as hj


@pytest.mark.parametrize("query", [
    "SELECT k, 10 / k AS q FROM t", "SELECT k FROM t WHERE 10 / k > 1", "SELECT sum(10 / k) AS s FROM t",
])  # fmt: skip
def test_a_failure_that_nobody_expects_is_an_error(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("planner.fallibility", "engine.linear.evaluate", "engine.linear.operators"):
        monkeypatch.setattr(f"halfjoin.{module}.fallible", lambda expr: False)
    engine = hj.Engine(clock="own")
    engine.execute(f"CREATE TABLE t (k integer); CREATE MATERIALIZED VIEW v AS {query}")
    with pytest.raises(hj.HalfjoinError, match="division by zero"):
        engine.apply({"t": [{"k": 0}, {"k": 5}]}, time=1)
        engine.read("v")

"""Scalar subqueries beside many rows: each row gets the one value, and no row is copied for it."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.join import beside
from tests.support.kernels import both_ways  # noqa: F401

QUERIES = {
    "SELECT count(*) AS n FROM t WHERE x BETWEEN (SELECT min(y) FROM u) AND (SELECT max(y) FROM u)": 31,
    "SELECT count(*) AS n FROM t WHERE x > (SELECT avg(y) FROM u)": 70,
    "SELECT count(*) AS n FROM t WHERE s = (SELECT min(s) FROM u)": 1,
    "SELECT count(*) AS n FROM t WHERE s > (SELECT repeat(min(s), 1000) FROM u)": 89,
    "SELECT count((SELECT max(y) FROM u WHERE y < 0)) AS n FROM t": 0,
    "SELECT count(*) AS n FROM t WHERE x = (SELECT y FROM u WHERE y = 40)": 1,
    "SELECT count(*) AS n FROM t WHERE x = (SELECT y FROM u WHERE y = 41)": 0,
    "SELECT count(*) AS n FROM t, (SELECT max(y) AS y FROM u) AS q WHERE x + q.y < 60": 20,
    "SELECT count(*) AS n FROM t, u WHERE u.y = 10 AND x > u.y": 89,
    "SELECT count(*) AS n FROM t, (SELECT y FROM u UNION ALL SELECT y FROM u) AS q WHERE q.y = 10 AND x > q.y": 178,
}


@pytest.mark.parametrize("sql", QUERIES)
def test_each_row_has_the_value_of_a_scalar_subquery(sql: str) -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (x bigint PRIMARY KEY, s text); CREATE TABLE u (y bigint, s text)")
        engine.apply({"t": [{"x": x, "s": f"{x:02}"} for x in range(101)], "u": [{"y": 7, "s": "00"}]})
        engine.apply({"t": [{"x": 100, "s": "100", "__diff": -1}],
                      "u": [{"y": 7, "s": "00", "__diff": -1}, *({"y": y, "s": str(y)} for y in (10, 29, 39, 40))]})
        assert engine.query(sql)["n"].to_pylist() == [QUERIES[sql]]


def test_nothing_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    def copied(*_: Any) -> Any:
        raise AssertionError("rows were copied")

    monkeypatch.setattr(beside, "_gather", copied)
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (x bigint PRIMARY KEY)")
        engine.apply({"t": [{"x": x} for x in range(100)]})
        found = engine.query("SELECT count(*) AS n FROM t WHERE x BETWEEN (SELECT avg(x) FROM t) AND (SELECT 80)")
        assert found["n"].to_pylist() == [31]

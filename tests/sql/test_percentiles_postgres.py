"""percentile_cont of intervals lies where PostgreSQL puts it, ad hoc and in views, while rows come and go."""

from __future__ import annotations

import random
from typing import Any

import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

QUERIES = (
    "SELECT percentile_cont(0.31) WITHIN GROUP (ORDER BY i DESC) AS p FROM t",
    "SELECT k, percentile_cont(ARRAY[0, 0.21, 1, NULL]) WITHIN GROUP (ORDER BY i) AS p FROM t GROUP BY k",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY i) AS p FROM t WHERE k > 100",
    "SELECT k, percentile_cont(0.9) WITHIN GROUP (ORDER BY i) FILTER (WHERE f > 0) AS p FROM t GROUP BY k",
    "SELECT k, f, percentile_cont(f) WITHIN GROUP (ORDER BY i) AS p FROM t GROUP BY k, f",
)


def some_interval(rng: random.Random) -> str:
    """A literal of an interval, or NULL."""
    if rng.random() < 0.1:
        return "NULL"
    months, days, hours = rng.randint(-3, 3), rng.randint(-40, 40), rng.randint(-99, 99)
    return f"'{months} months {days} days {hours} hours {rng.uniform(0, 60):.3f} seconds'"


def test_percentiles_of_intervals_are_postgresqls(postgres: Any) -> None:
    engine, rng = hj.Engine(), random.Random(5)

    def both(sql: str) -> None:
        engine.execute(sql)
        postgres.execute(sql)

    both("CREATE TABLE t (k integer, i interval, f double precision)")
    for number, query in enumerate(QUERIES):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
    for batch in range(4):
        rows = (f"({rng.randint(0, 4)}, {some_interval(rng)}, {rng.choice((0, 0.1, 0.5, 0.73, 1))})" for _ in range(12))
        both(f"INSERT INTO t VALUES {', '.join(rows)}")
        both(f"DELETE FROM t WHERE k = {batch}")
        for number, query in enumerate(QUERIES):
            shown = "SELECT s::text FROM ({}) AS s"
            theirs = sorted(postgres.execute(shown.format(query)).fetchall())
            for source in (query, f"SELECT * FROM v{number}"):
                ours = engine.query(shown.format(source)).to_pylist()
                assert sorted((row["s"],) for row in ours) == theirs, query


def test_a_percentile_between_far_intervals_is_an_error() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (i interval)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY i) AS p FROM t")
    engine.execute("INSERT INTO t VALUES ('-178000000 years'), ('178000000 years')")
    with pytest.raises(hj.HalfjoinError, match="interval out of range"):
        engine.read("v")
    engine.execute("DELETE FROM t WHERE i > interval '0'")
    assert engine.query("SELECT p::text FROM v").column(0).to_pylist() == ["-178000000 years"]

"""Queries with aggregates over whole partitions have the answers of views, of DuckDB, and of windows."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.batch.readable import closed
from halfjoin.engine.statements.evaluating import planned_query
from halfjoin.planner.group_functions import Windows
from halfjoin.planner.plan import Reduce
from halfjoin.sql.bind.query import bind_query
from halfjoin.sql.parse.parse import parse_query
from tests.oracle.answers import assert_same
from tests.oracle.rows import bag, tuples

SCHEMA = """
    CREATE TABLE t (k bigint PRIMARY KEY, a text, b integer, x numeric(8,2), f double precision, d date);
    CREATE TABLE free (a text, b integer)
"""
AS_GROUPS = (
    "SELECT k, a, count(*) OVER (PARTITION BY a) AS n, sum(x) OVER (PARTITION BY a) AS s FROM t",
    "SELECT k, max(f) OVER (PARTITION BY a, b) AS m, min(d) OVER (PARTITION BY b) AS d, avg(b) OVER () AS v FROM t",
    "SELECT k FROM (SELECT k, f, max(f) OVER (PARTITION BY a) AS m FROM t WHERE b > 1) q WHERE f = m",
    "SELECT k, x, sum(x) FILTER (WHERE b > 2) OVER (PARTITION BY b % 2) AS s FROM t WHERE a <> 'p'",
    "SELECT a, b, n, sum(n) OVER (PARTITION BY a) AS s FROM (SELECT a, b, count(*) AS n FROM t GROUP BY a, b) q",
    "SELECT k, count(x) OVER (PARTITION BY a ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS n "
    "FROM t",
    "SELECT n, max(s) AS m FROM (SELECT count(*) OVER (PARTITION BY d) AS n, x - avg(x) OVER (PARTITION BY d) AS s "
    "FROM t) q GROUP BY n",
)  # fmt: skip
BESIDE = "SELECT k, row_number() OVER (PARTITION BY b ORDER BY k) AS r, sum(b) OVER (PARTITION BY b) AS s FROM t"
AS_WINDOWS = (  # and why
    "SELECT k, sum(b) OVER (PARTITION BY a ORDER BY k) AS s FROM t",  # a frame has a part of the rows
    "SELECT k, sum(b) OVER (ORDER BY k ROWS 2 PRECEDING) AS s FROM t",
    "SELECT k, first_value(b) OVER (PARTITION BY a) AS s FROM t",  # the order tells
    "SELECT k, max(f) OVER (PARTITION BY a ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES) AS m "
    "FROM t",
    "SELECT b, count(*) OVER (PARTITION BY a) AS n FROM free",  # a row may be there less than zero times
    "SELECT t.k, count(*) OVER (PARTITION BY u.a) AS n FROM t JOIN t u ON t.b = u.b AND u.k < 9",  # made twice
    "SELECT k, count(*) OVER (PARTITION BY random() > 0.5) AS n FROM t",  # drawn twice
    "SELECT k, sum(b * random()) OVER (PARTITION BY a) AS s FROM t",
    "SELECT r, count(*) OVER (PARTITION BY r > 0.5) AS n FROM (SELECT random() AS r FROM t) q",  # drawn twice
)  # fmt: skip


def windows(engine: hj.Engine, sql: str) -> int:
    """How many windows a query has."""
    plan = planned_query(closed(engine._state), bind_query(parse_query(sql), engine._state.catalog, sql).relation)
    return sum(isinstance(node, Reduce) and isinstance(node.function, Windows) for node in plan.nodes)


@pytest.mark.parametrize("seed", range(2))
def test_answers_are_those_of_views_and_of_duckdb(seed: int) -> None:
    engine, random = hj.Engine(retain=100), np.random.default_rng(seed)
    engine.execute(SCHEMA)
    for number, sql in enumerate((*AS_GROUPS, BESIDE)):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
    for time, n in enumerate((0, 300, 30, 1)):

        def some(values: object, n: int = n) -> pa.Array:
            return pa.array(values, mask=random.random(n) < 0.1)

        x = pa.array(random.integers(-999, 999, n)).cast(pa.decimal128(21, 2)).cast(pa.decimal128(8, 2))
        made = pa.table({"k": random.permutation(400)[:n], "a": some(random.choice([*"pqr"], n).astype(object)),
                         "b": some(random.integers(0, 5, n).astype(np.int32)), "x": x,
                         "f": some(random.choice([0.5, -1.0, 1e30, 7.0], n)),
                         "d": some(random.integers(0, 9, n).astype("datetime64[D]"))})  # fmt: skip
        engine.apply({"t": hj.upserts(made)}, time=time)
        duck = duckdb.connect(config={"threads": 1})
        duck.register("rows", engine.read("t"))
        duck.execute("CREATE TABLE t AS SELECT * FROM rows")
        for number, sql in enumerate((*AS_GROUPS, BESIDE)):
            got = tuples(engine.query(sql))
            assert bag(engine.query(sql)) == bag(engine.read(f"v{number}")), sql
            assert_same(got, duck.execute(sql).fetchall(), sql)


@pytest.mark.parametrize("sql", AS_GROUPS)
def test_whole_partitions_are_groups(sql: str) -> None:
    engine = hj.Engine()
    engine.execute(SCHEMA)
    assert windows(engine, sql) == 0
    assert windows(engine, BESIDE) == 1


@pytest.mark.parametrize("sql", AS_WINDOWS)
def test_other_windows_stay_windows(sql: str) -> None:
    engine = hj.Engine()
    engine.execute(SCHEMA)
    assert windows(engine, sql) > 0
    assert engine.query(sql).num_rows == 0


@pytest.mark.parametrize(("asked", "answer"), [("count(*)", [2]), ("sum(k)", [3])])
def test_a_window_that_nothing_reads_is_left_out(asked: str, answer: list[int]) -> None:
    engine = hj.Engine()
    engine.execute(f"{SCHEMA}; INSERT INTO t (k, b) VALUES (1, 0), (2, 1)")
    sql = f"SELECT {asked} AS n FROM (SELECT k, count(*) OVER (PARTITION BY 10 / b) AS c FROM t) q"
    assert engine.query(sql)["n"].to_pylist() == answer


def test_a_key_that_is_drawn_is_drawn_once() -> None:
    engine = hj.Engine()
    engine.execute(f"{SCHEMA}; INSERT INTO t (k) SELECT generate_series(1, 100)")
    found = engine.query("SELECT k, count(*) OVER (PARTITION BY gen_random_uuid()) AS n FROM t")
    assert found["n"].to_pylist() == [1] * 100

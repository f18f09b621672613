"""Joins with table functions of constants, calendars above all: as in PostgreSQL; and no change runs the function."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

import halfjoin as hj
from halfjoin.engine.linear.tables import Exploded
from tests.support.compared import compare

pytest_plugins = ("tests.support.postgres",)

SETUP = """
    CREATE TABLE t (a integer PRIMARY KEY, d date, m timestamp, n numeric(6, 1), s text);
    CREATE TABLE u (a integer, d date);
    INSERT INTO t VALUES (1, '2024-01-30', '2024-01-30', 1.5, 'x'), (2, '2024-01-31', '2024-02-29 12:00', 2, 'y'),
        (3, '2024-03-01', NULL, 2, 'x'), (4, NULL, '2024-02-01', 0.5, NULL), (5, '2030-01-01', '2024-02-01', -1, 'z');
    INSERT INTO u VALUES (1, '2024-01-31'), (1, '2024-01-31'), (7, '2024-02-01'), (NULL, NULL);
"""
CHANGES = (
    "INSERT INTO t VALUES (6, '2024-02-01', '2024-01-31', 1, 'x'), (7, '2024-01-31', '2024-03-31', 1.5, 'q')",
    "DELETE FROM t WHERE a IN (1, 3); DELETE FROM u WHERE a = 7", "UPDATE t SET d = d + 1, n = n + 0.5",
    "INSERT INTO u SELECT a, d FROM t; UPDATE t SET a = a + 10, m = m - interval '1 day'",
    "DELETE FROM t; DELETE FROM u",
)  # fmt: skip
DAYS = "generate_series(date '2024-01-30', date '2024-02-29' + 1, interval '1 day') AS g (x)"
MONTHS = "generate_series(timestamp '2024-01-31', timestamp '2024-05-01', interval '1 month') AS g (x)"
QUERIES = (
    f"SELECT g.x::date, count(t.a), sum(t.n) FROM {DAYS} LEFT JOIN t ON t.d = g.x::date GROUP BY g.x",
    f"SELECT t.a FROM t JOIN {DAYS} ON t.d = g.x",
    f"SELECT t.a, g.x FROM t JOIN {MONTHS} ON t.m = g.x",
    f"SELECT g.x, t.a, u.a FROM {MONTHS} LEFT JOIN t ON t.m = g.x LEFT JOIN u ON u.d = g.x",
    f"SELECT g.x FROM {DAYS} WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.d = g.x)",
    f"SELECT g.x, h.y, t.a FROM {DAYS}, generate_series(1, 3) AS h (y) LEFT JOIN t ON t.a = h.y WHERE t.d = g.x",
    f"SELECT count(*) FROM t FULL JOIN (SELECT x::date AS x FROM {DAYS}) AS g ON t.d = g.x",
    "SELECT t.a, g.x FROM t JOIN generate_series(5, 1, -2) AS g (x) ON t.a = g.x",
    "SELECT t.a, g.x FROM t JOIN generate_series(0.5, 2, 0.5) AS g (x) ON t.n = g.x",
    "SELECT g.x, g.n, t.a FROM t JOIN unnest(ARRAY[3, 1, 1, NULL]) WITH ORDINALITY AS g (x, n) ON t.a = g.x",
    "SELECT g.x, t.a, u.a FROM unnest(ARRAY['x', 'y', 'x']) AS g (x) LEFT JOIN t ON t.s = g.x LEFT JOIN u ON u.a = t.a",
    "SELECT g.x, g.y, t.a FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['x', 'y'])) AS g (x, y) "
    "LEFT JOIN t ON t.a = g.x AND t.s = g.y",
    "SELECT g.x, t.a FROM regexp_split_to_table('x,y,,x', ',') AS g (x) JOIN t ON t.s = g.x AND 10 / t.a > 0",
    "SELECT g.x, h.x, t.a FROM generate_series(1, 4) AS g (x), generate_series(1, 2) AS h (x), t "
    "WHERE t.a = g.x + h.x AND t.n > h.x - 1",
    "SELECT a, (SELECT count(*) FROM generate_series(1, 5) AS g (x) WHERE g.x = t.a) FROM t",
    "SELECT a FROM t WHERE a IN (SELECT x * 2 FROM generate_series(1, 3) AS g (x))",
    "SELECT g.x, t.a FROM generate_series(1, 3) AS g (x) LEFT JOIN t ON t.a = g.x "
    "UNION ALL SELECT g.x, t.a FROM generate_series(2, 6) AS g (x) LEFT JOIN t ON t.a = g.x",
    "WITH RECURSIVE r AS (SELECT a FROM t WHERE a = 1 UNION SELECT g.x + 1 FROM r JOIN generate_series(1, 4) AS g (x) "
    "ON g.x = r.a) SELECT a FROM r",
)  # fmt: skip


def test_functions_of_constants_are_joined(postgres: Any) -> None:
    compare(SETUP, CHANGES, QUERIES, postgres)


def test_no_change_runs_a_function_of_constants() -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (a bigint, d date)")
    calendar = "generate_series(date '2020-01-01', date '2029-12-31', interval '1 day') AS g (x)"
    engine.execute("CREATE MATERIALIZED VIEW days AS SELECT g.x, count(t.a) AS n "
                   f"FROM {calendar} LEFT JOIN t ON t.d = g.x GROUP BY g.x")  # fmt: skip
    engine.execute("CREATE MATERIALIZED VIEW few AS "
                   "SELECT t.a FROM t JOIN unnest(ARRAY[1, 2, 4]) AS g (x) ON t.a = g.x")  # fmt: skip
    days = (18_262 + np.arange(1_000)).astype(np.int32)
    with patch.object(Exploded, "__init__", side_effect=AssertionError):  # what each function gives
        for time in range(1, 4):
            engine.apply({"t": pa.table({"a": np.arange(1_000), "d": pa.array(days).cast(pa.date32())})}, time=time)
    assert engine.query("SELECT count(*) AS n, sum(n) AS s FROM days").to_pylist() == [{"n": 3_653, "s": 3_000}]
    assert len(engine.read("few")) == 9


def test_a_step_longer_than_python_s_durations_has_one_row() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (m timestamp); INSERT INTO t VALUES ('2024-01-31'), ('2024-02-29')")
    series = "generate_series(timestamp '2024-01-31', timestamp '2024-05-01', interval '2000000000 days') AS g (x)"
    assert len(engine.query(f"SELECT t.m FROM t JOIN {series} ON t.m = g.x")) == 1

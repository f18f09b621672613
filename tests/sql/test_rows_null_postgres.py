"""IS NULL of rows, and what is too long for a field of one, are as in PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj
from tests.sql.test_rows_at_rest_postgres import check

pytest_plugins = ("tests.support.postgres",)

TABLES = ("CREATE TYPE pair AS (a integer, b text)", "CREATE TYPE short AS (c char(3), v varchar(2))",
          "CREATE TYPE deep AS (p pair, s short)", "CREATE TABLE t (k integer, r pair, d deep, rs pair[])",
          "INSERT INTO t VALUES (1, NULL, NULL, NULL), (2, ROW(1, NULL), ROW(ROW(NULL, NULL), ROW('a', 'b')), '{}'), "
          "(3, ROW(NULL, NULL), ROW(NULL, NULL), '{}'), (4, ROW(1, 'x'), ROW(ROW(NULL, NULL), NULL), '{}')")
TESTS = ("{} IS NULL", "{} IS NOT NULL", "NOT {} IS NULL", "NOT {} IS NOT NULL", "NOT ({} IS NULL)", "{} ISNULL",
         "{} NOTNULL", "NOT {} NOTNULL")  # fmt: skip
LONG = ("'(abcd,x)'", "ROW('abcd', 'x')", "ROW('a', 'xyz')", "ROW('a'::text, 'xyz'::text)", "'(abcd,x)'::short")


def engines(postgres: Any) -> hj.Engine:
    engine = hj.Engine()
    for statement in TABLES:
        engine.execute(statement)
        postgres.execute(statement)
    return engine


@pytest.mark.parametrize("row", ["k", "r", "d", "(d).p", "t", "ROW(r)", "ROW(r, k)", "rs", "u"])
def test_a_row_is_null_or_not_null_as_in_postgresql(postgres: Any, row: str) -> None:
    engine = engines(postgres)
    tests = ", ".join(test.format(row) for test in TESTS)
    sql = f"SELECT t.k, {tests} FROM t LEFT JOIN (SELECT k AS n, r AS q FROM t WHERE k > 1) AS u ON u.n = t.k"
    columns = ", ".join(f"c{number}" for number in range(len(TESTS) + 1))
    engine.execute(f"CREATE MATERIALIZED VIEW v ({columns}) AS {sql}")
    check(engine, sql, "v", postgres)


@pytest.mark.parametrize("row", LONG)
def test_a_text_that_is_too_long_for_a_field_is_refused_and_not_cut(row: str) -> None:
    engine = hj.Engine()
    for statement in (*TABLES, "CREATE TABLE s (r short, rs short[])"):
        engine.execute(statement)
    for change in (f"INSERT INTO s VALUES ({row})", f"UPDATE t SET d = ROW(NULL, {row})"):
        with pytest.raises(hj.HalfjoinError, match="too long"):
            engine.execute(change)
    with pytest.raises(hj.HalfjoinError, match="too long"):
        engine.execute("INSERT INTO s VALUES (NULL, '{\"(abcd,x)\"}')")
    assert not engine.read("s").num_rows
    assert engine.query("SELECT ROW('abcd', 'xyz')::short AS r").to_pylist() == [{"r": {"c": "abc", "v": "xy"}}]
    engine.execute("INSERT INTO s VALUES (ROW('abc  ', 'xy '))")
    assert engine.query("SELECT r::text FROM s").to_pylist() == [{"r": "(abc,xy)"}]


@pytest.mark.parametrize("element", ["pair", "interval", "json", "bytea"])
def test_arrays_without_elements_have_an_empty_text(element: str) -> None:
    engine = hj.Engine()
    engine.execute(f"CREATE TYPE pair AS (a integer, b interval); CREATE TABLE t (k integer, a {element}[])")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k, array_to_string(a, ',') AS s FROM t")
    engine.execute("INSERT INTO t VALUES (1, '{}'), (2, NULL)")
    assert engine.query("SELECT s FROM v ORDER BY k").to_pylist() == [{"s": ""}, {"s": None}]


OF_ROWS = (  # r is a column that is NULL in some rows, and missing in others; nothing tells them apart
    "SELECT DISTINCT r FROM o", "SELECT r, count(*) FROM o GROUP BY r",
    "SELECT r, grouping(r) FROM o GROUP BY ROLLUP (r)",
    "SELECT r FROM o UNION SELECT r FROM t", "SELECT r FROM t EXCEPT SELECT r FROM o",
    "SELECT r FROM o EXCEPT ALL SELECT r FROM t",
    "SELECT r FROM o INTERSECT ALL SELECT r FROM t", "SELECT n, count(*) OVER (PARTITION BY r) FROM o",
    "SELECT DISTINCT ON (r) r, n FROM o ORDER BY r, n DESC", "SELECT count(DISTINCT r) AS d, count(r) AS n FROM o",
    "SELECT n, dense_rank() OVER (ORDER BY r) FROM o",
    "SELECT DISTINCT CASE WHEN n > 4 THEN r WHEN n > 3 THEN NULL ELSE w END FROM o",
    "SELECT n, (SELECT count(*) FROM t AS p WHERE p.r IS NOT DISTINCT FROM o.r) FROM o",
    "SELECT p.k, o.n FROM t AS p JOIN o ON p.r IS NOT DISTINCT FROM o.r",
    "SELECT n, (SELECT count(*) FROM t AS p WHERE p.r < o.r OR o.r IS NULL) FROM o",
    "SELECT k FROM t WHERE r IN (SELECT r FROM o) OR r NOT IN (SELECT r FROM o)",
    "WITH RECURSIVE q (r, i) AS (SELECT r, 0 FROM o UNION SELECT r, i + 1 FROM q WHERE i < 1) SELECT r, i FROM q",
    "SELECT n, lag(r) OVER (ORDER BY n), first_value(w) OVER (ORDER BY n DESC) FROM o",
)  # fmt: skip


@pytest.mark.parametrize("query", OF_ROWS)
def test_a_row_that_is_null_is_the_key_that_a_missing_one_is(postgres: Any, query: str) -> None:
    engine = engines(postgres)
    for run in (engine.execute, postgres.execute):
        run("CREATE VIEW o AS SELECT t.r, u.n, CASE WHEN t.k > 1 THEN t.r END AS w FROM t RIGHT JOIN "
            "(SELECT * FROM generate_series(1, 6)) AS u (n) ON u.n = t.k")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    check(engine, query, "v", postgres)


@pytest.mark.parametrize("condition", [
    "t.r IS NULL", "t.r <> '(1,x)'::pair", "t.r = '(1,x)'::pair", "(t.r).a = 1", "t IS NOT NULL",
    "coalesce(t.r, '(5,d)'::pair) > '(1,x)'::pair",
    "num_nulls(t.r, t.k) = 1", "t.r = ANY (ARRAY['(1,x)'::pair])", "(CASE WHEN t.k > 1 THEN t.r END).b = 'x'",
    "t.r IN (SELECT r FROM t)", "t.r::text = '(1,)'", "((t.d).p).a IS NULL", "greatest(t.r, (t.d).p) IS NOT NULL",
    "ROW(t.r, t.k) <> ROW(t.r, 2)",
])  # fmt: skip
def test_a_condition_on_a_row_beside_a_correlated_subquery(postgres: Any, condition: str) -> None:
    engine = engines(postgres)
    for number, sql in enumerate((
        "SELECT t.k, (SELECT max(u.k) FROM t AS u WHERE u.k < t.k) AS m FROM t WHERE {}",
        "SELECT t.k, u.k AS m FROM t, LATERAL (SELECT k FROM t AS u WHERE u.k <> t.k ORDER BY k LIMIT 1) AS u WHERE {}",
        "SELECT t.k FROM t WHERE {} AND EXISTS (SELECT u.r FROM t AS u WHERE u.k < t.k GROUP BY ROLLUP (u.r) HAVING "
        "count(*) > t.k - 2)",
    )):
        query = sql.format(condition)
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
        check(engine, query, f"v{number}", postgres)

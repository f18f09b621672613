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

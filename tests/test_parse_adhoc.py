"""Ad-hoc queries: what they read, and that DuckDB takes their text and answers as PostgreSQL would."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from sqlglot import exp

from halfjoin.sql.adhoc import SETTINGS, names_of, tables_of, to_duckdb
from halfjoin.sql.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.parse import parse_query
from tests.front import SCHEMA

ROWS = """
CREATE TABLE t (a integer, b bigint, s text, d date, ts timestamp, n decimal(10,2), arr integer[], ok boolean);
INSERT INTO t VALUES (1, 7, 'x y', '2020-01-01', '2020-01-02', 1.5, [1, 2], true),
                     (2, -7, 'z', '2021-01-01', '2021-01-02', 2.5, [], NULL);
CREATE TABLE u (a integer, c bigint, x double);
INSERT INTO u VALUES (1, 5, 0.5);
"""


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for setting in SETTINGS:
            connection.execute(setting)
        connection.execute(ROWS)
        yield connection


@pytest.mark.parametrize(("sql", "answer"), [
    ("SELECT b / 2, b % 2, n / 2 FROM t", [(-3, -1, 1.25), (3, 1, 0.75)]),
    ("SELECT count(*), sum(b1) FROM pv", [(2, 2)]),
    ("SELECT max(p.b1) FROM pv AS p LEFT JOIN named ON p.a = k", [(8,)]),
    ("SELECT g FROM generate_series(1, 3) g ORDER BY g DESC LIMIT 1", [(3,)]),
    ("SELECT DISTINCT a, g FROM t, generate_series(1, t.a) g", [(1, 1), (2, 1), (2, 2)]),
    ("SELECT DISTINCT x FROM t, LATERAL generate_series(1, t.a) AS g (x)", [(1,), (2,)]),
    ("SELECT DISTINCT a, e, o FROM t, unnest(arr) WITH ORDINALITY AS q (e, o)", [(1, 1, 1), (1, 2, 2)]),
    ("SELECT DISTINCT a, unnest(arr) FROM t", [(1, 1), (1, 2)]),
    ("SELECT DISTINCT w FROM t, regexp_split_to_table(s, ' ') w", [("x",), ("y",), ("z",)]),
    ("WITH RECURSIVE r (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM r WHERE k < 3) SELECT max(k) FROM r", [(3,)]),
    ("SELECT DISTINCT to_char(ts, 'YYYY-MM'), arr[1] FROM t", [("2020-01", 1), ("2021-01", None)]),
    ("SELECT DISTINCT s ~ 'x', s NOT LIKE 'x%', (s LIKE 'x%') IS TRUE FROM t", [(False, True, False),
    (True, False, True)]),
    ("SELECT count(*) FROM t WHERE a IN (SELECT a FROM u) AND EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", [(1,)]),
    ("SELECT DISTINCT extract(day FROM ts + interval '1 day 02:03') FROM t", [(3,)]),
    ("SELECT max(a) = ANY(ARRAY[1, 2]), max(n::numeric), E'a\\tb' FROM t", [(True, 2.5, "a\tb")]),
    ("SELECT a FROM t ORDER BY ok, a", [(1,), (2,)]),
    ("SELECT a FROM t ORDER BY ok DESC, a", [(2,), (1,)]),
    ("TABLE u", [(1, 5, 0.5)]),
])  # fmt: skip
def test_answers(duck: duckdb.DuckDBPyConnection, sql: str, answer: list[tuple[object, ...]]) -> None:
    rows = duck.execute(to_duckdb(parse_query(sql), SCHEMA, sql)).fetchall()
    assert (rows if "ORDER BY" in sql else sorted(rows, key=repr)) == answer


def test_columns_are_named_as_in_postgresql(duck: duckdb.DuckDBPyConnection) -> None:
    sql = "SELECT count(*), max(a) AS m, lower(s), s, a + 1, d::text FROM t GROUP BY s, a, d ORDER BY count, lower"
    found = duck.execute(to_duckdb(parse_query(sql), SCHEMA, sql)).description
    assert [column[0] for column in found or ()] == ["count", "m", "lower", "s", "?column?", "d"]


def test_division_by_zero_fails(duck: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error, match=r"[Dd]ivision by zero"):
        duck.execute(to_duckdb(parse_query("SELECT 1 / (max(a) - 2) FROM t"), SCHEMA)).fetchall()


@pytest.mark.parametrize(("sql", "names", "tables"), [
    ("SELECT 1", "", ""),
    ("SELECT * FROM t, u AS x, t AS y", "t u", "t u"),
    ("SELECT * FROM pv JOIN named ON a = k", "named pv t u", "t u"),
    ("WITH t AS (SELECT * FROM u) SELECT * FROM t", "u", "u"),
    ("WITH t AS (SELECT * FROM t) SELECT * FROM t", "t", "t"),
    ("WITH q AS (SELECT 1), r AS (SELECT * FROM q) SELECT * FROM r", "", ""),
    ("SELECT (SELECT max(a) FROM u) FROM t WHERE EXISTS (SELECT 1 FROM w)", "t u w", "t u w"),
    ("SELECT * FROM (WITH w AS (SELECT 1) SELECT * FROM w) x, w", "w", "w"),
    ("SELECT * FROM generate_series(1, 2), \"Odd\"", "Odd", "Odd"),
])  # fmt: skip
def test_names(sql: str, names: str, tables: str) -> None:
    query = parse_query(sql)
    assert names_of(query, SCHEMA) == set(names.split())
    assert tables_of(query, SCHEMA) == set(tables.split())


def test_the_query_stays_as_it_was() -> None:
    query = parse_query("SELECT * FROM pv, generate_series(1, 2) WHERE interval '1 day' > interval '1' hour")
    before = query.copy()
    to_duckdb(query, SCHEMA)
    assert isinstance(query, exp.Query) and query == before


def test_unknown_tables() -> None:
    sql = "SELECT count(*)\nFROM tt"
    with pytest.raises(UnknownName, match=r"unknown table or view 'tt' \(line 2, column 6\)"):
        names_of(parse_query(sql), SCHEMA, sql)


@pytest.mark.parametrize(("sql", "reason"), [
    ("SELECT count(*) FROM t WHERE mz_now() < ts", "mz_now is not supported in a query that no view could be"),
    ("SELECT count(*) FROM t, repeat_row(2)", "repeat_row is not supported in a query that no view could be"),
    ("SELECT sum(y) FROM t, pulse(a)", "pulse is not supported in a query that no view could be"),
    ("WITH t AS (SELECT 1) SELECT * FROM pv", "the view pv reads t, which a WITH query here is called too"),
])  # fmt: skip
def test_refused(sql: str, reason: str) -> None:
    with pytest.raises(UnsupportedSQL) as caught:
        to_duckdb(parse_query(sql), SCHEMA, sql)
    assert caught.value.reason == reason

"""Rows in the SELECT list of a query are shown as the text that PostgreSQL writes, in PostgreSQL's order of rows."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

TABLES = ("CREATE TABLE t (a integer, b text, c boolean)", "CREATE TABLE u (a integer, w text)",
          "INSERT INTO t VALUES (10, 'x y', true), (2, NULL, false), (NULL, '', NULL), (-3, '\"(', true), "
          "(2, 'b', NULL)",
          "INSERT INTO u VALUES (2, 'q'), (2, NULL)")  # fmt: skip


@pytest.mark.parametrize("sql", [
    "SELECT t FROM t ORDER BY t", "SELECT t FROM t ORDER BY 1 DESC", "SELECT t AS x, a FROM t ORDER BY x DESC, a",
    "SELECT a, t FROM t ORDER BY a NULLS FIRST, b LIMIT 3", "SELECT ROW(a, b) FROM t ORDER BY row",
    "SELECT (1, 'a b', NULL, ROW(true, ''))", "SELECT ROW(t, u) AS r FROM t LEFT JOIN u USING (a) ORDER BY t, u",
    "SELECT u, t.a FROM t LEFT JOIN u ON u.a = t.a ORDER BY u DESC, t.a",
    "SELECT ROW(t.*, 1) FROM t WHERE a > 1 ORDER BY 1",
    "SELECT (t).b, ROW() FROM t ORDER BY t", "SELECT DISTINCT ROW(c, b IS NULL) FROM t ORDER BY 1",
    "SELECT DISTINCT t AS x FROM t, u ORDER BY x DESC LIMIT 3",
    "SELECT DISTINCT u, t.c::text FROM t LEFT JOIN u ON u.a = t.a ORDER BY u, 2",
    "SELECT t, count(*) FROM t, u GROUP BY t ORDER BY t", "SELECT ROW(c), sum(a) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT u AS r, count(*) FROM t LEFT JOIN u ON u.a = t.a GROUP BY r HAVING count(*) > 0 ORDER BY r",
    "SELECT ROW(a % 2, c) AS r, max(b) FROM t GROUP BY ROW(a % 2, c) ORDER BY r",
    "SELECT DISTINCT ON (ROW(c)) c::text, t FROM t ORDER BY ROW(c), t DESC",
    "SELECT DISTINCT t, count(*) OVER () FROM t ORDER BY t", "SELECT x FROM (SELECT t AS x FROM t) AS q ORDER BY x",
    "SELECT t FROM t UNION SELECT t FROM t ORDER BY t DESC", "VALUES (ROW(NULL, 'x')), (ROW(2, NULL))",
    "SELECT CASE WHEN a > 1 THEN ROW(NULL, b) ELSE ROW(a, NULL) END FROM t ORDER BY a, b",
    "SELECT ROW(NULL, 'a') UNION ALL SELECT ROW(2, NULL)",
])  # fmt: skip
def test_rows_are_shown_as_postgresql_shows_them(sql: str, postgres: Any) -> None:
    engine = hj.Engine()
    for statement in TABLES:
        engine.execute(statement)
        postgres.execute(statement)
    assert engine.query(sql).column_names == [column.name for column in postgres.execute(sql).description]
    assert lines(engine, sql) == lines_of(postgres, sql)


@pytest.mark.parametrize("sql", [
    "SELECT ARRAY[ROW(a, b), ROW(1, 'x')] FROM t ORDER BY a, b", "SELECT ARRAY(SELECT ROW(a, b) FROM t ORDER BY t)",
    "SELECT array_agg(ROW(a, c) ORDER BY a, b) FROM t", "SELECT ARRAY[ROW(NULL, ROW(NULL)), ROW(2, ROW(a))] FROM t",
    "SELECT array_agg(ROW(t.*) ORDER BY t) FILTER (WHERE a > 1) FROM t GROUP BY c ORDER BY c",
])  # fmt: skip
def test_arrays_of_rows_are_shown_as_postgresql_shows_them(sql: str, postgres: Any) -> None:
    engine = hj.Engine()
    for statement in TABLES:
        engine.execute(statement)
        postgres.execute(statement)
    assert lines(engine, sql) == lines_of(postgres, sql)


def lines(engine: hj.Engine, sql: str) -> bytes:
    return engine.copy_to(f"COPY ({sql}) TO STDOUT")


def lines_of(postgres: Any, sql: str) -> bytes:
    with postgres.cursor().copy(f"COPY ({sql}) TO STDOUT") as copy:
        return b"".join(map(bytes, copy))


def test_rows_are_dicts_in_python() -> None:
    engine = hj.Engine()
    sql = "SELECT ROW(1, 'x') AS r, ARRAY[ROW(2)] AS a, ROW() AS e, NULLIF(ROW(1), ROW(1)) AS n"
    assert engine.query(sql).to_pylist() == [
        {"r": {"f1": 1, "f2": "x"}, "a": [{"f1": 2}], "e": {}, "n": None}]

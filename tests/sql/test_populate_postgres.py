"""jsonb_populate_record and jsonb_populate_recordset give rows of a table's columns, as PostgreSQL does."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj
from tests.support.refused import refused_alike

pytest_plugins = ("tests.support.postgres",)

TABLES = ("CREATE TABLE t (a integer, b text, c jsonb, d date)", "CREATE TABLE u (k integer, j jsonb)",
          """INSERT INTO u VALUES (1, '{"a": 7, "c": [1]}'), (2, '{"b": "x", "d": "0044-03-15 BC"}'), (3, NULL)""")
ROWS = """jsonb_populate_recordset(NULL::t, '[{"a": 5, "no": 1}, {"b": "q", "a": null}]')"""


@pytest.mark.parametrize("sql", [
    """SELECT a, b FROM jsonb_populate_record(NULL::t, '{"a": 5, "b": "q"}')""", f"SELECT a, b FROM {ROWS}",
    "SELECT k, r.a, b, c::text, d::text FROM u, jsonb_populate_record(NULL::t, u.j) r",
    f"SELECT x, q.b FROM {ROWS} AS q (x)", f"SELECT a, ordinality FROM {ROWS} WITH ORDINALITY",
    "SELECT a FROM jsonb_populate_recordset(NULL::public.t, '[]')",
    "SELECT a, b FROM jsonb_populate_record(NULL::t, NULL)",
])  # fmt: skip
def test_rows_are_postgresqls(sql: str, postgres: Any) -> None:
    engine = hj.Engine()
    for statement in TABLES:
        engine.execute(statement)
        postgres.execute(statement)
    found = [tuple(row.values()) for row in engine.query(sql).to_pylist()]
    assert sorted(found, key=str) == sorted(postgres.execute(sql).fetchall(), key=str)


def test_they_fill_and_change_tables() -> None:
    engine = hj.Engine()
    for statement in TABLES:
        engine.execute(statement)
    engine.execute(f"INSERT INTO t SELECT * FROM {ROWS}")
    engine.execute("""UPDATE t SET b = r.b FROM jsonb_populate_record(NULL::t, '{"a": 5, "b": "new"}') r
                      WHERE r.a = t.a""")
    assert engine.query("SELECT a, b FROM t ORDER BY a").to_pylist() == [{"a": 5, "b": "new"}, {"a": None, "b": "q"}]


@pytest.mark.parametrize("sql", [
    "SELECT * FROM jsonb_populate_record(ROW(1, 'z')::pair, '{\"b\": null}')",
    "SELECT * FROM jsonb_populate_record(ROW(1, 'z')::pair, '{\"a\": 7, \"c\": 1}')",
    """SELECT * FROM jsonb_populate_recordset(ROW(5, 'z')::pair, '[{"a": 1}, {"b": null}, {}, {"b": [1, "x"]}]')""",
    "SELECT (jsonb_populate_record(NULL::pair, j)).a, (jsonb_populate_record(ROW(3, NULL)::pair, j)).* FROM u",
    "SELECT jsonb_populate_record(ROW(k, 'q')::pair, j)::text AS x FROM u",
    "SELECT x.*, k FROM u, jsonb_populate_record(ROW(k, 'q')::pair, j) x",
    """SELECT
       jsonb_populate_record(NULL::fields, '{"v": "ab", "c": "x", "a": [1, "2", null], "t": ["x", {"b": 1}]}')::text
       AS x""",
    """SELECT
       jsonb_populate_record(NULL::fields, '{"v": 12, "a": "{3,4}", "m": "2020-01-01 10:00:00.126"}')::text AS x""",
    """SELECT
       json_populate_record(NULL::fields, '{"a": [1,  2], "t": ["x",  1.50, {"b":  1}], "v": null}')::text AS x""",
    "SELECT k, x.v, x.c FROM u, jsonb_to_record(jsonb_build_object('v', k, 'c', j -> 'c')) AS x (v varchar(3), c text)",
    """SELECT (jsonb_populate_record(NULL::nest, '{"n": 2, "p": {"a": 4}}')).p.a AS x""",
    "SELECT jsonb_populate_record(NULL::pair, NULL) IS NULL AS n, k FROM u",
])  # fmt: skip
def test_rows_of_types_are_postgresqls_in_queries_and_views(sql: str, postgres: Any) -> None:
    engine = hj.Engine()
    for statement in (*TABLES, "CREATE TYPE pair AS (a integer, b text)", "CREATE TYPE nest AS (p pair, n integer)",
                      "CREATE TYPE fields AS (v varchar(3), c char(3), a integer[], t text[], m timestamp(2))"):
        engine.execute(statement)
        postgres.execute(statement)
    names = ", ".join(f"c{n}" for n in range(len(postgres.execute(sql).description)))
    engine.execute(f"CREATE MATERIALIZED VIEW v ({names}) AS {sql}")
    expected = sorted(postgres.execute(sql).fetchall(), key=str)
    for found in (engine.query(sql), engine.read("v")):
        assert sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), key=str) == expected


@pytest.mark.parametrize("doc", [
    '{"v": "abcd"}', '{"a": 1}', '{"a": {}}', '{"a": [1, "x"]}', '{"c": "abcd"}', "[]", '{"a": "x"}', '{"v": [1, 2]}',
])  # fmt: skip
def test_what_does_not_fit_a_field_fails_as_in_postgresql(doc: str, postgres: Any) -> None:
    engine, sql = hj.Engine(), f"SELECT jsonb_populate_record(NULL::fields, '{doc}')::text"
    for run in (engine.execute, postgres.execute):
        run("CREATE TYPE fields AS (v varchar(3), c char(3), a integer[])")
    refused_alike(sql, postgres, engine.query)


@pytest.mark.parametrize("sql", [
    f"CREATE MATERIALIZED VIEW v AS SELECT * FROM {ROWS}", "SELECT * FROM jsonb_populate_record(1, '{}')",
    "SELECT * FROM jsonb_to_record('{}') AS x (a integer[][])",
    "SELECT * FROM jsonb_to_recordset('[]') AS x (a integer[])",
    "SELECT x.* FROM u, jsonb_populate_recordset(ROW(k, 'q', NULL, NULL)::t, j) x",
])  # fmt: skip
def test_other_uses_are_refused_with_a_rewrite(sql: str) -> None:
    engine = hj.Engine()
    for statement in TABLES:
        engine.execute(statement)
    with pytest.raises(hj.UnsupportedSQL) as caught:
        engine.execute(sql)
    assert caught.value.remedy is not None
    assert any(word in caught.value.remedy for word in ("jsonb_to_record", "in FROM", "and cast it",
                                                     "coalesce", "::bigint"))

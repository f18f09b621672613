"""json keeps a text as it was written: its parts, what is made of it, and what is refused are PostgreSQL's."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from tests.support.refused import refused_alike

pytest_plugins = ("tests.support.postgres",)

TEXTS = (  # blanks, keys that come twice, numbers with zeros, escapes
    ' {"a": 1.50,  "b": [1, "x\\u00e9\\n",null], "a": {"c" :2}} ', "[ 1, 2.0,{} , [true ] ]",
    '"s\\"t"', "null", "-0.0", " 7 ", '{"b":{"b":{"a":[3,4]}}, "b":{"c":1}, "0": "zero"}', "[]", "{ }", "1e400",
    '{"": null}',
)  # fmt: skip
DDL = ("CREATE TABLE t (k integer, j json)", "CREATE TYPE pair AS (a text, b json)")
READS = (
    "j::text", "j -> 'a'", "j ->> 'a'", "j -> 'b' -> 1", "j -> 'b' ->> 1", "j -> 0", "j ->> -1", "j #> '{b,b}'",
    "j #>> '{b,c}'", "j #> '{}'", "j #>> '{}'", "j #> '{b,1}'", "j #> ARRAY['b', NULL]",
    "j #>> ARRAY[NULL]", "json_typeof(j)", "json_strip_nulls(j)",
    "json_extract_path(j, 'b', '-1')", "j IS NULL", "coalesce(j, '1')", "CASE WHEN k > 2 THEN j END",
    "ARRAY[j, j]::text",
    "to_json(j)", "to_json(ARRAY[j])", "row_to_json(ROW(k, j))", "row_to_json(t)", "row_to_json(t, k > 3)",
    "json_build_object('k', k, coalesce(j ->> 'a', 'k'), j)", "json_build_array(j, k, NULL, t)",
    "concat(j, k)", "j || 'x'",
    "array_to_json(ARRAY[[k, 1], [2, NULL]], true)", "to_json(t.*)", "format('%s', j)", "ROW(j, k)::text",
    "json_build_object('x', ROW(ARRAY[k], 'a\"b', 1.50, true, date '2020-01-01', interval '1 day'))",
)  # fmt: skip


def both(postgres: Any) -> hj.Engine:
    """An engine and PostgreSQL with the same rows."""
    engine = hj.Engine()
    for statement in DDL:
        engine.execute(statement)
        postgres.execute(statement)
    rows = [*enumerate(TEXTS), (len(TEXTS), None)]
    engine.apply({"t": [{"k": k, "j": text} for k, text in rows]})
    with postgres.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s)", rows)
    return engine


def test_parts_are_slices_of_the_text(postgres: Any) -> None:
    engine = both(postgres)
    for read in READS:
        sql = f"SELECT k, ({read})::text AS x FROM t ORDER BY k"
        expected = [tuple(row) for row in postgres.execute(sql).fetchall()]
        found = engine.query(sql)
        assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == expected, read


ROWS = (
    "SELECT k, e.key, e.value::text AS v FROM t, json_each(CASE json_typeof(j) WHEN 'object' THEN j END) e",
    "SELECT k, e.key, e.value AS v FROM t, json_each_text(CASE json_typeof(j) WHEN 'object' THEN j END) e",
    "SELECT k, e::text AS v, o FROM t, json_array_elements(CASE json_typeof(j) WHEN 'array' THEN j END) "
    "WITH ORDINALITY AS e (e, o)",
    "SELECT k, e AS v FROM t, json_array_elements_text(CASE json_typeof(j) WHEN 'array' THEN j END) e",
    "SELECT k, json_object_keys(CASE json_typeof(j) WHEN 'object' THEN j END) AS v FROM t",
    "SELECT k, r.a, r.b::text, r.\"0\" FROM t, json_to_record(CASE json_typeof(j) WHEN 'object' THEN j END) "
    "AS r (a text, b json, \"0\" text)",
    "SELECT k, r.a::text, r.b FROM t, json_to_recordset(json_build_array(CASE json_typeof(j) WHEN 'object' THEN j "
    "ELSE '{}' END)) AS r (a jsonb, b text) WHERE json_typeof(j) = 'object'",
    "SELECT k, r.a, r.b::text FROM t, json_populate_record(NULL::pair, CASE json_typeof(j) WHEN 'object' THEN j END) r",
    "SELECT json_agg(j ORDER BY k)::text AS x FROM t", "SELECT json_agg(t ORDER BY k)::text AS x FROM t",
    "SELECT json_agg(ARRAY[k] ORDER BY k)::text AS x, json_agg(k ORDER BY k)::text AS y FROM t WHERE k < 0",
    "SELECT k % 2 AS m, json_agg(ARRAY[k, 1] ORDER BY k)::text AS x FROM t GROUP BY k % 2",
    "SELECT k % 2 AS m, json_object_agg(k, j ORDER BY k)::text AS x FROM t GROUP BY k % 2",
    "SELECT json_agg(DISTINCT CASE WHEN k > 2 THEN ARRAY[k % 2] WHEN k > 1 THEN ARRAY[k, NULL] END)::text AS x FROM t",
    "SELECT k % 2 AS m, json_agg(DISTINCT ARRAY[k % 3] ORDER BY ARRAY[k % 3] DESC)::text AS x FROM t GROUP BY k % 2",
    "SELECT json_agg(DISTINCT k % 3)::text AS x, json_agg(k ORDER BY k) FILTER (WHERE k > 5)::text AS y FROM t",
    "SELECT k, (SELECT o.j FROM t AS o WHERE o.k = t.k)::text AS x FROM t",
    "SELECT k, (SELECT count(*) FROM t AS o WHERE o.k < t.k AND json_typeof(t.j) = 'object') AS x FROM t",
    "SELECT k, x.y::text FROM t, LATERAL (SELECT json_build_array(t.j, o.k) AS y FROM t AS o WHERE o.k = t.k + 1) x",
    "SELECT j::text FROM t UNION ALL SELECT j::text FROM t", "SELECT k, count(*) AS n FROM t GROUP BY k",
)


@pytest.mark.parametrize("sql", ROWS)
def test_rows_are_postgresqls_in_queries_and_views_that_change(sql: str, postgres: Any) -> None:
    engine = both(postgres)
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    for change in ("SELECT 1", "INSERT INTO t SELECT k + 20, j FROM t WHERE k < 4", "DELETE FROM t WHERE k % 3 = 1",
                   "UPDATE t SET j = json_build_object('n', k) WHERE k = 2"):  # fmt: skip
        engine.query(change) if change == "SELECT 1" else engine.execute(change)
        postgres.execute(change)
        expected = sorted(map(tuple, postgres.execute(sql).fetchall()), key=str)
        for found in (engine.query(sql), engine.read("v")):
            assert sorted(zip(*(column.to_pylist() for column in found.columns), strict=True), key=str) == expected


@pytest.mark.parametrize("sql", [
    "SELECT j = j FROM t", "SELECT j <> '1' FROM t", "SELECT j IN ('1', '2') FROM t", "SELECT DISTINCT j FROM t",
    "SELECT j FROM t GROUP BY j", "SELECT k FROM t ORDER BY j", "SELECT count(DISTINCT j) FROM t",
    "SELECT max(j) FROM t",
    "SELECT rank() OVER (PARTITION BY j) FROM t", "SELECT DISTINCT ON (j) k FROM t",
    "SELECT j FROM t UNION SELECT j FROM t",
    "SELECT j FROM t INTERSECT SELECT j FROM t", "SELECT greatest(j, j) FROM t", "SELECT nullif(j, j) FROM t",
    "SELECT CASE j WHEN '1' THEN 1 END FROM t", "SELECT k FROM t JOIN t AS o USING (j)",
    "SELECT ARRAY[j] = ARRAY[j] FROM t",
    "SELECT ROW(j) = ROW(j) FROM t", "SELECT t FROM t GROUP BY t", "SELECT j @> '1' FROM t", "SELECT j ? 'a' FROM t",
    "SELECT j - 'a' FROM t", "SELECT j::integer FROM t", "SELECT j['a'] FROM t", "SELECT j IN (SELECT j FROM t) FROM t",
    "SELECT array_position(ARRAY[j], j) FROM t", "SELECT jsonb_typeof(j) FROM t", "SELECT json_typeof('1'::jsonb)",
    "SELECT length(j) FROM t", "SELECT '{'::json", "SELECT '{\"a\"}'::json", "SELECT '[1,]'::json", "SELECT '01'::json",
    "SELECT '\"\\x\"'::json", "SELECT '{\"a\": \"\\u0000\"}'::json ->> 'a'", "SELECT '\"\\ud800\"'::json #>> '{}'",
    "SELECT ('\"\\u0000\"'::json -> 0) ->> nullif(k, k)::integer FROM t",
    "SELECT json_array_length('{}')", "SELECT * FROM json_each('[]')", "SELECT json_array_elements('1')",
    "SELECT json_object_keys('[]')", "SELECT json_build_object(j, 1) FROM t", "SELECT json_build_object('a')",
    "SELECT json_build_object(NULL, 1)", "SELECT json_object_agg(NULL, 1)", "SELECT to_json('a')",
    "CREATE TABLE x (j json PRIMARY KEY)", "CREATE TABLE x (j json UNIQUE)", "SELECT j IS DISTINCT FROM j FROM t",
])  # fmt: skip
def test_what_postgresql_refuses_is_refused_with_its_sqlstate(sql: str, postgres: Any) -> None:
    engine = both(postgres)
    refused_alike(sql, postgres, engine.execute if sql.startswith("CREATE") else engine.query)


def test_values_of_python_and_copies_keep_their_texts(tmp_path: Path) -> None:
    engine = hj.Engine(tmp_path / "w")
    engine.execute("CREATE TABLE t (k integer, j json, a json[])")
    engine.apply({"t": [{"k": 1, "j": {"b": 1.5, "a": [None, True]}, "a": ['{"x":  1}', [2]]},
                        {"k": 2, "j": ' {"b":1,"b" : 2}', "a": None}]})  # fmt: skip
    rows = [{"k": 1, "j": '{"b": 1.5, "a": [null, true]}', "a": ['{"x":  1}', "[2]"]},
            {"k": 2, "j": ' {"b":1,"b" : 2}', "a": None}]  # fmt: skip
    assert engine.query("SELECT * FROM t ORDER BY k").to_pylist() == rows
    written = io.BytesIO()
    engine.copy_to("COPY (SELECT * FROM t ORDER BY k) TO STDOUT", written)
    engine.execute("DELETE FROM t")
    engine.copy_from("COPY t FROM STDIN", written.getvalue())
    engine.close()
    reopened = hj.Engine(tmp_path / "w")
    assert reopened.query("SELECT * FROM t ORDER BY k").to_pylist() == rows
    for bad in ("{", '{"a": NaN}', "[1,]"):
        with pytest.raises(hj.InvalidRow):
            reopened.apply({"t": [{"k": 3, "j": bad}]})
    with pytest.raises(hj.InvalidRow):
        reopened.apply({"t": [{"k": 3, "j": "[" * 300 + "]" * 300}]})

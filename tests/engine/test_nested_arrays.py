"""Arrays of arrays: expressions, tables, views and files have PostgreSQL's values, or a reason."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

# Over t (k integer, a integer[][], b text[][], c integer[], x integer), rows where each fails alike in PostgreSQL.
EXPRESSIONS = (
    "a[1][2]", "a[x][1]", "a[1]", "a[1][1][1]", "a[1:2]", "a[2:3][2]", "a[:][x:2]", "a[x:]", "b[1][x]", "a[2:1]",
    "a[NULL:2][1]", "array_ndims(a)", "array_dims(a)", "array_length(a, 2)", "array_length(a, x)", "array_upper(b, 1)",
    "array_lower(a, 2)", "cardinality(a)", "a || a", "a || c", "c || a", "a || ARRAY[[x, 1]]", "ARRAY[a, a]",
    "ARRAY[c, ARRAY[x, 2]]", "ARRAY[[x, 2], [3, k]]", "a::text[]", "b::text", "a = a", "a <> ARRAY[[1, 2], [3, x]]",
    "to_jsonb(a)", "jsonb_build_object('b', b)", "array_to_string(b, ',', '*')", "x = ANY (a)", "x < ALL (a)",
    "a @> ARRAY[x]", "a && c", "array_fill(x, ARRAY[2, 3])", "array_fill(x, ARRAY[x, 2, 1])", "trim_array(a, 1)",
    "coalesce(a, ARRAY[[0]])", "CASE WHEN x > 1 THEN a ELSE '{{7,8}}' END", "a IS DISTINCT FROM a[:2]", "a::real[]",
    "'{{1,2},{3,4}}'::integer[] || c", "('{{a,\"b c\"},{NULL,\"{}\"}}'::text[])[2][x]", "(a || a)[3:4][1:1]",
)
ROWS = (
    "(1, '{{1,2},{3,4}}', '{{a,b}}', '{5,6}', 2)", "(2, '{{1,2}}', '{{NULL,\"x y\"},{\"\",\"{,}\"}}', '{5,6}', 1)",
    "(3, '{}', '{}', '{}', 1)", "(4, NULL, NULL, NULL, 2)", "(5, '{{1},{2},{3}}', '{{a},{b}}', '{5}', NULL)",
    "(6, '{{1,2},{3,4}}', NULL, '{5,6,7}', 3)", "(7, '{{NULL,2},{3,NULL}}', '{{z}}', '{1}', 0)",
)
TABLE = "CREATE TABLE t (k integer, a integer[][], b text[][], c integer[], x integer)"


def loaded(*runs: Any) -> None:
    for run in runs:
        run(TABLE)
        run(f"INSERT INTO t VALUES {', '.join(ROWS)}")


@pytest.mark.parametrize("made", EXPRESSIONS)
def test_an_expression_has_postgresqls_value(made: str, postgres: Any) -> None:
    from psycopg import Error

    engine = hj.Engine()
    loaded(engine.execute, postgres.execute)
    seen = set()
    for k in range(1, len(ROWS) + 1):
        sql = f"SELECT ({made})::text AS v FROM t WHERE k = {k}"
        try:
            theirs = postgres.execute(sql).fetchone()[0]
        except Error as error:
            theirs = error.diag.sqlstate
        try:
            ours = engine.query(sql).to_pylist()[0]["v"]
        except hj.DataError as error:
            ours = theirs if theirs in ("22004", "2202E", "2200E", "2200F", "54000") else str(error)
            if "one dimension less" in str(error):  # PostgreSQL makes an array of one dimension
                ours = theirs
        ours = {True: "true", False: "false"}.get(ours, ours)
        assert ours == theirs, f"row {k}: {made}"
        seen.add(ours)
    assert len(seen) > 1 or "NULL" in made or "[1][1]" in made or made == "a[1]", made


QUERIES = (
    "SELECT k, v FROM t, unnest(a) AS v", "SELECT k, v FROM t, generate_subscripts(a, 2) AS v",
    "SELECT a::text, count(*) FROM t GROUP BY a", "SELECT DISTINCT b::text FROM t",
    "SELECT t.k, u.k FROM t JOIN t AS u ON t.a = u.a", "SELECT x % 2, array_agg(c ORDER BY k)::text FROM t WHERE "
    "cardinality(c) = 2 GROUP BY x % 2", "SELECT jsonb_agg(a ORDER BY k)::text FROM t",
    "SELECT k, ARRAY(SELECT ARRAY[u.k, t.k] FROM t AS u WHERE u.x = t.x ORDER BY u.k)::text FROM t",
    "SELECT k, count(*) OVER (PARTITION BY a) FROM t", "SELECT count(DISTINCT a) FROM t",
    "SELECT a::text FROM t UNION SELECT (a || a)::text FROM t",
)


@pytest.mark.parametrize("sql", QUERIES)
def test_views_of_nested_arrays(sql: str, postgres: Any) -> None:
    engine = hj.Engine()
    names = ", ".join(f"c{number}" for number in range(sql.partition(" FROM ")[0].count(", ") + 1
                                                       - sql.partition(" FROM ")[0].count("(PARTITION")))
    if "ARRAY(" in sql:
        names = "c0, c1"
    if "array_agg" in sql or "jsonb_agg" in sql:
        names = "c0, c1" if "array_agg" in sql else "c0"
    engine.execute(TABLE)
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT * FROM ({sql}) AS q ({names})")
    postgres.execute(TABLE)
    for change in (f"INSERT INTO t VALUES {', '.join(ROWS)}", "DELETE FROM t WHERE k IN (2, 3)",
                   "UPDATE t SET a = '{{1,2},{3,4}}' WHERE k = 5"):  # fmt: skip
        engine.execute(change)
        postgres.execute(change)
        theirs = sorted(map(str, postgres.execute(sql).fetchall()))
        for found in (engine.read("v"), engine.query(f"SELECT * FROM ({sql}) AS q ({names})")):
            assert sorted(str(tuple(row.values())) for row in found.to_pylist()) == theirs


def test_what_readers_and_batches_see(tmp_path: Path) -> None:
    draw = random.Random(4)
    rows = [{"k": k, "a": [[draw.randrange(9) for _ in range(3)] for _ in range(draw.randrange(4))]} for k in range(50)]
    with hj.Engine(tmp_path) as engine:
        engine.execute("CREATE TABLE t (k integer PRIMARY KEY, a integer[][], f double precision[][])")
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k, a, a[1:1] AS b, f FROM t")
        engine.apply({"t": pa.table({"k": [row["k"] for row in rows], "a": [row["a"] for row in rows]})})
        engine.apply({"t": hj.upserts([{"k": 0, "a": [[7], [8]]}, {"k": 1, "a": [[], []], "f": [[1, 2.5]]}])})
        engine.copy_from("COPY t (k, a) FROM STDIN", io.BytesIO(b"90\t{{1,2},{3,NULL}}\n91\t{}\n"))
        for bad in ([[1], [2, 3]], [[1], None], [[1], []], [1]):
            with pytest.raises(hj.InvalidRow):
                engine.apply({"t": [{"k": 99, "a": bad}]})
        for bad in ("{1,2}", "{{1},{2,3}}", "{{{1}}}"):
            with pytest.raises(hj.HalfjoinError):
                engine.execute(f"INSERT INTO t (k, a) VALUES (99, '{bad}')")
        engine.flush()
        wanted = engine.query("SELECT k, a FROM t ORDER BY k").to_pylist()
    assert wanted[:2] == [{"k": 0, "a": [[7], [8]]}, {"k": 1, "a": []}] and wanted[-2]["a"] == [[1, 2], [3, None]]
    with hj.Engine(tmp_path) as engine:
        assert engine.query("SELECT k, a FROM t ORDER BY k").to_pylist() == wanted
        assert {row["k"]: row["b"] for row in engine.read("v").to_pylist()}[0] == [[7]]
        engine.execute("DELETE FROM t WHERE a = '{{7},{8}}'")
        assert engine.query("SELECT count(*) AS n FROM t WHERE k = 0").to_pylist() == [{"n": 0}]


@pytest.mark.parametrize(("sql", "reason"), [
    ("SELECT ARRAY[[1]] < ARRAY[[2]]", "an order of"), ("SELECT '[0:1]={1,2}'::integer[]", "does not begin at 1"),
    ("SELECT array_remove(ARRAY[[1]], 1)", "from multidimensional"), ("SELECT '{{1},{2,3}}'::int[]", "malformed"),
    ("SELECT ARRAY[[1],[2,3]]", "matching dimensions"), ("SELECT '{{{{{{{1}}}}}}}'::int[]", "exceeds the maximum"),
])  # fmt: skip
def test_what_is_refused_has_a_reason(sql: str, reason: str) -> None:
    with pytest.raises(hj.UnsupportedSQL, match=reason):
        hj.Engine().query(sql)


def test_other_tools_read_lists_of_lists(tmp_path: Path) -> None:
    with hj.Engine(tmp_path) as engine:
        engine.execute("CREATE TABLE t (k integer, a integer[][])")
        engine.execute("INSERT INTO t VALUES (1, '{{1,2},{3,4}}'), (2, '{}'), (3, NULL)")
        engine.flush()
    files = [str(file) for file in (tmp_path / "tables").rglob("*.parquet")]
    found = duckdb.sql("SELECT k, a FROM read_parquet($1) ORDER BY k", params=[files]).fetchall()
    assert found == [(1, [[1, 2], [3, 4]]), (2, []), (3, None)]

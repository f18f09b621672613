"""What is made of rows, jsonb and text, is what PostgreSQL makes: in queries and in views that change."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

TABLES = (
    "CREATE TABLE t (a integer, b text, c boolean, d char(3), e numeric(6,2), f timestamp(1), g integer[], j jsonb)",
    "CREATE TABLE u (a integer, w text)",
)
ROWS = (
    """INSERT INTO t VALUES (1, 'x', true, 'q', 1.25, '2024-01-01 10:00', '{1,NULL}', '{"k": [1, "a b"]}'),
    (2, 'y z', false, NULL, NULL, NULL, '{}', 'null'), (3, '', NULL, 'a"\\', -1.75, '2000-01-01', NULL, '"(,)"'),
    (NULL, 'NULL', NULL, ' ', 0.01, NULL, '{7}', NULL)""",
    "INSERT INTO u VALUES (1, 'one'), (1, 'a,b'), (3, NULL)",
)
QUERIES = [
    "SELECT to_jsonb(t)::text AS x, t::text AS y FROM t",
    "SELECT to_jsonb(x)::text AS x FROM (SELECT a AS n, f FROM t) x",
    "SELECT to_jsonb(t.*) - 'a' ->> 'b' AS x FROM t",
    "SELECT ROW(a, b, NULL, '', ROW(t, g, c))::text AS x, (1, b)::varchar(4) AS y FROM t",
    "SELECT jsonb_build_object('r', t, 'q', ROW(1, ROW('a', u)))::text AS x FROM t JOIN u USING (a)",
    "SELECT t.a, to_jsonb(u)::text AS x, u::text AS y FROM t LEFT JOIN u ON t.a = u.a",
    "SELECT jsonb_build_array(u, t.a)::text AS x FROM t LEFT JOIN u ON t.a = u.a",
    "SELECT u.a, jsonb_agg(t ORDER BY t.b)::text AS x FROM t RIGHT JOIN u ON t.a = u.a GROUP BY u.a",
    "SELECT a, (SELECT jsonb_agg(x ORDER BY w) FROM (SELECT w FROM u WHERE u.a = t.a) x)::text AS x FROM t",
    "SELECT jsonb_object_agg(w, t)::text AS x FROM t JOIN u USING (a) WHERE w IS NOT NULL",
    "SELECT a, to_jsonb(t)::text AS x FROM t GROUP BY a, t",
    "SELECT jsonb_agg(u) OVER (PARTITION BY a ORDER BY w)::text AS x FROM u",
    "SELECT o.a, l.x::text FROM t o, LATERAL (SELECT to_jsonb(o) || '{\"z\": 1}' AS x) l",
    "SELECT max(u::text) AS x FROM u GROUP BY a",
]


def answers(rows: Any) -> list[str]:
    return sorted(map(str, rows))


@pytest.mark.parametrize("sql", QUERIES)
def test_rows_are_made_as_in_postgresql(sql: str, postgres: Any) -> None:
    engine = hj.Engine()
    for statement in TABLES:
        engine.execute(statement)
        postgres.execute(statement)
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    for change in (*ROWS, "DELETE FROM u WHERE w IS NULL", "UPDATE t SET b = 'new' WHERE a = 1"):
        engine.execute(change)
        postgres.execute(change)
        theirs = answers(postgres.execute(sql).fetchall())
        assert answers(tuple(row.values()) for row in engine.query(sql).to_pylist()) == theirs
        assert answers(tuple(row.values()) for row in engine.read("v").to_pylist()) == theirs


def test_what_is_not_made_of_rows_is_refused_with_a_rewrite() -> None:
    engine = hj.Engine()
    engine.execute(TABLES[0])
    for sql, remedy in (("SELECT max(t) FROM t", "to_jsonb"), ("SELECT min(t) FROM t", "to_jsonb"),
                        ("SELECT jsonb_agg(DISTINCT t) FROM t", "subquery with DISTINCT")):  # fmt: skip
        with pytest.raises(hj.UnsupportedSQL, match=remedy):
            engine.query(sql)

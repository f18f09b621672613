"""Queries as people write them: ad hoc and as views they have PostgreSQL's rows, however rows come and go."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj
from halfjoin.errors import UnsupportedSQL
from tests.support.compared import compare

pytest_plugins = ("tests.support.postgres",)

SETUP = """
    CREATE TABLE t (a integer PRIMARY KEY, b integer, c boolean);
    CREATE TABLE u (a integer, s text);
    INSERT INTO t VALUES (1, 9, true), (2, 8, false), (3, 7, NULL), (4, 7, NULL), (5, 7, true);
    INSERT INTO u VALUES (1, 'bird'), (2, 'Cat'), (3, NULL), (NULL, 'dog');
"""
CHANGES = ("INSERT INTO t VALUES (7, 0, false), (8, NULL, true); INSERT INTO u VALUES (7, 'x,y'), (1, '')",
           "DELETE FROM u WHERE s LIKE '%r%'; UPDATE t SET b = b + 1 WHERE a < 4", "DELETE FROM t; DELETE FROM u")
QUERIES = (
    # a value that may fail, by which an outer or semi-join looks up its other side
    "SELECT t.a, u.s FROM t LEFT JOIN u ON u.s <> '' AND u.a = (SELECT x.a FROM t AS x WHERE x.b = t.b + 1)",
    "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = (SELECT x.a FROM t AS x WHERE x.b = t.b + 1))",
    "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = (SELECT x.a FROM t AS x WHERE x.b = t.b + 1))",
    "SELECT t.a, w.b FROM t LEFT JOIN u ON u.a = t.a LEFT JOIN t AS w ON w.b = 70 / (u.a + 9) AND w.a < t.a + 9",
    "SELECT t.a, u.s FROM t FULL JOIN u ON u.a = (SELECT x.a FROM t AS x WHERE x.b = t.b + 1)",
    # a function of one value in FROM
    "SELECT * FROM upper('abc')",
    "SELECT x.* FROM upper('abc') AS x(y)",
    "SELECT * FROM abs(-3) WITH ORDINALITY AS n(x)",
    "SELECT a, d FROM t, abs(t.a - 3) AS d WHERE d > 1",
    "SELECT a, d FROM t LEFT JOIN LATERAL abs(t.a - 3) AS d ON d > 1",
    "SELECT * FROM abs(3) d LEFT JOIN t ON d = a",
    "SELECT u.a, x FROM u, string_to_array(u.s, ',') x",
    "SELECT * FROM ROWS FROM (generate_series(1, 2), lower('A'))",
    "SELECT * FROM length((SELECT max(s) FROM u)) AS l",
    "SELECT * FROM cast('1' AS integer) AS x, coalesce(NULL, 2) AS y",
    # clauses after a query in parentheses
    "(((SELECT a FROM t))) ORDER BY a DESC LIMIT 4",
    "((SELECT a FROM t) UNION (SELECT 9)) ORDER BY 1 DESC LIMIT 2",
    "(SELECT a FROM t ORDER BY a DESC) LIMIT 2",
    "(SELECT a FROM t) ORDER BY b, a LIMIT 2",
    "SELECT a FROM u WHERE a IN ((SELECT a FROM t) ORDER BY a DESC LIMIT 2)",
    "SELECT 9 UNION ALL ((SELECT a FROM t UNION ALL SELECT 8) ORDER BY 1 DESC LIMIT 2)",
    "SELECT ((SELECT a FROM t) ORDER BY a DESC LIMIT 1)",
    "WITH x AS (SELECT 1 AS y) (SELECT y FROM x) ORDER BY y",
    # names
    "SELECT a AS foo, (a) AS foo FROM t ORDER BY foo LIMIT 1",
    # LATERAL over all columns of a key, beside them
    "SELECT t.a, l.* FROM t, LATERAL (SELECT t.a + 1 AS p UNION ALL SELECT t.b) l",
    "SELECT t.*, l.p FROM t, LATERAL (SELECT t.a AS p UNION SELECT u.a FROM u WHERE u.a > t.b) l",
    # outputs of a subquery that read outer columns
    "SELECT a FROM t WHERE b = 9 OR c NOT IN (SELECT t.c FROM u WHERE t.a > u.a)",
    "SELECT a, a IN (SELECT t.a + u.a - 2 FROM u) AS x, a <> ALL (SELECT t.b FROM u WHERE u.a = t.a) AS y FROM t",
    "SELECT a FROM t WHERE b = 9 OR (a, b) NOT IN (SELECT t.a + u.a, u.a FROM u)",
    "SELECT a, b IN (SELECT t.b) AS x, c IN (SELECT t.c FROM u LIMIT 1) AS y FROM t",
    # two aggregates over what never has rows, by different columns
    "SELECT a, max(-b) FROM t WHERE false GROUP BY ROLLUP (a)",
    "SELECT max(abs(x)), count(*) FROM (SELECT a AS x, b FROM t LIMIT 0) q GROUP BY GROUPING SETS ((b), (x), ())",
    "WITH q AS (SELECT a, b FROM t WHERE 1 = 2) SELECT max(a + 1) FROM q UNION ALL SELECT min(b - 1) FROM q",
    # an operator with NULL does not evaluate the other side
    "SELECT a FROM t WHERE NOT 96 / (a - 1) <= NULL",
    "SELECT a, 1 / (a - 1) + NULL FROM t",
)  # fmt: skip


def test_what_people_write_has_postgresqls_rows(postgres: Any) -> None:
    compare(SETUP, CHANGES, QUERIES, postgres)


def test_a_query_by_chance_is_not_read_twice() -> None:
    engine = hj.Engine()
    once = "WITH q AS (SELECT random() AS r) SELECT r < 2 AS x FROM q"
    assert engine.query(once).to_pylist() == [{"x": True}]
    with pytest.raises(UnsupportedSQL, match="q depends on chance and is read twice"):
        engine.query("WITH q AS (SELECT random() AS r) SELECT r FROM q UNION SELECT r FROM q")


@pytest.mark.parametrize(("sql", "message"), [
    ("((SELECT a FROM t ORDER BY a)) ORDER BY a", "multiple ORDER BY clauses not allowed"),
    ("(SELECT a FROM t LIMIT 2) LIMIT 1", "multiple LIMIT clauses not allowed"),
    ("SELECT a FROM t |> LIMIT 1", "syntax error at '|'"),
    ("SELECT * FROM sum(3)", "sum is an aggregate"),
])  # fmt: skip
def test_what_postgresql_refuses_is_refused(sql: str, message: str) -> None:
    engine = hj.Engine()
    engine.execute(SETUP)
    with pytest.raises(UnsupportedSQL) as caught:
        engine.query(sql)
    assert message in str(caught.value)

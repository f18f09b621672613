"""The order of a subquery, of VALUES and of a call reaches what depends on the order of its rows, as in PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj
from tests.support.compared import compare

pytest_plugins = ("tests.support.postgres",)

SETUP = """
    CREATE TABLE t (a integer PRIMARY KEY, b integer, c text);
    CREATE TABLE l (id integer PRIMARY KEY, xs integer[], c text);
    INSERT INTO t VALUES (1, 9, 'x'), (2, 8, NULL), (3, 7, 'y'), (4, 7, 'z'), (5, 7, 'w');
    INSERT INTO l VALUES (1, '{3,1,2}', 'b,a'), (2, '{}', ''), (3, NULL, NULL);
"""
CHANGES = (
    "INSERT INTO t VALUES (0, 6, 'v'), (9, 1, 'u')", "DELETE FROM t WHERE a IN (1, 4)",
    "UPDATE t SET b = 10 - a", "INSERT INTO l VALUES (4, '{5,4,9}', 'd,c,d'); UPDATE l SET xs = '{2,7,1}' WHERE id = 1",
    "DELETE FROM t; DELETE FROM l",
)  # fmt: skip
QUERIES = (
    "SELECT string_agg(c, ',') FROM (SELECT c FROM t ORDER BY b, a DESC) s",
    "SELECT array_agg(a), string_agg(a::text, '') FROM (SELECT a FROM t ORDER BY b DESC, a) s WHERE a <> 3",
    "SELECT b, array_agg(a) FROM (SELECT a, b FROM t ORDER BY a DESC) s GROUP BY b",
    "SELECT array_agg(a) FILTER (WHERE a > 2) FROM (SELECT a FROM (SELECT * FROM t ORDER BY c DESC, a) s) s2",
    "WITH w AS (SELECT a FROM t ORDER BY b, a DESC) SELECT array_agg(a) FROM w",
    "WITH w AS (SELECT a FROM t ORDER BY b, a DESC LIMIT 3) SELECT * FROM w LIMIT 2",
    "SELECT a FROM (SELECT * FROM t ORDER BY b, a DESC) s LIMIT 2",
    "SELECT a FROM (SELECT a, c FROM t ORDER BY b, a DESC) s OFFSET 2",
    "SELECT row_number() OVER () AS n, lag(a) OVER () AS m, a FROM (SELECT a FROM t ORDER BY b, a DESC) s",
    "SELECT ARRAY(SELECT a FROM (SELECT * FROM t ORDER BY b, a DESC) s)",
    "SELECT id, ARRAY(SELECT x + 1 FROM unnest(xs) x) FROM l",
    "SELECT id, ARRAY(SELECT unnest(xs) * 2) FROM l",
    "SELECT id, (SELECT string_agg(x, '-') FROM regexp_split_to_table(c, ',') x) FROM l",
    "SELECT id, (SELECT array_agg(x) FROM (SELECT x FROM unnest(xs) x ORDER BY x DESC) q) FROM l",
    "SELECT id, (SELECT array_agg(x || y) FROM unnest(string_to_array(c, ','), ARRAY['p', 'q']) AS u(x, y)) FROM l",
    "SELECT array_agg(x) FROM (VALUES (3), (1), (2)) v(x)",
    "SELECT ARRAY(VALUES (3), (1), (2))",
    "SELECT array_agg(x) FROM generate_series(5, 1, -2) x",
    "SELECT jsonb_agg(x)::text FROM unnest(ARRAY[3, 1, 2]) x",
    "SELECT array_agg(x) FROM (SELECT generate_series(3, 1, -1) AS x) s",
    "SELECT x FROM (SELECT unnest(ARRAY[3, 1, 2]) AS x) s LIMIT 2",
    "SELECT DISTINCT ON (b) b, a FROM (SELECT a, b FROM t ORDER BY b, a DESC) s",
    "SELECT DISTINCT ON (x % 2) x, y FROM (VALUES (4, 'p'), (2, 'q'), (3, 'r'), (1, 's')) v(x, y)",
    "SELECT array_agg(DISTINCT a), array_agg(a ORDER BY a) FROM (SELECT a FROM t ORDER BY b, a DESC) s",
)  # fmt: skip


def test_the_order_of_rows_reaches_lists_limits_and_numbers(postgres: Any) -> None:
    compare(SETUP, CHANGES, QUERIES, postgres)


@pytest.mark.parametrize(("sql", "rows"), [
    ("VALUES (3), (1), (2) LIMIT 2", [3, 1]),
    ("SELECT a FROM (SELECT a FROM t ORDER BY a DESC) s", [5, 4, 3, 2, 1]),
    ("SELECT unnest(ARRAY[3, 1, 2])", [3, 1, 2]),
    ("SELECT * FROM unnest(ARRAY[3, 1, 2])", [3, 1, 2]),
])  # fmt: skip
def test_a_query_returns_rows_in_the_order_of_its_only_source(sql: str, rows: list[int]) -> None:
    engine = hj.Engine()
    engine.execute(SETUP)
    assert engine.query(sql).column(0).to_pylist() == rows


def test_a_view_that_does_not_ask_for_an_order_keeps_no_keys() -> None:
    engine = hj.Engine()
    engine.execute(SETUP)
    for of in ("SELECT sum(a) AS n FROM (SELECT a FROM t ORDER BY b) s", "SELECT sum(a) AS n FROM (SELECT a FROM t) s"):
        assert "order" not in engine.explain(of)

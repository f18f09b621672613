"""Clients are told which column of which table a column of an answer is: JDBC edits rows by it, and sqlx knows by it
what may be NULL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.serving import serving

psycopg = pytest.importorskip("psycopg")
DDL = """
    CREATE SCHEMA s; CREATE TABLE t (id integer PRIMARY KEY, a text); CREATE TABLE s.u (b text, t integer NOT NULL);
    CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a;
    CREATE VIEW w AS SELECT a AS x, id + 1 AS y FROM t; INSERT INTO t VALUES (1, 'x'), (2, 'y')
"""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with serving() as server, server.psycopg() as connection:
        connection.execute(DDL)
        yield connection


@pytest.mark.parametrize(("query", "wanted"), [
    ("SELECT a AS x, id, a || 'x' FROM t WHERE id = %s", [("t", 2), ("t", 1), None]),
    ("SELECT * FROM s.u JOIN t ON u.t = t.id", [("s.u", 1), ("s.u", 2), ("t", 1), ("t", 2)]),
    ("SELECT t.id, u.t, u.b FROM t LEFT JOIN s.u ON u.t = t.id", [("t", 1), None, ("s.u", 1)]),  # u.t may be NULL here
    ("SELECT n, a FROM m", [("m", 2), ("m", 1)]),
    ("SELECT * FROM w", [("t", 2), None]),
    ("SELECT a, count(*) FROM t GROUP BY a ORDER BY a LIMIT 1", [("t", 2), None]),
    ("SELECT DISTINCT q.a FROM (SELECT a, id FROM t) AS q WHERE q.id IN (SELECT t FROM s.u)", [("t", 2)]),
    ("WITH q AS (SELECT a FROM t) SELECT a, row_number() OVER () FROM q, generate_series(1, 2)", [("t", 2), None]),
    ("SELECT a FROM t UNION SELECT b FROM s.u", [None]),
    ("WITH t AS (SELECT 1 AS id) SELECT id FROM t", [None]),
])  # fmt: skip
def test_a_column_has_the_numbers_of_what_it_is(client: Any, query: str, wanted: list[tuple[str, int] | None]) -> None:
    for _ in range(3):  # also once the query is remembered
        told = client.execute(query, [1] if "%s" in query else [], prepare=True).pgresult
        found = [(told.ftable(n), told.ftablecol(n)) for n in range(told.nfields)]
        names = [client.execute("SELECT %s::regclass::text", [table]).fetchone()[0] for table, _ in found]
        assert [(name, at) if at else None for name, (_, at) in zip(names, found, strict=True)] == wanted

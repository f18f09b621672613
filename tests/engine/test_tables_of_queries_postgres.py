"""CREATE TABLE AS takes what any query may ask: a table's rows do not change with the clock. PostgreSQL decides."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

SETUP = ("CREATE TABLE t (a integer, b text)", "INSERT INTO t VALUES (3, 'x'), (1, 'y'), (2, NULL)",
         "CREATE SEQUENCE q")  # fmt: skip
MADE = (
    "SELECT now() AS n, current_timestamp(2) AS c, 1 AS x", "SELECT current_date AS d, 'now'::timestamp AS s",
    "SELECT random() AS r, a FROM t", "SELECT current_user AS u, b FROM t", "SELECT 'b'::name AS n, a FROM t",
    "SELECT nextval('q') AS n", "SELECT nextval('q'), a FROM t", "SELECT nextval('q') AS n, b FROM t ORDER BY b",
    "SELECT a + 1.5 AS s, b || '!' AS e, NULL AS k FROM t",
    "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT i FROM n ORDER BY i LIMIT 2",
)
FLEETING = ("n", "c", "d", "s", "r", "u")
CATALOG = "CREATE TABLE m AS SELECT relname, relkind, relname::regclass AS c FROM pg_class WHERE relname = 't'"


@pytest.mark.parametrize("query", MADE)
def test_a_table_of_a_query_is_postgresqls(query: str, postgres: Any) -> None:
    engine, shown = hj.Engine(), []
    for run in (postgres.execute, engine.execute):
        for sql in SETUP:
            run(sql)
        run(f"CREATE TABLE m AS {query}")
    stable = [name for name in engine.query("SELECT * FROM m").column_names
              if name not in FLEETING or "nextval" in query]  # fmt: skip
    for run in (postgres.execute, engine.execute):
        found = run(f"SELECT {', '.join(stable) or 'count(*)'} FROM m")
        rows = [tuple(row.values()) for row in found.to_pylist()] if run == engine.execute else found.fetchall()
        shown.append(sorted(map(str, rows)))
        found = run("SELECT nextval('q') AS n")
        shown.append(found.to_pylist()[0]["n"] if run == engine.execute else found.fetchone()[0])
    assert shown[:2] == shown[2:]


def test_a_table_of_the_catalog_holds_names_as_texts() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (a integer)")
    engine.execute(CATALOG)
    assert engine.query("SELECT * FROM m").to_pylist() == [{"relname": "t", "relkind": "r", "c": "t"}]
    engine.execute("CREATE TABLE n (c text); INSERT INTO n SELECT 't'::regclass; INSERT INTO n VALUES ('t'::regclass)")
    assert engine.query("SELECT c FROM n").column("c").to_pylist() == ["t", "t"]


def test_a_view_still_refuses_the_clock() -> None:
    with pytest.raises(hj.UnsupportedSQL, match="its answer changes with the clock"):
        hj.Engine().execute("CREATE MATERIALIZED VIEW v AS SELECT now() AS n")

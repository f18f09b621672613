"""CREATE OR REPLACE VIEW of a plain view that others read: all have the contents that they have in PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

VIEWS = (
    "CREATE TABLE t (id integer PRIMARY KEY, a integer, b text)", "CREATE TABLE u (id integer, a integer)",
    "INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y')", "INSERT INTO u VALUES (2, 20), (3, 30)",
    "CREATE VIEW v AS SELECT id, a FROM t", "CREATE VIEW w AS SELECT * FROM v WHERE a > 5",
    "CREATE VIEW x AS SELECT w.id + a AS s FROM w", "CREATE VIEW n AS SELECT * FROM v NATURAL JOIN t",
)  # fmt: skip
REPLACED = {
    "other values": ["SELECT id, a + 1 AS a FROM t"], "other tables": ["SELECT id, a FROM u"],
    "one more column": ["SELECT id, a, b || 'q' AS b FROM t", "SELECT id, 7 AS a, NULL::text AS b FROM u"],
    "another name": ["SELECT id, a AS c FROM t"], "another type": ["SELECT id, b AS a FROM t"],
    "fewer columns": ["SELECT id FROM t"], "another order": ["SELECT a, id FROM t"],
}  # fmt: skip


@pytest.mark.parametrize("how", REPLACED)
def test_plain_views_follow(how: str, postgres: Any, tmp_path: Path) -> None:
    from psycopg import Error

    with hj.Engine(str(tmp_path)) as engine:
        for statement in VIEWS:
            engine.execute(statement)
            postgres.execute(statement)
        for query in REPLACED[how]:
            sql, theirs = f"CREATE OR REPLACE VIEW v AS {query}", ""
            try:
                postgres.execute(sql)
            except Error as error:
                theirs = str(error.sqlstate)
            if theirs:
                with pytest.raises(hj.Conflict) as found:
                    engine.execute(sql)
                assert found.value.sqlstate == theirs
            else:
                engine.execute(sql)
            shown(engine, postgres)
    with hj.Engine(str(tmp_path)) as engine:
        shown(engine, postgres)
        if how == "other tables":
            with pytest.raises(hj.Conflict, match="u is read by v, w, x, n"):
                engine.execute("DROP TABLE u")
            engine.execute("DROP VIEW n; DROP TABLE t")


def shown(engine: hj.Engine, postgres: Any) -> None:
    for view in "vwxn":
        table = engine.query(f"SELECT * FROM {view}")
        theirs = postgres.execute(f"SELECT * FROM {view}")
        assert table.column_names == [column.name for column in theirs.description]
        ours = (tuple(row.values()) for row in table.to_pylist())
        assert sorted(map(str, ours)) == sorted(map(str, theirs.fetchall()))


def test_a_view_does_not_come_to_read_itself() -> None:
    engine = hj.Engine()
    engine.execute("CREATE VIEW v AS SELECT 1 AS a; CREATE VIEW w AS SELECT a FROM v")
    for name in "vw":
        with pytest.raises(hj.UnsupportedSQL, match=f"{name} reads itself") as found:
            engine.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT a FROM w")
        assert found.value.sqlstate == "42P17"


def test_what_is_materialized_does_not_follow() -> None:
    engine = hj.Engine()
    engine.execute("CREATE VIEW v AS SELECT 1 AS a; CREATE VIEW w AS SELECT a FROM v; "
                   "CREATE MATERIALIZED VIEW m AS SELECT a FROM w")
    with pytest.raises(hj.Conflict, match="v is read by w, m; drop what reads it first"):
        engine.execute("CREATE OR REPLACE VIEW v AS SELECT 2 AS a")
    with pytest.raises(hj.Conflict, match="v is read by w, m"):
        engine.execute("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 2 AS a")
    assert engine.query("SELECT a FROM m").to_pylist() == [{"a": 1}]


def test_a_replaced_view_comes_back_with_its_transaction() -> None:
    engine = hj.Engine()
    engine.execute("CREATE VIEW v AS SELECT 1 AS a; CREATE VIEW w AS SELECT * FROM v")
    engine.execute("BEGIN; CREATE OR REPLACE VIEW v AS SELECT 2 AS a, 3 AS b")
    found = engine.execute("SELECT * FROM w")
    assert found is not None and found.to_pylist() == [{"a": 2}]
    engine.execute("ROLLBACK")
    assert engine.query("SELECT * FROM w").to_pylist() == [{"a": 1}]

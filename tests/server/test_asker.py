"""Who asks: current_user and its kin are each client's own, in the defaults of columns, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from tests.support.serving import Served, serving

pytest.importorskip("psycopg")
DDL = """
    CREATE TABLE t (k integer PRIMARY KEY, a text DEFAULT current_user, b text DEFAULT session_user,
                    c varchar(20) NOT NULL DEFAULT current_role, d text DEFAULT USER)
"""


@pytest.fixture
def server() -> Iterator[Served]:
    with serving() as served:
        yield served


def rows(client: Any, query: str) -> list[Any]:
    return list(client.execute(query).fetchall())


def test_a_default_is_the_user_who_inserts(server: Served) -> None:
    with server.psycopg(user="ann") as ann, server.psycopg(user="bob") as bob:
        ann.execute(DDL)
        for number in range(6):  # also once the statement is remembered
            (ann, bob)[number % 2].execute("INSERT INTO t (k) VALUES (%s)", (number,))
        assert rows(bob, "SELECT * FROM t ORDER BY k") == [
            (number, *[("ann", "bob")[number % 2]] * 4) for number in range(6)]  # fmt: skip
        bob.execute("UPDATE t SET a = DEFAULT, d = 'x' WHERE k = 0")
        assert rows(ann, "SELECT a, b, d FROM t WHERE k = 0") == [("bob", "ann", "x")]
        assert rows(ann, "SELECT column_default FROM information_schema.columns WHERE column_name IN ('a','b','c','d') "
                         "ORDER BY ordinal_position") == [("CURRENT_USER",), ("SESSION_USER",), ("CURRENT_ROLE",),
                                                          ("USER",)]  # fmt: skip


def test_each_statement_knows_who_asks(server: Served) -> None:
    """COPY and WITH that changes read their rows from a copy of the catalog, which had forgotten it."""
    with server.psycopg(user="bob") as bob:
        bob.execute(DDL)
        with bob.cursor() as cursor, cursor.copy("COPY t (k) FROM STDIN") as copy:
            copy.write("1\n")
        assert rows(bob, "WITH x AS (INSERT INTO t (k) VALUES (2) RETURNING a) SELECT a, current_user FROM x") == [
            ("bob", "bob")]  # fmt: skip
        bob.execute("MERGE INTO t USING (VALUES (3)) AS v(k) ON v.k = t.k "
                    "WHEN NOT MATCHED THEN INSERT (k) VALUES (v.k)")
        assert rows(bob, "SELECT k, a, d FROM t ORDER BY k") == [(n, "bob", "bob") for n in (1, 2, 3)]


def test_rows_that_are_there_get_the_user_who_adds_the_column(server: Served, tmp_path: Path) -> None:
    with hj.Engine(tmp_path) as engine, serving(engine) as kept, kept.psycopg(user="ann") as ann:
        ann.execute("CREATE TABLE t (k integer); INSERT INTO t VALUES (1)")
        ann.execute("BEGIN; ALTER TABLE t ADD COLUMN a text DEFAULT upper(current_user); COMMIT")
        ann.execute("CREATE DOMAIN who AS text DEFAULT user; ALTER TABLE t ADD COLUMN b who")
        ann.execute("INSERT INTO t (k) VALUES (2)")
        assert rows(ann, "SELECT * FROM t ORDER BY k") == [(1, "ANN", "ann"), (2, "ANN", "ann")]
    with hj.Engine(tmp_path) as engine:
        engine.execute("INSERT INTO t (k) VALUES (3)")
        assert engine.query("SELECT * FROM t WHERE k <> 2 ORDER BY k").to_pylist() == [
            {"k": 1, "a": "ANN", "b": "ann"}, {"k": 3, "a": "HALFJOIN", "b": "halfjoin"}]  # fmt: skip


def test_the_schema_of_what_is_temporary_is_no_current_schema(server: Served) -> None:
    with server.psycopg() as client:
        client.execute("CREATE TEMP TABLE t (k integer, s text DEFAULT current_schema)")
        assert rows(client, "INSERT INTO t (k) VALUES (1) RETURNING s, current_schema(), current_schemas(false)") == [
            ("public", "public", ["public"])]  # fmt: skip

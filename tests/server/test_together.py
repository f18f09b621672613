"""Statements of one text, and before one Sync, are one transaction, definitions included; COMMIT AND CHAIN."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj
from tests.support.serving import Served, served  # noqa: F401

psycopg = pytest.importorskip("psycopg")


def failing(client: Any, text: str) -> str:
    """The SQLSTATE with which a text fails."""
    with pytest.raises(psycopg.Error) as failed:
        client.execute(text)
    return str(failed.value.sqlstate)


def test_a_script_that_fails_leaves_no_definitions(served: Served) -> None:  # noqa: F811
    with served.psycopg() as client:
        client.execute("CREATE TABLE t (a int)")
        assert failing(client, "INSERT INTO t VALUES (1); CREATE TABLE u (a int); ALTER TABLE t ADD b int; SELECT 1/0"
                       ) == "22012"  # fmt: skip
        assert failing(client, "SELECT b FROM t") == "42703"
        assert failing(client, "SELECT * FROM u") == "42P01"
        assert client.execute("SELECT * FROM t").fetchall() == []
        assert failing(client, "SELECT 1 AS a INTO q; SELECT 1/0") == "22012"
        assert failing(client, "SELECT * FROM q") == "42P01"
        assert failing(client, "CREATE TABLE q (a int); ALTER TABLE q ADD COLUMN retain int; SELECT 1/0") == "22012"
        assert failing(client, "SELECT * FROM q") == "42P01"
        client.execute("CREATE TABLE u (a int); INSERT INTO u VALUES (1); CREATE MATERIALIZED VIEW v AS "
                       "SELECT sum(a) AS s FROM u; INSERT INTO u VALUES (2)")  # fmt: skip
        assert client.execute("SELECT s FROM v").fetchall() == [(3,)]


def test_what_begins_or_ends_a_transaction_within_a_script_takes_what_came_before(served: Served) -> None:  # noqa: F811
    with served.psycopg() as client:
        client.execute("CREATE TABLE t (a int)")
        client.execute("INSERT INTO t VALUES (1); BEGIN; INSERT INTO t VALUES (2); ROLLBACK")
        client.execute("INSERT INTO t VALUES (3); ROLLBACK; INSERT INTO t VALUES (4)")
        assert failing(client, "INSERT INTO t VALUES (5); COMMIT; INSERT INTO t VALUES (6); SELECT 1/0") == "22012"
        for word in ("SAVEPOINT x", "RELEASE x", "ROLLBACK TO x"):
            assert failing(client, f"INSERT INTO t VALUES (7); {word}") == failing(client, word) == "25P01"
        assert client.execute("SELECT a FROM t ORDER BY a").fetchall() == [(4,), (5,)]


def test_a_pipeline_that_fails_leaves_no_definitions(served: Served) -> None:  # noqa: F811
    with served.psycopg() as client:
        with pytest.raises(psycopg.Error), client.pipeline():
            client.execute("CREATE TABLE t (a int)")
            client.execute("SELECT 1/0")
        assert failing(client, "SELECT * FROM t") == "42P01"


def test_a_statement_that_no_transaction_contains_leaves_each_on_its_own(served: Served) -> None:  # noqa: F811
    with served.psycopg() as client:
        assert failing(client, "CREATE TABLE t (a int); REFRESH PLAN nope; SELECT 1") == "42P01"
        assert client.execute("SELECT * FROM t").fetchall() == []


def test_and_chain_begins_another_transaction_with_the_same_modes(served: Served) -> None:  # noqa: F811
    with served.psycopg() as client:
        client.execute("CREATE TABLE t (a int)")
        assert failing(client, "ROLLBACK AND CHAIN") == "25P01"
        client.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        client.execute("INSERT INTO t VALUES (1)")
        client.execute("COMMIT AND CHAIN")
        assert client.execute("SHOW transaction_isolation").fetchone() == ("repeatable read",)
        client.execute("INSERT INTO t VALUES (2)")
        client.execute("ROLLBACK AND CHAIN")
        assert failing(client, "SELECT 1/0") == "22012"
        assert client.execute("COMMIT AND CHAIN").statusmessage == "ROLLBACK"
        client.execute("INSERT INTO t VALUES (3)")
        client.execute("END AND NO CHAIN")
        client.execute("BEGIN READ ONLY")
        client.execute("COMMIT AND CHAIN")
        assert failing(client, "INSERT INTO t VALUES (4)") == "25006"
        client.execute("ROLLBACK")
        assert client.execute("SELECT a FROM t ORDER BY a").fetchall() == [(1,), (3,)]


def test_and_chain_in_the_library() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (a int)")
    engine.execute("BEGIN; INSERT INTO t VALUES (1); ROLLBACK AND CHAIN; INSERT INTO t VALUES (2); COMMIT AND CHAIN")
    engine.execute("INSERT INTO t VALUES (3); ABORT AND NO CHAIN; BEGIN READ ONLY; COMMIT AND CHAIN")
    with pytest.raises(hj.UnsupportedSQL, match="read-only"):
        engine.execute("INSERT INTO t VALUES (4)")
    engine.execute("ROLLBACK")
    with pytest.raises(hj.UnsupportedSQL, match="syntax error at the end"):
        engine.execute("BEGIN; COMMIT AND")
    assert engine.query("SELECT a FROM t").to_pylist() == [{"a": 2}]

"""Key words are names where PostgreSQL takes them as names, and `user` is who asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

# The parser takes these for the words that begin a statement; quoted, they are names.
BEGIN = {"alter", "between", "drop", "function", "insert", "lock", "recursive", "revoke", "rollback", "values"}
NAMED = (
    "CREATE TABLE {} (a integer)", "CREATE VIEW {} AS SELECT 1 AS a", "WITH {} AS (SELECT 1 AS a) SELECT 1",
    "SELECT q.b FROM (SELECT 1, 2) AS q ({}, b)", "SELECT 1 FROM (SELECT 1) AS {}",
)  # fmt: skip
JOINED = ("(t)", "(t) AS q", "(t AS q)", "(t AS q) JOIN t ON true", "((t JOIN t AS q ON true))",
          "(t CROSS JOIN t AS q)", "(SELECT 1) AS q", "(TABLE t) AS q", "(VALUES (1)) AS q",
          "((t JOIN t AS q ON true) CROSS JOIN t AS r)", "(unnest(ARRAY[1]))", "(t NATURAL JOIN t AS q)")  # fmt: skip


def state(run: Callable[[str], Any], sql: str) -> str:
    """The SQLSTATE of a statement, or nothing if it runs."""
    import psycopg

    try:
        run(sql)
    except (psycopg.Error, hj.HalfjoinError) as error:
        return str(error.sqlstate)
    return ""


def test_key_words_name_columns_where_postgresql_takes_them(postgres: Any) -> None:
    engine, differ = hj.Engine(), []
    for (word,) in postgres.execute("SELECT word FROM pg_get_keywords() ORDER BY word").fetchall():
        theirs, ours = (state(run, f"CREATE TABLE n ({word} integer)") for run in (postgres.execute, engine.execute))
        differ += [word] * (bool(theirs) != bool(ours))
        if not theirs:
            state(postgres.execute, "DROP TABLE n")
        if not ours:
            (shown,) = engine.execute("SHOW CREATE TABLE n").to_pylist()
            engine.execute("DROP TABLE n")
            engine.execute(shown["create_statement"])
            engine.execute("DROP TABLE n")
    assert differ == []


@pytest.mark.parametrize("form", NAMED)
def test_key_words_name_tables_where_postgresql_takes_them(form: str, postgres: Any) -> None:
    engine, differ = hj.Engine(), []
    for (word,) in postgres.execute("SELECT word FROM pg_get_keywords() ORDER BY word").fetchall():
        theirs, ours = (state(run, form.format(word)) for run in (postgres.execute, engine.execute))
        differ += [word] * (theirs != ours and word not in BEGIN)
        if not theirs and form.startswith("CREATE"):
            for run in (postgres.execute, engine.execute):
                state(run, f"DROP {form.split()[1]} {word}")
    assert differ == []


@pytest.mark.parametrize("item", JOINED)
def test_parentheses_of_from_hold_a_join_or_a_query(item: str, postgres: Any) -> None:
    engine = hj.Engine()
    states = []
    for run in (postgres.execute, engine.execute):
        run("CREATE TABLE t (a integer)")
        states.append(state(run, f"SELECT 1 FROM {item}"))
    assert states[0] == states[1]


def test_quoted_key_words_are_names() -> None:
    engine = hj.Engine()
    engine.execute('CREATE TABLE "order" ("user" integer, "check" text)')
    engine.execute("""INSERT INTO "order" ("user", "check") VALUES (1, 'x')""")
    assert engine.query('SELECT o.user, o.check, "user" AS select FROM "order" AS o').to_pylist() == [
        {"user": 1, "check": "x", "select": 1}]


@pytest.mark.parametrize("word", ["user", "current_role", "current_user", "session_user", "current_catalog"])
def test_who_asks_is_no_column(word: str) -> None:
    engine = hj.Engine()
    engine.execute(f'CREATE TABLE t ("{word}" text)')
    engine.execute("INSERT INTO t VALUES ('mine')")
    asker = engine.query("SELECT session_user AS u").column("u")[0].as_py()
    assert engine.query(f"SELECT {word} FROM t").to_pylist() == [{word: asker}]
    engine.execute(f"CREATE MATERIALIZED VIEW m AS SELECT t.{word} FROM t")
    assert engine.read("m").to_pylist() == [{word: "mine"}]
    with pytest.raises(hj.UnsupportedSQL, match="tells of a session"):
        engine.execute(f"CREATE VIEW v AS SELECT {word} FROM t")

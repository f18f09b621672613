"""DO: the blocks with which tools define what is not there yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.serving import serving

psycopg = pytest.importorskip("psycopg")
TYPE = "CREATE TYPE mood AS ENUM (''sad'', ''glad'');"
CHECK = "ALTER TABLE d ADD CONSTRAINT c CHECK (a > 0);"
CATCH = "EXCEPTION WHEN duplicate_object THEN null; END"


@pytest.fixture
def client() -> Iterator[Any]:
    with serving() as server, server.psycopg() as connection:
        connection.execute("CREATE TABLE d (a integer PRIMARY KEY, b text)")
        yield connection


def rows(client: Any, sql: str = "SELECT a FROM d ORDER BY a") -> list[Any]:
    return [row[0] for row in client.execute(sql).fetchall()]


def test_what_is_there_already_is_left_as_it_is(client: Any) -> None:
    """As Sequelize and Drizzle send it."""
    for _ in range(2):
        assert client.execute(f"DO 'BEGIN {TYPE} {CATCH};'").statusmessage == "DO"
        client.execute(f"DO $$ BEGIN {CHECK} {CATCH} $$ LANGUAGE plpgsql")
    client.execute("""DO LANGUAGE plpgsql $$ BEGIN
        IF NOT EXISTS (SELECT 1 FROM pg_type WHERE typname = 'mood') THEN CREATE TABLE no (a integer);
        ELSIF CASE WHEN false THEN true END THEN CREATE TABLE neither (a integer);
        ELSE CREATE TABLE yes (a mood); END IF;
        END $$""")
    assert rows(client, "SELECT relname FROM pg_class WHERE relname IN ('no', 'neither', 'yes')") == ["yes"]


def test_what_a_handler_catches_is_undone(client: Any) -> None:
    client.execute("""DO $$ BEGIN
        INSERT INTO d VALUES (1);
        BEGIN INSERT INTO d VALUES (2); INSERT INTO d VALUES (1);
        EXCEPTION WHEN undefined_table THEN INSERT INTO d VALUES (3);
        WHEN foreign_key_violation OR unique_violation THEN INSERT INTO d VALUES (4); RAISE NOTICE 'there'; END;
        PERFORM count(*) FROM d; EXECUTE 'INSERT INTO d VALUES (5)';
        END $$""")
    assert rows(client) == [1, 4, 5]
    client.execute("DO $$ BEGIN DELETE FROM d; PERFORM 1/0; EXCEPTION WHEN SQLSTATE '22012' THEN NULL; END $$")
    assert rows(client) == [1, 4, 5]


def test_a_block_is_done_as_a_whole(client: Any) -> None:
    with pytest.raises(psycopg.errors.UniqueViolation):
        client.execute("DO $$ BEGIN INSERT INTO d VALUES (1); INSERT INTO d VALUES (1); END $$")
    assert rows(client) == []
    with pytest.raises(psycopg.errors.DivisionByZero), client.transaction():
        client.execute("INSERT INTO d VALUES (1)")
        client.execute("DO $$ BEGIN INSERT INTO d VALUES (2); PERFORM 1/0; END $$")
    with client.transaction():
        client.execute("DO $$ BEGIN INSERT INTO d VALUES (2); END $$")
        assert rows(client) == [2]


@pytest.mark.parametrize(("body", "reason"), [
    ("DECLARE r record; BEGIN END", "DO: DECLARE is not supported"),
    ("BEGIN FOR r IN SELECT 1 LOOP NULL; END LOOP; END", "DO: FOR is not supported"),
    ("BEGIN RAISE EXCEPTION 'no'; END", "DO: RAISE EXCEPTION is not supported"),
    ("BEGIN COMMIT; END", "DO: COMMIT is not supported"),
    ("BEGIN NULL;", "DO: syntax error at end of input"), ("", "DO: syntax error at end of input"),
    ("BEGIN NULL; END; SELECT 1", "DO: syntax error at or near 'SELECT'"),
    ("BEGIN NULL; EXCEPTION WHEN bad_luck THEN NULL; END", 'DO: unrecognized exception condition "bad_luck"'),
    ("BEGIN IF THEN NULL; END IF; END", "DO: syntax error at or near 'THEN'"),
    ("BEGIN IF true NULL; END IF; END", "DO: syntax error at end of input"),
    ("BEGIN NULL; EXCEPTION WHEN others", "DO: syntax error at end of input"),
])  # fmt: skip
def test_what_a_block_cannot_have_is_refused(client: Any, body: str, reason: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        client.execute(f"DO $$ {body} $$")
    assert caught.value.diag.message_primary == reason

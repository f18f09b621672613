"""Cursors that go both ways. The expectations are what PostgreSQL 15 answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.serving import serving

psycopg = pytest.importorskip("psycopg")
ROWS = "VALUES (1), (2), (3), (4)"


@pytest.fixture
def client() -> Iterator[Any]:
    with serving() as server, server.psycopg() as connection:
        connection.execute("BEGIN")
        yield connection


def moved(client: Any, *directions: str) -> list[Any]:
    """The rows of FETCH with these directions, or the tag of MOVE."""
    made = []
    for one in directions:
        cursor = client.execute(one if one.startswith("MOVE") else f"FETCH {one} c")
        made.append("".join(str(row[0]) for row in cursor.fetchall()) if cursor.description else cursor.statusmessage)
    return made


def test_a_cursor_goes_to_each_row(client: Any) -> None:
    client.execute(f"DECLARE c SCROLL CURSOR FOR {ROWS}")
    assert moved(client, "NEXT FROM", "LAST IN", "PRIOR", "BACKWARD 5", "ABSOLUTE 2", "RELATIVE -1", "FIRST") == [
        "1", "4", "3", "21", "2", "1", "1"]  # fmt: skip
    assert moved(client, "MOVE LAST IN c", "MOVE BACKWARD ALL FROM c", "0", "ALL", "BACKWARD ALL", "ABSOLUTE -1") == [
        "MOVE 1", "MOVE 3", "", "1234", "4321", "4"]  # fmt: skip
    assert moved(client, "-2", "0", "MOVE ABSOLUTE 0 c", "NEXT", "BACKWARD -2", "RELATIVE 0", "+9", "PRIOR") == [
        "32", "2", "MOVE 0", "1", "23", "3", "4", "4"]  # fmt: skip
    assert moved(client, "ABSOLUTE 99", "BACKWARD", "ABSOLUTE -99", "FORWARD", "RELATIVE 9", "RELATIVE -2") == [
        "", "4", "", "1", "", "3"]  # fmt: skip


def test_who_gets_all_that_he_asked_for_stands_on_the_last_row(client: Any) -> None:
    client.execute(f"DECLARE c CURSOR FOR {ROWS}")
    assert moved(client, "4", "PRIOR", "ALL", "PRIOR", "5", "BACKWARD 4", "NEXT") == [
        "1234", "3", "4", "4", "", "4321", "2"]  # fmt: skip


def test_a_cursor_of_no_rows_goes_nowhere(client: Any) -> None:
    client.execute("DECLARE c SCROLL CURSOR FOR SELECT 1 WHERE false")
    assert moved(client, "LAST", "FIRST", "ALL", "BACKWARD ALL", "ABSOLUTE -3", "0", "RELATIVE -1") == [""] * 7


def test_a_cursor_without_scroll_goes_forward(client: Any) -> None:
    client.execute(f"DECLARE c NO SCROLL CURSOR FOR {ROWS}")
    assert moved(client, "0", "FIRST", "ABSOLUTE 3", "RELATIVE 1") == ["", "1", "3", "4"]
    for direction in ("PRIOR", "-1", "0", "ABSOLUTE 1", "BACKWARD ALL", "LAST"):
        client.execute("SAVEPOINT s")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="cursor can only scan forward"):
            client.execute(f"FETCH {direction} c")
        client.execute("ROLLBACK TO s")


def test_what_is_no_direction_is_told(client: Any) -> None:
    for wrong in ("FETCH SIDEWAYS c", "FETCH ABSOLUTE c", "FETCH - c", "FETCH 1 2 c", "FETCH 99999999999 c",
                  "MOVE FORWARD FIRST c", "FETCH"):  # fmt: skip
        client.execute("SAVEPOINT s")
        with pytest.raises(psycopg.errors.SyntaxError):
            client.execute(wrong)
        client.execute("ROLLBACK TO s")


def test_a_cursor_scrolls_after_its_transaction_and_in_binary(client: Any) -> None:
    client.execute(f"DECLARE c BINARY SCROLL CURSOR WITH HOLD FOR {ROWS}")
    client.execute("COMMIT")
    assert moved(client, "LAST", "BACKWARD 2") == ["4", "32"]
    with pytest.raises(psycopg.errors.InvalidCursorName):
        client.execute("FETCH LAST nope")


def test_a_cursor_of_changes_goes_forward(client: Any) -> None:
    client.execute("COMMIT; CREATE TABLE t (k integer); CREATE MATERIALIZED VIEW v AS SELECT k FROM t; COMMIT; BEGIN")
    with pytest.raises(psycopg.Error, match="a cursor for SUBSCRIBE goes forward"):
        client.execute("DECLARE c SCROLL CURSOR FOR SUBSCRIBE v")
    client.execute("ROLLBACK; BEGIN; DECLARE c CURSOR FOR SUBSCRIBE v")
    with pytest.raises(psycopg.Error, match="a cursor for SUBSCRIBE goes forward"):
        client.execute("FETCH PRIOR c")


def test_psycopgs_server_cursors_scroll(client: Any) -> None:
    with client.cursor("c", scrollable=True) as cursor:
        cursor.execute("SELECT * FROM generate_series(1, 10)")
        cursor.scroll(5)
        assert cursor.fetchone() == (6,)
        cursor.scroll(-2)
        assert cursor.fetchmany(2) == [(5,), (6,)]
        cursor.scroll(0, mode="absolute")
        assert cursor.fetchone() == (1,)

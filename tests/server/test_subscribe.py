"""SUBSCRIBE over the wire: as a stream through COPY, and with cursors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.serving import Raw, Served, fields, serving


@pytest.fixture
def server() -> Iterator[Served]:
    with serving() as found:
        found.engine.execute("CREATE TABLE t (a integer); INSERT INTO t VALUES (1)")
        found.engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM t GROUP BY a")
        yield found


def test_copy_streams_changes_until_it_is_cancelled(server: Served) -> None:
    with server.psycopg() as connection:
        psycopg = pytest.importorskip("psycopg")
        cursor = connection.cursor()
        with pytest.raises(psycopg.errors.QueryCanceled), cursor.copy("COPY (SUBSCRIBE v) TO STDOUT") as out:
            rows = out.rows()
            assert next(rows)[:2] == ("1", "1")
            server.engine.execute("INSERT INTO t VALUES (2)")
            first = next(rows)
            assert (first[:2], first[3]) == (("2", "1"), "1")
            server.engine.execute("DELETE FROM t WHERE a = 1")
            gone = next(rows)
            assert (gone[:2], gone[3]) == (("1", "1"), "-1")
            connection.cancel_safe()
            list(rows)
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (1,)


def test_copy_in_binary_has_the_columns_types(server: Served) -> None:
    server.engine.execute("INSERT INTO t VALUES (5)")
    upper = server.engine.stats().upper
    sql = f"COPY (SUBSCRIBE v UP TO {upper}) TO STDOUT (FORMAT binary)"
    with server.psycopg() as connection, connection.cursor().copy(sql) as out:
        out.set_types(["int4", "int8", "int8", "int8"])
        assert sorted(row[:2] for row in out.rows()) == [(1, 1), (5, 1)]


def test_copy_ends_when_the_client_leaves(server: Served) -> None:
    raw = Raw(server.port)
    raw.send(("Q", b"COPY (SUBSCRIBE v) TO STDOUT\0"))
    raw.until("d")
    raw.close()
    other = Raw(server.port)
    for _ in range(200):
        server.engine.execute("INSERT INTO t VALUES (3)")
        if not server.engine._state.subscriptions.get("v"):
            break
        other.query("SELECT 1")
    assert not server.engine._state.subscriptions.get("v")


def test_a_cursor_takes_what_has_come(server: Served) -> None:
    with server.psycopg() as connection, connection.transaction():
        connection.execute("DECLARE c CURSOR FOR SUBSCRIBE v")
        assert [row[:2] for row in connection.execute("FETCH ALL c")] == [(1, 1)]
        assert connection.execute("FETCH ALL c WITH (timeout = '10ms')").fetchall() == []
        server.engine.execute("INSERT INTO t VALUES (7), (8), (9)")
        first = connection.execute("FETCH 2 c").fetchall()
        assert len(first) == 2
        rest = connection.execute("FETCH ALL c").fetchall()
        assert sorted(row[0] for row in first + rest) == [7, 8, 9]
        connection.execute("CLOSE c")
    assert not server.engine._state.subscriptions.get("v")


def test_a_cursor_ends_with_its_transaction(server: Served) -> None:
    raw = Raw(server.port)
    raw.query("BEGIN; DECLARE c CURSOR FOR SUBSCRIBE v; DECLARE h CURSOR WITH HOLD FOR SELECT a FROM t; COMMIT")
    assert not server.engine._state.subscriptions.get("v")
    assert fields(dict(raw.query("FETCH 1 c"))["E"])["C"] == "34000"
    assert [letter for letter, _ in raw.query("FETCH 1 h")] == ["T", "D", "C", "Z"]


def test_only_materialized_views_tell_changes(server: Served) -> None:
    raw = Raw(server.port)
    assert fields(dict(raw.query("COPY (SUBSCRIBE t) TO STDOUT"))["E"])["C"] == "0A000"
    assert fields(dict(raw.query("COPY (SUBSCRIBE nope) TO STDOUT"))["E"])["C"] == "42P01"


def test_one_fetch_takes_all_batches_that_have_come(server: Served) -> None:
    with server.psycopg() as connection, connection.transaction():
        connection.execute("DECLARE c CURSOR FOR SUBSCRIBE v")
        connection.execute("FETCH ALL c")
        for number in range(100, 150):
            server.engine.execute("INSERT INTO t VALUES ($1)", [number])
        assert [row[0] for row in connection.execute("FETCH 20 c")] == list(range(100, 120))
        assert [row[0] for row in connection.execute("FETCH ALL c")] == list(range(120, 150))


def test_a_fetch_gives_the_changes_before_an_error(server: Served) -> None:
    server.engine.execute("CREATE MATERIALIZED VIEW inverse AS SELECT 100 / a AS r FROM t")
    with server.psycopg() as connection:
        connection.execute("BEGIN")
        connection.execute("DECLARE c CURSOR FOR SUBSCRIBE inverse")
        connection.execute("FETCH ALL c")
        for number in (50, 25, 0, 20):
            server.engine.execute("INSERT INTO t VALUES ($1)", [number])
        assert [row[0] for row in connection.execute("FETCH ALL c")] == [2, 4]
        with pytest.raises(pytest.importorskip("psycopg").errors.DivisionByZero):
            connection.execute("FETCH ALL c")

"""LISTEN, NOTIFY and pg_notify: what clients tell each other when their transactions commit."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from halfjoin.server.limits import Limits
from tests.support.serving import Raw, Served, fields, serving

psycopg = pytest.importorskip("psycopg")


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving() as found:
        found.engine.execute("CREATE TABLE t (id bigint PRIMARY KEY, s text); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        yield found


@pytest.fixture
def clients(server: Served) -> Iterator[tuple[Any, Any]]:
    with ExitStack() as stack:
        one, other = (stack.enter_context(server.psycopg(autocommit=True)) for _ in range(2))
        other.execute("LISTEN news")
        yield one, other


def told(client: Any, *expected: str) -> bool:
    """Whether a client is told these texts, and then nothing more."""
    client.execute("NOTIFY news, 'the end'")
    texts = [note.payload for note in client.notifies(timeout=60, stop_after=len(expected) + 1)]
    return texts == [*expected, "the end"]


def refused(client: Any, sql: str) -> str:
    with pytest.raises(psycopg.Error) as caught:
        client.execute(sql)
    return str(caught.value.sqlstate)


def test_who_listens_is_told(clients: tuple[Any, Any]) -> None:
    one, other = clients
    one.execute("NOTIFY news")
    one.execute("NOTIFY NEWS, E'a\\tb'")
    one.execute('NOTIFY "NEWS", $$another channel$$')
    first, second = other.notifies(timeout=60, stop_after=2)
    assert (first.channel, first.payload, first.pid) == ("news", "", one.info.backend_pid)
    assert second.payload == "a\tb"
    assert told(other)


def test_a_transaction_tells_when_it_commits_and_each_text_once(clients: tuple[Any, Any]) -> None:
    one, other = clients
    with one.transaction():
        for text in "aba":
            one.execute(f"NOTIFY news, '{text}'")
        assert told(other)
    assert told(other, "a", "b")
    with one.transaction(force_rollback=True):
        one.execute("NOTIFY news, 'undone'")
    assert refused(one, "NOTIFY news, 'undone'; SELECT 1 / 0") == "22012"
    with pytest.raises(psycopg.Error), one.pipeline():
        one.execute("SELECT pg_notify('news', 'undone')")
        one.execute("SELECT 1 / 0")
    assert told(other)


def test_a_savepoint_undoes_what_was_said_after_it(clients: tuple[Any, Any]) -> None:
    one, other = clients
    for sql in ("BEGIN", "NOTIFY news, 'a'", "SAVEPOINT s", "LISTEN x", "NOTIFY news, 'b'", "SAVEPOINT r",
                "NOTIFY news, 'c'", "RELEASE r", "NOTIFY news, 'd'", "ROLLBACK TO s", "NOTIFY news, 'c'", "COMMIT"):
        one.execute(sql)
    assert told(other, "a", "c")
    assert one.execute("SELECT * FROM pg_listening_channels()").fetchall() == []


def test_pg_notify_tells_for_each_row(server: Served, clients: tuple[Any, Any]) -> None:
    one, other = clients
    one.execute("SELECT pg_notify('news', s) FROM t ORDER BY id DESC")
    one.execute("SELECT pg_notify('news', 'nobody') FROM t WHERE id > 9")
    for _ in range(3):
        one.execute("SELECT id, pg_notify(%s, %s || id) AS told FROM t WHERE id = %s", ["news", "of ", 1], prepare=True)
    assert told(other, "b", "a", "of 1", "of 1", "of 1")
    new = "WITH new AS (INSERT INTO t VALUES (3, 'c') RETURNING id) SELECT pg_notify('news', id::text) FROM new"
    assert one.execute(new).description[0].type_code == 2278  # void
    assert refused(one, new) == "23505"
    one.execute("DELETE FROM t WHERE id = 3")
    one.execute("DO $$BEGIN PERFORM pg_notify('news', 'block'); END$$")
    assert told(other, "3", "block")
    assert refused(one, "DELETE FROM t WHERE id = 9 RETURNING pg_notify('news', 'x')") == "0A000"
    assert refused(one, "CREATE VIEW v AS SELECT pg_notify('news', 'x') AS n") == "0A000"
    with pytest.raises(Exception, match="for the clients of a server"):
        server.engine.execute("SELECT pg_notify('news', 'x')")


def test_listening_ends_and_begins_with_a_transaction(clients: tuple[Any, Any]) -> None:
    one, _ = clients
    listened = "SELECT pg_listening_channels()"
    with one.transaction():
        one.execute("LISTEN news")
        one.execute("LISTEN a")
        one.execute("NOTIFY news, 'own'")
        assert one.execute(listened).fetchall() == []
    assert told(one, "own")
    assert one.execute(listened).fetchall() == [("a",), ("news",)]
    with one.transaction(force_rollback=True):
        one.execute("UNLISTEN *")
    one.execute("UNLISTEN a")
    assert one.execute(listened).fetchall() == [("news",)]
    one.execute("DISCARD ALL")
    assert one.execute(listened).fetchall() == []


def test_who_is_in_a_transaction_is_told_after_it(clients: tuple[Any, Any]) -> None:
    one, other = clients
    with other.transaction():
        other.execute("SELECT 1")
        one.execute("NOTIFY news, 'late'")
        other.execute("SELECT 1")
        assert list(other.notifies(timeout=0.1)) == []
    assert told(other, "late")


@pytest.mark.parametrize(("sql", "state"), [
    ("NOTIFY news, 5", "42601"), ("NOTIFY", "42601"), ("LISTEN 'a'", "42601"), ("LISTEN a.b", "42601"),
    ("UNLISTEN", "42601"), ("NOTIFY a, 'b', 'c'", "42601"), ("SELECT pg_notify('', 'a')", "22023"),
    ("SELECT pg_notify('a', repeat('x', 8000))", "22023"), ("SELECT pg_notify(repeat('x', 64), '')", "22023"),
])  # fmt: skip
def test_what_is_wrong_has_its_sqlstate(clients: tuple[Any, Any], sql: str, state: str) -> None:
    assert refused(clients[0], sql) == state


def test_what_waits_for_a_connection_is_bounded() -> None:
    with serving(limits=Limits(told=20_000)) as server, server.psycopg() as one:
        slow = Raw(server.port)
        slow.query("LISTEN news")
        slow.query("BEGIN")
        much = "SELECT pg_notify('news', repeat(i::text, 5000)) FROM generate_series(1, 9) AS i"
        assert refused(one, much) == "54000"
        for text in "abcd":
            one.execute("SELECT pg_notify('news', repeat(%s, 7000))", [text])
        (letter, body) = slow.receive()
        assert (letter, fields(body)["C"], slow.closed()) == ("E", "54000", True)
        one.execute("NOTIFY news")


def test_what_a_transaction_says_is_counted_in_bytes() -> None:
    with serving(limits=Limits(told=20_000)) as server, server.psycopg() as one:
        said = "SELECT pg_notify('news', repeat('ä', 3000) || i) FROM generate_series(1, 4) AS i"
        assert refused(one, said) == "54000"
        one.execute(said.replace("ä", "a"))


def test_channels_and_savepoints_are_bounded() -> None:
    many = range(100)
    with serving(limits=Limits(told=20_000)) as server, server.psycopg() as one:
        with one.transaction():
            for _ in many:
                one.execute("LISTEN news")  # one wish
                one.execute("SAVEPOINT s")
                one.execute("RELEASE s")
        assert refused(one, "; ".join(f"LISTEN c{n}" for n in many)) == "54000"
        with pytest.raises(psycopg.Error, match="too many channels"):
            for n in many:
                one.execute(f"LISTEN c{n}")
        count = "SELECT count(*) FROM pg_listening_channels()"
        assert 50 < one.execute(count).fetchone()[0] < 80
        one.execute("UNLISTEN c0")
        one.execute("LISTEN other")
        one.execute("UNLISTEN *")
        one.execute("LISTEN c1")
        assert one.execute("SELECT * FROM pg_listening_channels()").fetchall() == [("c1",)]
        one.execute("BEGIN")
        with pytest.raises(psycopg.Error, match="too many savepoints"):
            for n in many:
                one.execute(f"SAVEPOINT s{n}")
        one.execute("ROLLBACK TO s5")
        one.execute("LISTEN c2")
        one.execute("COMMIT")
        assert one.execute(count).fetchone()[0] == 2


@pytest.mark.parametrize(("script", "listened"), [
    ("LISTEN a; SAVEPOINT s; UNLISTEN a; LISTEN b; ROLLBACK TO s", "a"),
    ("LISTEN a; SAVEPOINT s; UNLISTEN a; LISTEN b; RELEASE s", "b"),
    ("LISTEN a; SAVEPOINT s; UNLISTEN *; LISTEN b; SAVEPOINT r; LISTEN a; UNLISTEN b; RELEASE s", "a"),
    ("LISTEN a; SAVEPOINT s; LISTEN b; SAVEPOINT r; UNLISTEN *; ROLLBACK TO r; LISTEN c", "abc"),
    ("LISTEN a; SAVEPOINT s; LISTEN b; SAVEPOINT r; UNLISTEN *; LISTEN c", "c"),
    ("LISTEN a; SAVEPOINT s; SAVEPOINT s; LISTEN b; ROLLBACK TO s; RELEASE s; LISTEN c; ROLLBACK TO s; LISTEN d", "ad"),
])  # fmt: skip
def test_the_last_wish_about_a_channel_holds(clients: tuple[Any, Any], script: str, listened: str) -> None:
    one, _ = clients
    for sql in ("LISTEN z", "BEGIN", *script.split("; "), "UNLISTEN z", "COMMIT"):
        one.execute(sql)
    assert one.execute("SELECT pg_listening_channels()").fetchall() == [(name,) for name in listened]


def test_a_client_that_listens_does_not_time_out_while_it_is_told() -> None:
    with serving(limits=Limits(idle=1000)) as server:
        passed, clock = [0], server.loop.time
        server.loop.time = lambda: clock() + passed[0]

        def passes(seconds: int) -> None:
            """Let so much time pass for the server."""
            server.loop.call_soon_threadsafe(passed.__setitem__, 0, passed[0] + seconds)

        silent, slow = Raw(server.port), Raw(server.port)
        slow.query("LISTEN news")
        with server.psycopg() as one:
            for _ in range(5):
                passes(600)
                one.execute("NOTIFY news")
                assert slow.receive()[0] == "A"
        assert silent.closed()
        passes(1001)
        assert fields(slow.receive()[1])["C"] == "57P05"


def test_a_message_has_its_sender_channel_and_text(server: Served) -> None:
    client = Raw(server.port)
    found = client.query("LISTEN a; NOTIFY a, 'b'")
    assert [letter for letter, _ in found] == ["C", "C", "A", "Z"]
    assert found[2][1][4:] == b"a\0b\0"
    assert struct.unpack(">i", found[2][1][:4])[0] > 0
    client.close()

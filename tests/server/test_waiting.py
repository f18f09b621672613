"""pg_sleep and LOCK TABLE: what waits, and what guards a table without waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from queue import Queue
from typing import Any

import pytest

from halfjoin.server.sleeping import Sleep
from halfjoin.server.working import Worker
from tests.support.serving import Served, serving

psycopg = pytest.importorskip("psycopg")


@pytest.fixture
def server() -> Iterator[Served]:
    with serving() as served:
        yield served


@pytest.fixture
def client(server: Served) -> Iterator[Any]:
    with server.psycopg() as connection:
        connection.execute("CREATE TABLE t (k integer PRIMARY KEY, a integer); INSERT INTO t VALUES (1, 1), (2, 2)")
        yield connection


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> Queue[float]:
    """For how many seconds each statement that sleeps is going to."""
    found, settle = Queue[float](), Sleep.settle

    async def noted(self: Sleep, worker: Worker, most: float) -> None:
        if self._seconds:
            found.put(sum(self._seconds))
        await settle(self, worker, most)

    monkeypatch.setattr(Sleep, "settle", noted)
    return found


def slept(client: Any, sleeps: Queue[float], query: str, *values: Any) -> list[float]:
    """How long a query slept, each time. That it took no longer cannot be said: the machine may be busy."""
    begin = time.monotonic()
    assert client.execute(query, values or None).fetchall() == [("",)]
    took, found = time.monotonic() - begin, [sleeps.get_nowait() for _ in range(sleeps.qsize())]
    assert took >= sum(found)
    return found


def test_a_statement_sleeps_once_each_time(client: Any, sleeps: Queue[float]) -> None:
    for _ in range(2):
        assert slept(client, sleeps, "SELECT pg_sleep(0.3)") == [0.3]
        assert slept(client, sleeps, "SELECT pg_sleep(%s)", 0.3) == [0.3]
    assert slept(client, sleeps, "SELECT pg_catalog.pg_sleep_for('100 ms')") == [0.1]
    client.execute("DO $$ BEGIN PERFORM pg_sleep(0.01); END $$")
    assert client.execute("SELECT pg_sleep(NULL), pg_sleep(-1), 7 AS n").fetchall() == [(None, "", 7)]


def test_who_sleeps_holds_up_nobody_and_is_cancelled(client: Any, server: Served, sleeps: Queue[float]) -> None:
    found: list[str] = []

    def sleep() -> None:
        try:
            client.execute("BEGIN")
            client.execute("INSERT INTO t VALUES (3, 3)")
            client.execute("SELECT pg_sleep(60)")
        except psycopg.errors.QueryCanceled as problem:
            found.append(str(problem))

    thread = threading.Thread(target=sleep)
    thread.start()
    with server.psycopg() as other:
        assert sleeps.get(timeout=60) == 60
        other.execute("INSERT INTO t VALUES (4, 4)")
        assert other.execute("SELECT count(*) FROM t").fetchone() == (3,)
        while thread.is_alive():  # no statement may be running at the moment when a request comes
            client.cancel_safe()
            thread.join(1)
    assert found == ["canceling statement due to user request"]
    client.execute("ROLLBACK")
    client.execute("SET statement_timeout = '50ms'")
    with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
        client.execute("SELECT pg_sleep(60)")


def test_what_is_locked_bears_no_change_of_others(client: Any, server: Served) -> None:
    for mode in ("", " IN SHARE MODE", " IN ACCESS EXCLUSIVE MODE NOWAIT"):
        client.execute(f"BEGIN; LOCK TABLE ONLY public.t *{mode}")
        client.execute("INSERT INTO t VALUES (10, 10)")
        with server.psycopg() as other:
            other.execute("UPDATE t SET a = a + 1 WHERE k = 1")
        with pytest.raises(psycopg.errors.SerializationFailure, match="another batch has changed t"):
            client.execute("COMMIT")
    client.execute("BEGIN; LOCK t IN ROW EXCLUSIVE MODE; INSERT INTO t VALUES (10, 10)")
    with server.psycopg() as other:
        other.execute("UPDATE t SET a = a + 1 WHERE k = 1")
    client.execute("COMMIT")
    assert client.execute("SELECT a FROM t ORDER BY k").fetchall() == [(5,), (2,), (10,)]


def test_what_cannot_be_locked_is_told(client: Any) -> None:
    with pytest.raises(psycopg.errors.NoActiveSqlTransaction):
        client.execute("LOCK TABLE t")
    for wrong, error in (("LOCK nope", psycopg.errors.UndefinedTable), ("LOCK TABLE", psycopg.errors.SyntaxError),
                         ("LOCK t, IN SHARE MODE", psycopg.errors.SyntaxError),
                         ("LOCK t IN FUNNY MODE", psycopg.errors.SyntaxError)):  # fmt: skip
        client.execute("BEGIN")
        with pytest.raises(error):
            client.execute(wrong)
        client.execute("ROLLBACK")
    client.execute("BEGIN")
    assert client.execute("LOCK TABLE t, t IN SHARE MODE").statusmessage == "LOCK TABLE"
    client.execute("COMMIT")


def test_queries_that_no_view_could_have_are_explained(client: Any) -> None:
    for query in ("VALUES (1), (2)", "SELECT * FROM t WHERE k = 1 FOR UPDATE", "SELECT now()", "TABLE t",
                  "SELECT * FROM t WHERE a < extract(epoch FROM now())", "SELECT current_user, random() FROM t",
                  "SELECT relname FROM pg_class"):  # fmt: skip
        assert client.execute(f"EXPLAIN {query}").fetchall()[0][0].startswith("query (")
        assert client.execute(f"EXPLAIN (FORMAT JSON) {query}").fetchall()
    client.execute("CREATE SEQUENCE q")
    client.execute("EXPLAIN SELECT nextval('q')")
    assert client.execute("SELECT nextval('q')").fetchone() == (1,)
    with pytest.raises(psycopg.errors.UndefinedColumn):
        client.execute("EXPLAIN SELECT nope FROM t FOR UPDATE")


def test_the_time_of_day_has_no_zone(client: Any) -> None:
    client.execute("CREATE TABLE d (k integer, a time DEFAULT localtime, b time DEFAULT current_time)")
    client.execute("INSERT INTO d (k) VALUES (1)")
    query = "SELECT a = b, current_time::time = localtime, CAST(current_time(0) AS time) = localtime(0) FROM d"
    assert client.execute(query).fetchall() == [(True, True, True)]
    assert client.execute("SELECT localtime, localtimestamp").description[0].name == "localtime"
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="write localtime"):
        client.execute("SELECT current_time")

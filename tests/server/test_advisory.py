"""Advisory locks: what tools for migrations take, so that one of them works at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.serving import Served, serving

psycopg = pytest.importorskip("psycopg")
LOCK, TRY, UNLOCK = (f"SELECT pg_{name}(%s)" for name in ("advisory_lock", "try_advisory_lock", "advisory_unlock"))


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving() as found:
        yield found


@pytest.fixture
def clients(server: Served) -> Iterator[tuple[Any, Any]]:
    with ExitStack() as stack:
        one, other = (stack.enter_context(server.psycopg(autocommit=True)) for _ in range(2))
        yield one, other


def asked(client: Any, sql: str, *values: object) -> Any:
    """The value of a query, or the SQLSTATE of its error."""
    try:
        return client.execute(sql, values or None).fetchone()[0]
    except psycopg.Error as error:
        return error.sqlstate


def until(happens: Callable[[], bool]) -> None:
    """Wait until something happens in another thread."""
    for _ in range(2000):
        if happens():
            return
        time.sleep(0.01)
    raise AssertionError("it does not happen")


def waits(server: Served) -> bool:
    """Whether a client waits for a lock."""
    return bool(server.server._locks._waiting)


def meanwhile(client: Any, sql: str, *values: object) -> tuple[threading.Thread, list[Any]]:
    """Ask a query in a thread; its answer is in the list in the end."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(asked(client, sql, *values)))
    thread.start()
    return thread, found


def test_a_session_holds_its_lock_as_often_as_it_took_it(clients: tuple[Any, Any]) -> None:
    one, other = clients
    assert (asked(one, LOCK, 1), asked(one, TRY, 1), asked(other, TRY, 1)) == ("", True, False)
    assert (asked(one, UNLOCK, 1), asked(other, TRY, 1), asked(one, UNLOCK, 1)) == (True, False, True)
    assert (asked(one, UNLOCK, 1), asked(other, TRY, 1), asked(other, UNLOCK, 1)) == (False, True, True)
    assert asked(one, "SELECT pg_try_advisory_lock(NULL)") is None
    assert asked(one, "SELECT got FROM pg_try_advisory_lock(-3, 4) AS got") is True
    assert (asked(other, "SELECT pg_try_advisory_lock(-3, 4)"), asked(other, TRY, -3)) == (False, True)


def test_shared_locks_are_held_beside_each_other(clients: tuple[Any, Any]) -> None:
    one, other = clients
    for client in clients:
        assert asked(client, "SELECT pg_advisory_lock_shared(2)") == ""
    assert asked(one, TRY, 2) is False
    assert asked(other, "SELECT pg_advisory_unlock_shared(2)") is True
    assert asked(one, TRY, 2) is True
    one.execute("SELECT pg_advisory_unlock_all()")
    assert asked(other, TRY, 2) is True


def test_a_transactions_lock_ends_with_it(clients: tuple[Any, Any]) -> None:
    one, other = clients
    tried = "SELECT pg_try_advisory_xact_lock(9)"
    with one.transaction():
        one.execute("SELECT pg_advisory_xact_lock(9)")
        assert asked(other, tried) is False
    assert (asked(other, tried), asked(one, tried)) == (True, True)
    with pytest.raises(psycopg.Error), one.transaction():
        one.execute("SELECT pg_advisory_xact_lock(9), 1/0")
    assert asked(other, tried) is True


def test_a_client_waits_until_the_lock_is_free(server: Served, clients: tuple[Any, Any]) -> None:
    one, other = clients
    one.execute("SELECT pg_advisory_lock(5)")
    thread, found = meanwhile(other, LOCK, 5)
    until(lambda: waits(server))
    assert found == []
    one.execute("SELECT pg_advisory_unlock(5)")
    thread.join(60)
    assert (found, asked(one, TRY, 5)) == ([""], False)
    other.close()
    until(lambda: asked(one, TRY, 5) is True)


def test_waiting_ends_with_a_timeout_a_cancel_or_a_deadlock(server: Served, clients: tuple[Any, Any]) -> None:
    one, other = clients
    one.execute("SELECT pg_advisory_lock(7)")
    for setting, state in (("statement_timeout", "57014"), ("lock_timeout", "55P03")):
        other.execute(f"SET {setting} = '10ms'")
        assert asked(other, LOCK, 7) == state
        other.execute(f"RESET {setting}")
    thread, found = meanwhile(other, LOCK, 7)
    until(lambda: waits(server))
    other.cancel_safe()
    thread.join(60)
    assert found == ["57014"]
    assert asked(other, LOCK, 8) == ""
    thread, found = meanwhile(other, LOCK, 7)
    until(lambda: waits(server))
    assert asked(one, LOCK, 8) == "40P01"
    one.close()
    thread.join(60)
    assert found == [""]


def test_a_described_call_takes_nothing(server: Served, clients: tuple[Any, Any]) -> None:
    """Drivers describe a statement before they run it, and run it many times."""
    one, other = clients
    for _ in range(2):
        one.execute(TRY, [3], prepare=True)
    assert [asked(one, UNLOCK, 3) for _ in range(3)] == [True, True, False]
    assert asked(other, TRY, 3) is True
    with pytest.raises(Exception, match="among the clients of a server"):
        server.engine.query("SELECT pg_try_advisory_lock(3)")

"""Many connections read beside a writer: no error, no wait for a batch, and each reads whole batches only."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from halfjoin.engine.statements import execute
from halfjoin.server.working import Worker
from tests.support.serving import Raw, serving

READERS = 64
BATCHES = int(os.environ.get("HALFJOIN_READERS_BATCHES", "10"))


def _values(found: list[tuple[str, bytes]]) -> bytes:
    assert [letter for letter, _ in found] == ["T", "D", "C", "Z"], found
    return found[1][1][2:]


def test_64_connections_read_whole_batches_beside_a_writer() -> None:
    with serving() as server:
        server.engine.execute("CREATE TABLE t (a integer, b integer); INSERT INTO t VALUES (0, 0), (0, 0)")
        server.engine.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(b) AS s FROM t")
        done, problems, read = threading.Event(), list[str](), [0]
        start = threading.Barrier(READERS + 1)

        def reads() -> None:
            raw = Raw(server.port)
            start.wait(60)
            while True:
                last = done.is_set()
                found = raw.query("SELECT (SELECT count(*) FROM t) % 2, n % 2, (SELECT count(*) FROM t) - n FROM v")
                if [letter for letter, _ in found] != ["T", "D", "C", "Z"] or found[1][1].count(b"0") < 3:
                    problems.append(str(found))
                read[0] += 1
                if last:
                    return

        threads = [threading.Thread(target=reads) for _ in range(READERS)]
        for thread in threads:
            thread.start()
        start.wait(60)
        writer = Raw(server.port)
        for number in range(BATCHES):
            answer = writer.query(f"INSERT INTO t VALUES ({number}, 1), ({number}, 2)")
            assert answer[0] == ("C", b"INSERT 0 2\0")
        done.set()
        for thread in threads:
            thread.join(120)
        assert problems == []
        assert read[0] >= READERS


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Stops a batch in its middle: it is there once the first event is set, and goes on after the second."""
    inside, go_on, carried_out = threading.Event(), threading.Event(), execute.carry_out

    def stopped(state: Any, statement: Any, sql: str, keep: Any = None) -> Any:
        """As `carry_out`."""
        if "(2)" in sql:
            inside.set()
            assert go_on.wait(60)
        return carried_out(state, statement, sql, keep)

    monkeypatch.setattr(execute, "carry_out", stopped)
    yield inside, go_on
    go_on.set()


def test_a_query_does_not_wait_for_a_batch(batch: tuple[threading.Event, threading.Event]) -> None:
    inside, go_on = batch
    with serving() as server:
        server.engine.execute("CREATE TABLE t (a integer); INSERT INTO t VALUES (1); CREATE TABLE u (a integer)")
        server.engine.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM u")
        writer, reader = Raw(server.port), Raw(server.port)
        writer.send(("Q", b"INSERT INTO t VALUES (2)\0"))
        assert inside.wait(60)
        assert _values(reader.query("SELECT count(*) FROM t")).endswith(b"1")
        reader.query("BEGIN")  # as drivers that do not commit by themselves
        assert _values(reader.query("SELECT count(*) FROM t")).endswith(b"1")
        found = reader.rows("SELECT a FROM t", 1)
        assert [body[-4:] for body in found[1:]] == [b"\0\0\0\1"]
        for format in ("text", "binary"):
            copied = reader.query(f"COPY (SELECT a FROM t) TO STDOUT (FORMAT {format})")
            assert [letter for letter, _ in copied if letter in "EZ"] == ["Z"], copied
        go_on.set()
        writer.until("Z")
        assert _values(reader.query("SELECT count(*) FROM t")).endswith(b"2")


def test_a_transaction_reads_its_changes_beside_a_batch(batch: tuple[threading.Event, threading.Event]) -> None:
    inside, go_on = batch
    with serving() as server:
        server.engine.execute("CREATE TABLE t (a integer); CREATE TABLE u (a integer)")
        server.engine.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM u")
        writer, reader = Raw(server.port), Raw(server.port)
        reader.query("BEGIN; INSERT INTO u VALUES (7)")
        writer.send(("Q", b"INSERT INTO t VALUES (2)\0"))
        assert inside.wait(60)
        assert _values(reader.query("SELECT n FROM v")).endswith(b"1")
        go_on.set()
        writer.until("Z")
        assert reader.query("COMMIT")[0] == ("C", b"COMMIT\0")
        assert _values(reader.query("SELECT n FROM v")).endswith(b"1")


def test_a_small_answer_wakes_one_thread_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To wake a thread and be woken takes longer than to write a few rows, so only the query itself runs in one."""
    calls = 0

    def counted(self: Worker, *rest: Any) -> Any:
        nonlocal calls
        calls += 1
        return call(self, *rest)

    with serving() as server:
        raw, call = Raw(server.port), Worker.call
        raw.query("CREATE TABLE t (a integer); INSERT INTO t SELECT * FROM generate_series(1, 10000)")
        monkeypatch.setattr(Worker, "call", counted)
        assert _values(raw.query("SELECT count(*) FROM t"))[-5:] == b"10000"
        assert calls == 1
        assert len(raw.query("SELECT a FROM t")) == 10003
        assert calls > 3

"""`halfjoin serve` as a process: SIGTERM ends it in order, and what was acknowledged is there after SIGKILL, too."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from tests.support.ports import kept_port
from tests.support.serving import Raw, fields


@contextmanager
def _process(warehouse: Path) -> Iterator[tuple[Any, int, str]]:
    """The process, the port of its protocol, and the address of its page."""
    command = [sys.executable, "-m", "halfjoin", "serve", str(warehouse), "--port", "0", "--http-port", "0"]
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup, tests and what they start ignore it
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    signal.signal(signal.SIGHUP, inherited)
    assert process.stdout is not None
    try:
        said = [process.stdout.readline() for _ in range(2)]
        port, page = re.search(r"-p (\d+)", said[0]), re.search(r"http://\S+", said[1])
        assert port is not None and page is not None, said
        yield process, int(port[1]), page[0]
    finally:
        process.kill()
        process.wait(60)
        process.stdout.close()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_it_and_keeps_what_was_acknowledged(tmp_path: Path, how: signal.Signals) -> None:
    with _process(tmp_path / "w") as (process, port, page):
        client = Raw(port)
        assert client.query("CREATE TABLE t (a integer); INSERT INTO t VALUES (1), (2)")[-1][0] == "Z"
        assert urllib.request.urlopen(f"{page}/healthz", timeout=60).status == 200
        process.send_signal(how)
        assert process.wait(60) == (0 if how != signal.SIGKILL else -signal.SIGKILL)
        rest = process.stdout.read()
        assert "Traceback" not in rest
        assert ("stopping" in rest) == (how != signal.SIGKILL)
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.query("SELECT sum(a) AS s FROM t").to_pylist() == [{"s": 3}]


@contextmanager
def _unheard(warehouse: Path, before: Callable[[], None], out: int | None = None) -> Iterator[tuple[Any, int]]:
    """A process whose output nobody reads, and its port. `before` is called in it before it begins."""
    port = kept_port()
    command = [sys.executable, "-m", "halfjoin", "serve", str(warehouse), "--port", str(port), "--http-port", "-1"]
    process = subprocess.Popen(command, stdout=out, stderr=out, preexec_fn=before)
    try:
        for _ in range(600):
            with suppress(ConnectionRefusedError), closing(socket.create_connection(("127.0.0.1", port), 60)):
                break
            assert process.poll() is None
            time.sleep(0.1)
        yield process, port
    finally:
        process.kill()
        process.wait(60)


def test_it_serves_where_nobody_can_read_what_it_says(tmp_path: Path) -> None:
    with open("/dev/full", "wb", buffering=0) as full, _unheard(tmp_path / "w", lambda: None, full.fileno()) as served:
        process, port = served
        assert Raw(port).query("CREATE TABLE t (a integer); INSERT INTO t VALUES (1), (2)")[-1][0] == "Z"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="shows the open files of a process")
def test_no_file_of_the_warehouse_is_taken_for_standard_error(tmp_path: Path) -> None:
    """What started it has closed all standard files: the next files that it opens would have their numbers."""
    with _unheard(tmp_path / "w", lambda: os.closerange(0, 3)) as (process, port):
        assert Raw(port).query("CREATE TABLE t (a integer)")[-1][0] == "Z"
        for number in range(3):
            assert os.readlink(f"/proc/{process.pid}/fd/{number}") == os.devnull


def test_where_hangups_are_ignored_it_goes_on(tmp_path: Path) -> None:
    """As under nohup."""
    with _unheard(tmp_path / "w", lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN) and None) as (process, port):
        process.send_signal(signal.SIGHUP)
        assert Raw(port).query("CREATE TABLE t (a integer)")[-1][0] == "Z"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_no_client_that_waits_holds_up_a_stop(tmp_path: Path) -> None:
    with _process(tmp_path / "w") as (process, port, page), ExitStack() as opened:

        def client(*sends: str) -> Raw:
            made = opened.enter_context(closing(Raw(port)))
            for sql in sends[:-1]:
                made.query(sql)
            made.send(*(("Q", sql.encode() + b"\0") for sql in sends[-1:]))
            return made

        Raw(port).query("CREATE TABLE t (a integer); INSERT INTO t VALUES (1), (2)")
        Raw(port).query("CREATE MATERIALIZED VIEW v AS SELECT a FROM t")
        waits = [
            client(),  # says nothing
            client("BEGIN", "INSERT INTO t VALUES (3)"),  # inside a transaction
            client("COPY (SUBSCRIBE v) TO STDOUT"),  # for changes
            client("BEGIN", "DECLARE c CURSOR FOR SUBSCRIBE v", "FETCH ALL c", "FETCH ALL c"),  # for changes, too
            client("COPY t FROM STDIN"),  # to send rows
            client("SELECT repeat('x', 1000) FROM generate_series(1, 50000)"),  # does not read its rows
        ]
        for letter, one in (("Z", waits[1]), ("H", waits[2]), ("G", waits[4])):
            one.until(letter)
        nobody = opened.enter_context(socket.create_connection(("127.0.0.1", port), 60))
        stream = opened.enter_context(urllib.request.urlopen(f"{page}/api/events", timeout=60))
        half = opened.enter_context(socket.create_connection(("127.0.0.1", int(page.rsplit(":", 1)[1])), 60))
        half.sendall(b"POST /batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     b"Content-Length: 9\r\n\r\n{")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0  # 1: it was ended since a client held it
        rest = process.stdout.read()
        assert "Traceback" not in rest and "Exception" not in rest
        assert stream.read() is not None and nobody.recv(1 << 16) is not None
        assert fields(waits[2].until("E")[-1][1])["C"] == "57P01"
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.query("SELECT sum(a) AS s FROM t").to_pylist() == [{"s": 3}]


def test_a_stop_that_something_holds_up_ends_all_the_same(tmp_path: Path) -> None:
    program = "from halfjoin.cli.serve import _end_within; import threading; _end_within(0.1); threading.Event().wait()"
    ended = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "threading.py" in ended.stderr  # where it was


def test_a_statement_that_runs_when_it_is_told_to_stop_ends_first(tmp_path: Path) -> None:
    with _process(tmp_path / "w") as (process, port, _):
        client = Raw(port)
        client.query("CREATE TABLE t (a bigint)")
        client.send(("Q", b"INSERT INTO t SELECT g FROM generate_series(1, 300000) g\0"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert "Traceback" not in process.stdout.read()
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.query("SELECT count(*) AS n FROM t").to_pylist() in ([{"n": 0}], [{"n": 300000}])


def test_the_garbage_collector_is_spared_what_modules_hold(tmp_path: Path) -> None:
    """A full collection of all of it would hold up every statement."""
    program = (
        "import gc; from halfjoin.cli import serve; from halfjoin.__main__ import app; "
        "serve.asyncio.run = lambda server: (server.close(), print('left', len(gc.get_objects()) < 10_000)); "
        f"app(['serve', {str(tmp_path / 'w')!r}, '--http-port', '-1'])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "left True" in ended.stdout, ended.stderr

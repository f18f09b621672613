"""`halfjoin serve` as a process: SIGTERM ends it in order, and what was acknowledged is there after SIGKILL, too."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from tests.support.serving import Raw


@contextmanager
def _process(warehouse: Path) -> Iterator[tuple[Any, int, str]]:
    """The process, the port of its protocol, and the address of its page."""
    command = [sys.executable, "-m", "halfjoin", "serve", str(warehouse), "--port", "0", "--http-port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
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


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_it_and_keeps_what_was_acknowledged(tmp_path: Path, how: signal.Signals) -> None:
    with _process(tmp_path / "w") as (process, port, page):
        client = Raw(port)
        assert client.query("CREATE TABLE t (a integer); INSERT INTO t VALUES (1), (2)")[-1][0] == "Z"
        assert urllib.request.urlopen(f"{page}/healthz", timeout=20).status == 200
        process.send_signal(how)
        assert process.wait(60) == (0 if how != signal.SIGKILL else -signal.SIGKILL)
        rest = process.stdout.read()
        assert "Traceback" not in rest
        assert ("stopping" in rest) == (how != signal.SIGKILL)
    with hj.Engine(tmp_path / "w") as engine:
        assert engine.query("SELECT sum(a) AS s FROM t").to_pylist() == [{"s": 3}]


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

"""What a user sees of Spark: progress only on a terminal, and a clear message without Java."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import rich.console

from halfjoin.engine.spark import progress


class _AtOnce:
    """A timer that fires at once."""

    def __init__(self, seconds: float, function: Callable[[], None]) -> None:
        self.start = function

    def cancel(self) -> None:
        pass

    def join(self) -> None:
        pass


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    shown = io.StringIO()
    console = rich.console.Console(file=shown, force_terminal=terminal, width=80)
    monkeypatch.setattr(rich.console, "Console", lambda stderr: console)
    monkeypatch.setattr(progress, "Timer", _AtOnce)
    with progress.progress("filling a view of orders"):
        pass
    assert ("Spark: filling a view of orders" in shown.getvalue()) == terminal
    assert terminal or not shown.getvalue()


def test_a_session_that_was_stopped_is_started_again_or_named() -> None:
    program = """
import halfjoin as hj
from halfjoin.engine.spark.session import start_session
def engine(session):
    engine = hj.Engine(spark=session, runner="spark")
    engine.execute("CREATE TABLE t (x bigint); CREATE MATERIALIZED VIEW v AS SELECT x FROM t")
    engine.apply({"t": [{"x": 1}]})
    return engine
own, given = engine(None), engine(start_session())
gone = given.spark.range(2).toDF("x")
given.spark.stop()
try:
    given.apply({"t": [{"x": 2}]})
except hj.HalfjoinError as problem:
    print(problem)
local = hj.Engine(runner="local")
local.execute("CREATE TABLE t (x bigint)")
try:
    local.apply({"t": gone})
except hj.HalfjoinError as problem:
    print(problem)
own.apply({"t": own.spark.range(2).toDF("x")})
print(sorted(row.x for row in own.dataframe("v").collect()), given.read("t").num_rows)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True,
                          cwd=Path(__file__).parents[2])  # fmt: skip
    first, frame, last = done.stdout.splitlines()
    assert frame == "the Spark session was stopped; start one, and make the DataFrame anew in it"
    assert first.startswith("the engine's Spark session was stopped; close the engine") and last == "[0, 1, 1] 1"


def test_without_java_the_remedy_is_named() -> None:
    program = """
import halfjoin as hj
engine = hj.Engine(runner="spark")
engine.execute("CREATE TABLE t (x bigint)")
try:
    engine.apply({"t": [{"x": 1}]})
except hj.HalfjoinError as problem:
    print(problem)
"""
    left_out = ("SPARK_REMOTE", "JAVA_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True,
                          env={**environment, "JAVA_HOME": "/nowhere"}, cwd=Path(__file__).parents[2])  # fmt: skip
    assert "Java" in done.stdout and 'runner="local"' in done.stdout, done.stderr[-2000:]

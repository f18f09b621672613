"""An engine belongs to the process that opened it: a forked child can neither use it nor harm it."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange.changes import Diffs, StoredChanges
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.updates.updates import empty
from tests.oracle.rows import bag

SECONDS = 60
ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")  # since Python 3.12: it is meant


def _in_child(work: Callable[[], object]) -> None:
    """Call it in a forked child. An exception there fails the test."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(SECONDS)  # not to wait for ever where it does
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _refused(call: Callable[[], object]) -> None:
    says = f"process {os.getppid()}; this process, {os.getpid()}, is a fork of it.*spawn"
    with pytest.raises(hj.Conflict, match=says):
        call()


def _filled(engine: hj.Engine) -> None:
    engine.execute("CREATE TABLE t (k bigint PRIMARY KEY); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
    engine.apply({"t": [{"k": 1}]}, time=1)


def _calls(engine: hj.Engine, subscription: hj.Subscription, sink: Any) -> list[Callable[[], object]]:
    return [
        lambda: engine.execute("SELECT 1"), lambda: engine.apply({"t": [{"k": 2}]}), engine.advance,
        lambda: engine.read("t"), lambda: engine.dataframe("t"), lambda: engine.query("SELECT 1"),
        lambda: engine.subscribe("v"), lambda: engine.explain("v"), lambda: engine.spark, engine.stats,
        lambda: engine.sink("t"), lambda: engine.follow("t", "x"), engine.flush, engine.compact,
        lambda: engine.register_table_function("f", lambda batch: batch, {"x": "bigint"}),
        lambda: engine.register_aggregate("f", ["bigint"], "bigint", lambda rows, counts: 1),
        lambda: engine.register_reduce("f", lambda batch: batch, {"x": "bigint"}),
        lambda: next(subscription), lambda: sink(pa.table({"k": [7]}), 3),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["memory", "warehouse", "reader"])
def test_every_call_in_a_child_is_refused(tmp_path: Path, kind: str) -> None:
    with hj.Engine(None if kind == "memory" else tmp_path / "w", clock="wall") as engine:
        _filled(engine)
        reader = hj.Engine(tmp_path / "w", read_only=True) if kind == "reader" else None
        used = reader or engine
        subscription, sink = used.subscribe("v"), used.sink("t")

        def child() -> None:
            for call in _calls(used, subscription, sink):
                _refused(call)
            subscription.close()
            used.close()
            with used:
                pass

        _in_child(child)
        assert bag(used.read("v")) == {(1,): 1}
        engine.apply({"t": [{"k": 2}]}, time=2)
        assert bag(used.read("v")) == {(1,): 1, (2,): 1}
        assert len(next(subscription)) == 1
        engine.execute("INSERT INTO t VALUES (3)")
        if reader is not None:
            reader.close()


_engine: hj.Engine | None = None


def _write(key: int) -> int:
    assert _engine is not None
    return _engine.apply({"t": [{"k": key}]}).upper


def test_a_pool_of_forks_is_refused(tmp_path: Path) -> None:
    global _engine
    with hj.Engine(tmp_path / "w") as _engine:
        _filled(_engine)
        with multiprocessing.get_context("fork").Pool(2) as pool, pytest.raises(hj.Conflict, match="spawn"):
            pool.map(_write, range(10, 20))
        assert bag(_engine.read("t")) == {(1,): 1}


def test_a_child_while_a_thread_is_in_a_call_is_not_stuck(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        _filled(engine)
        with engine._changed:  # as any call has it
            _in_child(lambda: _refused(lambda: engine.read("t")))


def test_what_is_in_files_is_the_parents() -> None:
    diffs = Diffs({"v": StoredChanges({"k": pa.int64()}, (Run(empty({"k": pa.int64()})),), 0, 9, True)})
    _in_child(lambda: _refused(lambda: diffs["v"]))
    assert len(diffs["v"]) == 0


_EXITING = """
import os, sys
from pathlib import Path
import halfjoin as hj
from halfjoin.engine.storage.scratch import Scratch
engine = hj.Engine(sys.argv[1])
engine.execute("CREATE TABLE t (k bigint PRIMARY KEY)")
engine.apply({"t": [{"k": 1}]}, time=1)
scratch = Scratch(sys.argv[2])
place = scratch.fresh()
for forgets in (False, True):
    pid = os.fork()
    if pid == 0:
        if forgets:
            del place, scratch, engine
        sys.exit(0)
    os.waitpid(pid, 0)
    assert place.path.exists() and Path(sys.argv[1], "journal.sqlite-wal").exists()
engine.apply({"t": [{"k": 2}]}, time=2)
print(engine.read("t").num_rows)
engine.close()
"""


def test_the_end_of_a_child_removes_nothing(tmp_path: Path) -> None:
    ignored = "ignore:This process:DeprecationWarning"  # of Python, about any fork beside threads
    command = [sys.executable, "-W", ignored, "-c", _EXITING, str(tmp_path / "w"), str(tmp_path / "scratch")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=SECONDS)
    assert (done.stdout, done.stderr) == ("2\n", "")
    with hj.Engine(tmp_path / "w") as engine:
        assert bag(engine.read("t")) == {(1,): 1, (2,): 1}


_PARENT = """
import os, sys, time
import halfjoin as hj
engine = hj.Engine(sys.argv[1])
engine.execute("CREATE TABLE t (k bigint)")
engine.apply({"t": [{"k": 1}]}, time=1)
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(60)
    os._exit(0)
time.sleep(60)
"""


def test_a_child_does_not_keep_the_lock_of_a_dead_parent(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    command = [sys.executable, "-c", _PARENT, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            with pytest.raises(hj.Conflict):
                hj.Engine(folder)
            parent.kill()
            parent.wait()
            os.kill(child, 0)  # is there
            with hj.Engine(folder) as engine:
                assert bag(engine.read("t")) == {(1,): 1}
                engine.apply({"t": [{"k": 2}]}, time=2)
                os.kill(child, signal.SIGTERM)
        finally:
            parent.kill()
            os.kill(child, signal.SIGKILL)
    with hj.Engine(folder) as engine:
        assert bag(engine.read("t")) == {(1,): 1, (2,): 1}


def test_a_child_does_not_keep_the_lock_of_a_closed_engine(tmp_path: Path) -> None:
    read, write = os.pipe()
    engine = hj.Engine(tmp_path / "w")
    _filled(engine)
    pid = os.fork()
    if pid == 0:
        os.close(write)
        os.read(read, 1)  # until the parent is done
        os._exit(0)
    os.close(read)
    engine.close()
    with hj.Engine(tmp_path / "w") as engine:
        engine.apply({"t": [{"k": 2}]}, time=2)
        os.close(write)
        os.waitpid(pid, 0)
        engine.apply({"t": [{"k": 3}]}, time=3)
        assert engine.read("t").num_rows == 3


def test_a_child_may_have_an_engine_of_its_own(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        _filled(engine)
        engine.query("SELECT to_char(timestamp '2020-01-01', 'YYYY') AS x, count(*) AS n FROM t GROUP BY 1")

        def child() -> None:
            with hj.Engine() as mine:
                _filled(mine)
                assert bag(mine.query("SELECT k, count(*) AS n FROM v GROUP BY 1")) == {(1, 1): 1}
            for read_only in (False, True):
                with pytest.raises(hj.Conflict, match="spawn"):
                    hj.Engine(tmp_path / "w", read_only=read_only)

        _in_child(child)
        engine.apply({"t": [{"k": 2}]}, time=2)
        engine.flush()  # from now on Delta's threads are there, which no fork has

        def later() -> None:
            with hj.Engine() as mine:
                _filled(mine)
            for folder in ("w", "another"):
                with pytest.raises(hj.Conflict, match="spawn"):
                    hj.Engine(tmp_path / folder)

        _in_child(later)
        assert engine.read("t").num_rows == 2


def test_an_engine_is_not_sent_to_other_processes() -> None:
    with hj.Engine() as engine, pytest.raises(hj.Conflict, match="belongs to the process that opened it"):
        pickle.dumps(engine)


def test_a_subscription_is_not_sent_to_other_processes() -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (k bigint); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
        subscription = engine.subscribe("v")
        for send in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(hj.Conflict, match="belongs to the process of its engine"):
                send(subscription)


def test_the_outcome_of_a_batch_is_sent_to_other_processes(tmp_path: Path) -> None:
    with hj.Engine(tmp_path) as engine:
        _filled(engine)
        made = engine.apply({"t": [{"k": 2}]}, time=2)
        copies = [pickle.loads(pickle.dumps(made)), copy.deepcopy(made)]
        assert copies == [made, made]
    for one in copies:
        assert one.diffs["v"].to_pylist() == [{"k": 2, "__time": 2, "__diff": 1}]
        with pytest.raises(hj.Conflict, match=r"has no DataFrames; take the table diffs\['v'\]"):
            one.dataframe("v")
        with pytest.raises(hj.UnknownName):
            one.dataframe("x")


def test_a_child_of_an_engine_with_a_sink_ends(tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w") as engine:
        _filled(engine)
        engine.execute("CREATE SINK s FROM t INTO DELTA 's'")
        for number in range(2, 12):
            engine.apply({"t": [{"k": number}]}, time=number)
            _in_child(engine.close)
        engine.flush()
        assert {status.error for status in engine.stats().sinks} == {None}

"""The thread behind the batches: whoever waits for it waits until its work is done, whatever interrupts the wait."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread, main_thread
from time import sleep
from typing import Any

import pytest
from deltalake import DeltaTable

import halfjoin as hj
from halfjoin.engine.storage.delta import DeltaFolder
from halfjoin.engine.system.behind import Behind


def _interrupted(wait: Callable[[], object], begun: Event) -> None:
    """Press Ctrl-C while the main thread waits for one that has begun to work.

    A signal that comes right before the wait begins does not end it, so there are more, until one has.
    """
    waits, over, main = list[bool](), list[bool](), main_thread().ident
    assert main is not None and begun.wait(60)

    def pressed(*_: object) -> None:
        if waits:
            waits.clear()
            raise KeyboardInterrupt

    def press() -> None:
        while not over:
            if waits and sys._current_frames()[main].f_code.co_name in ("wait", "_wait_for_tstate_lock"):
                signal.pthread_kill(main, signal.SIGUSR1)
            sleep(0.001)

    before, presser = signal.signal(signal.SIGUSR1, pressed), Thread(target=press)
    presser.start()
    with pytest.raises(KeyboardInterrupt):
        waits.append(True)
        wait()
    over.append(True)
    presser.join()
    signal.signal(signal.SIGUSR1, before)


def test_work_goes_on_when_a_wait_is_interrupted() -> None:
    begun, go, done, behind = Event(), Event(), list[str](), Behind()

    def work() -> None:
        begun.set()
        assert go.wait(60)
        done.append("it")

    assert behind.submit(work)
    for _ in range(2):
        _interrupted(behind.wait, begun)
        assert behind.busy and not done
    go.set()
    behind.wait()
    assert done == ["it"] and not behind.busy


def _refused(_: Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_what_no_thread_can_do_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    behind, done = Behind(), list[int]()
    with monkeypatch.context() as patch:
        patch.setattr(Thread, "start", _refused)
        assert not behind.submit(lambda: done.append(1))
        behind.wait()
    assert behind.submit(lambda: done.append(2))
    behind.wait()
    assert done == [2]


def test_work_that_panics_keeps_nobody_waiting() -> None:
    class Panic(BaseException):
        pass

    def panic() -> None:
        raise Panic

    behind, done = Behind(), list[int]()
    assert behind.submit(panic)
    behind.wait()
    assert behind.submit(lambda: done.append(1))
    behind.wait()
    assert done == [1]


def test_a_batch_flushes_where_no_thread_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halfjoin.engine.storage.upkeep.FLUSH_BYTES", 1)
    with hj.Engine(tmp_path / "w") as engine:
        engine.execute("CREATE TABLE t (k bigint)")
        monkeypatch.setattr(Thread, "start", _refused)
        engine.apply({"t": [{"k": 1}]}, time=1)
        assert DeltaTable(tmp_path / "w" / "tables" / "t").to_pyarrow_table().num_rows == 1
        monkeypatch.undo()


def test_an_engine_that_closes_waits_for_its_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go, append = Event(), Event(), DeltaFolder.append

    def slow(*arguments: Any) -> Any:
        begun.set()
        assert go.wait(60)
        return append(*arguments)

    monkeypatch.setattr("halfjoin.engine.storage.upkeep.FLUSH_BYTES", 1)
    engine = hj.Engine(tmp_path / "w")
    engine.execute("CREATE TABLE t (k bigint); CREATE MATERIALIZED VIEW v AS SELECT k FROM t")
    engine._store._flusher.wait()  # type: ignore[union-attr]
    monkeypatch.setattr(DeltaFolder, "append", slow)
    engine.apply({"t": [{"k": 1}]}, time=1)
    for _ in range(2):
        _interrupted(engine.close, begun)
        with pytest.raises(hj.Conflict, match="very process"):  # while the flush goes on, nobody else writes
            hj.Engine(tmp_path / "w")
    go.set()
    engine.close()
    with hj.Engine(tmp_path / "w") as again:
        assert again.read("v").to_pylist() == [{"k": 1}]

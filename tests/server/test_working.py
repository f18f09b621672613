"""A cancelled call ends, also where Python drops the exception that cancels it; what comes after is left alone."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread
from typing import Any

import pytest

from halfjoin.engine.system.starting import start
from halfjoin.errors import HalfjoinError
from halfjoin.server import working
from halfjoin.server.working import Worker


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    monkeypatch.setattr(working, "_AGAIN", 0.05)
    with ThreadPoolExecutor(1) as threads:
        yield Worker(threads)


def _until(done: Event) -> None:
    while not done.is_set():
        time.sleep(0.001)


def _later() -> str:
    time.sleep(0.2)
    return "next"


class _Thing:
    """What a weak reference can refer to."""


async def _cancelled(worker: Worker, begun: Event, call: Callable[[], Any]) -> HalfjoinError:
    running = asyncio.ensure_future(worker.call(call))
    await asyncio.to_thread(begun.wait, 60)
    worker.cancel()
    with pytest.raises(HalfjoinError) as caught:
        await asyncio.wait_for(running, 60)
    return caught.value


def test_a_call_goes_on_after_a_dropped_interrupt_and_is_interrupted_again(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped = list[type[BaseException] | None]()
    monkeypatch.setattr(sys, "unraisablehook", lambda told: dropped.append(told.exc_type))
    begun, never = Event(), Event()

    def call() -> None:
        thing = _Thing()

        def gone(_: object) -> None:
            begun.set()
            _until(never)

        kept = weakref.ref(thing, gone)
        del thing
        assert kept() is None
        _until(never)

    error = asyncio.run(_cancelled(worker, begun, call))
    assert error.code == "57014"
    assert len(dropped) == 1


def test_what_ends_by_itself_has_its_result_and_the_next_call_no_interrupt(worker: Worker) -> None:
    begun, done = Event(), Event()

    def stubborn() -> str:
        begun.set()
        while not done.is_set():
            try:
                _until(done)
            except KeyboardInterrupt:
                done.set()
        return "made"

    async def both() -> tuple[str, str]:
        running = asyncio.ensure_future(worker.call(stubborn))
        await asyncio.to_thread(begun.wait, 60)
        worker.cancel()
        first = await running
        assert not worker.running
        worker.cancel()  # of nothing
        return first, await worker.call(_later)

    assert asyncio.run(both()) == ("made", "next")


def test_a_call_that_waits_for_a_thread_is_cancelled_too(worker: Worker) -> None:
    begun, free, never = Event(), Event(), Event()
    other = Worker(worker._threads)

    def first_of_all() -> None:
        begun.set()
        _until(free)

    async def queued() -> str:
        first = asyncio.ensure_future(other.call(first_of_all))
        await asyncio.to_thread(begun.wait, 60)
        second = asyncio.ensure_future(worker.call(lambda: _until(never), most=0.01))
        await asyncio.sleep(0.1)
        free.set()
        await first
        with pytest.raises(HalfjoinError) as caught:
            await asyncio.wait_for(second, 60)
        return str(caught.value)

    assert "statement timeout" in asyncio.run(queued())


def test_calls_that_are_cancelled_at_any_moment_end_once(worker: Worker) -> None:
    async def many() -> int:
        ended = 0
        for number in range(200):
            running = asyncio.ensure_future(worker.call(lambda: sum(range(2000)), most=10))
            await asyncio.sleep(0.0001 * (number % 5))
            worker.cancel()
            try:
                assert await asyncio.wait_for(running, 60) == 1999000
                ended += 1
            except HalfjoinError as error:
                assert error.code == "57014"
        return await worker.call(lambda: ended)

    assert 0 <= asyncio.run(many()) <= 200


def test_no_call_is_interrupted_while_it_starts_a_thread(worker: Worker) -> None:
    """Up to Python 3.11 the thread that is started gets the exception, and whoever starts it waits for ever."""
    begun, go, never, started = Event(), Event(), Event(), list[str]()

    class Slow(Thread):
        def start(self) -> None:
            begun.set()
            _until(go)
            super().start()
            started.append("all of it")

    def call() -> None:
        start(Slow(target=lambda: None))
        _until(never)

    async def cancelled() -> HalfjoinError:
        running = asyncio.ensure_future(worker.call(call))
        await asyncio.to_thread(begun.wait, 60)
        worker.cancel()
        await asyncio.sleep(0.1)
        go.set()
        with pytest.raises(HalfjoinError) as caught:
            await asyncio.wait_for(running, 60)
        return caught.value

    assert asyncio.run(cancelled()).code == "57014"
    assert started == ["all of it"]


PROFILED = """
import asyncio, sys, time
from concurrent.futures import ThreadPoolExecutor
from halfjoin.engine.system.starting import start
from halfjoin.errors import HalfjoinError
from halfjoin.server.working import Worker

async def cancelled(worker, seconds):
    try:
        await worker.call(lambda: [time.sleep(0.001) for _ in range(int(seconds * 1000))], most=0.01)
    except HalfjoinError:
        pass

async def calls():
    with ThreadPoolExecutor(4) as threads:
        for _ in range(20):
            await asyncio.gather(*(cancelled(Worker(threads), seconds) for seconds in (0.009, 0.01, 0.011, 1)))

asyncio.run(calls())
sys.setprofile(lambda *event: None)
print(len("a call"))
"""


def test_a_profiler_works_after_calls_were_cancelled() -> None:
    """CPython 3.11 loops for ever if an interrupt is taken back, once a profiler or a debugger looks at a call."""
    done = subprocess.run([sys.executable, "-c", PROFILED], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("6\n", "")

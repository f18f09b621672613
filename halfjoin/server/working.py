"""Runs the calls of one connection in threads, one after the other, and cancels a running one.

A cancelled call is interrupted as Ctrl-C interrupts it: an exception is raised in its thread. The engine bears that at
any place: its batch is done, or nothing of it. Python drops an exception that it raises in a weak reference's callback
or a finalizer, and the call goes on; so it is raised again, after a while, until the call has ended. One that was sent
is waited for, never taken back: CPython 3.11 would look for it for ever, and hang where a profiler is set.
"""

from __future__ import annotations

import asyncio
import ctypes
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from threading import Lock, get_ident
from typing import Any, TypeVar, cast

from halfjoin.engine.system.starting import unless_starting
from halfjoin.errors import HalfjoinError

T = TypeVar("T")
USER_REQUEST = "canceling statement due to user request"
_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
_MOMENT = 0.001  # seconds; a thread that sleeps has raised what it was sent by then
_AGAIN = 0.5  # seconds a call has to end, before it is interrupted once more


class _Cancelled(KeyboardInterrupt):
    """Raised in the thread of a cancelled call."""


class Worker:
    """The calls of one connection."""

    def __init__(self, threads: Executor) -> None:
        self._threads, self._guard = threads, Lock()
        self._thread: int | None = None  # of the running call
        self._sent = False  # whether an interrupt may be on its way to that thread
        self._why: str | None = None  # why it is cancelled
        self._running: asyncio.Future[Any] | None = None  # its outcome
        self._waiting: asyncio.Future[Any] | None = None

    @property
    def running(self) -> bool:
        """Whether a thread has a call, or will have it once one is free."""
        return self._running is not None

    async def call(self, function: Callable[[], T], most: float | None = None) -> T:
        """Run a function in a thread, for at most `most` seconds.

        Raises:
            HalfjoinError: it was cancelled (SQLSTATE 57014). And what the function raises.
        """
        loop = asyncio.get_running_loop()
        self._why = None
        running = self._running = loop.run_in_executor(self._threads, self._outcome, function)
        late = None if most is None else loop.call_later(
            most, self.cancel, "canceling statement due to statement timeout")  # fmt: skip
        try:
            made, problem = await asyncio.shield(running)
        except asyncio.CancelledError:
            self.cancel("terminating connection due to administrator command")
            await asyncio.wait([running])
            raise
        finally:
            self._running = None
            if late is not None:
                late.cancel()
        if problem is not None:
            raise problem
        return cast("T", made)

    async def wait(self, coming: Coroutine[Any, Any, T]) -> T:
        """Wait for what no thread computes, until it is there or cancelled.

        Raises:
            HalfjoinError: it was cancelled (SQLSTATE 57014).
        """
        self._waiting = asyncio.ensure_future(coming)
        try:
            return await asyncio.shield(self._waiting)
        except asyncio.CancelledError:
            if not self._waiting.cancelled():  # the connection itself ends
                self._waiting.cancel()
                raise
            raise HalfjoinError(USER_REQUEST, code="57014") from None
        finally:
            self._waiting = None

    def cancel(self, why: str = USER_REQUEST) -> None:
        """Interrupt the running call, if there is one. Called in the event loop's thread, as `call` is."""
        if self._waiting is not None:
            self._waiting.cancel()
        if self._running is not None and self._why is None:
            self._why = why
            self._interrupt(self._running)

    def _interrupt(self, running: asyncio.Future[Any]) -> None:
        """Raise an exception in the thread of a call, now and again until it has ended."""
        if running.done():
            return
        sent = unless_starting(self._send)
        asyncio.get_running_loop().call_later(_AGAIN if sent else _MOMENT, self._interrupt, running)

    def _send(self) -> None:
        with self._guard:
            if self._thread is not None:
                self._sent = True
                _raise_in(ctypes.c_ulong(self._thread), ctypes.py_object(_Cancelled))

    def _outcome(self, function: Callable[[], T]) -> tuple[T | None, Exception | None]:
        """What the function returns, or why it failed. Neither is an interrupt, which would end the event loop."""
        found: tuple[T | None, Exception | None] | None = None
        try:
            try:
                with self._guard:
                    self._thread = get_ident()
                found = function(), None
            except Exception as error:
                found = None, error
            self._end(caught=False)
        except KeyboardInterrupt:  # the one that `cancel` raises, wherever it came
            self._end(caught=True)
        return found or (None, HalfjoinError(self._why or USER_REQUEST, code="57014"))

    def _end(self, *, caught: bool) -> None:
        """Wait for an interrupt that was sent; one that was dropped comes again. None comes afterwards."""
        while True:
            try:
                with self._guard:
                    if caught or not self._sent:
                        self._thread, self._sent = None, False
                if self._thread is None:
                    time.sleep(0)  # two of them may have come
                    return
                while True:
                    time.sleep(_MOMENT)
            except _Cancelled:
                caught = True

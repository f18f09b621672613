"""Runs the calls of one connection in threads, one after the other, and cancels a running one.

A cancelled call is interrupted as Ctrl-C interrupts it: an exception is raised in its thread. The engine bears that at
any place: its batch is done, or nothing of it.
"""

from __future__ import annotations

import asyncio
import ctypes
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from threading import Lock, get_ident
from typing import Any, TypeVar, cast

from halfjoin.errors import HalfjoinError

T = TypeVar("T")
USER_REQUEST = "canceling statement due to user request"
_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
_MOMENT = 0.001  # seconds until a thread that runs has raised what it was told to raise


class _Cancelled(KeyboardInterrupt):
    """Raised in the thread of a cancelled call."""


class Worker:
    """The calls of one connection."""

    def __init__(self, threads: Executor) -> None:
        self._threads, self._guard = threads, Lock()
        self._thread: int | None = None  # of the running call
        self._why: str | None = None  # why it is cancelled
        self._waiting: asyncio.Future[Any] | None = None
        self.running = False  # whether a thread has a call, as the event loop sees it

    @property
    def busy(self) -> bool:
        """Whether a call is running."""
        return self._thread is not None or self._waiting is not None

    async def call(self, function: Callable[[], T], most: float | None = None) -> T:
        """Run a function in a thread, for at most `most` seconds.

        Raises:
            HalfjoinError: it was cancelled (SQLSTATE 57014). And what the function raises.
        """
        loop = asyncio.get_running_loop()
        self.running = True
        running = loop.run_in_executor(self._threads, self._outcome, function)
        late = None if most is None else loop.call_later(
            most, self.cancel, "canceling statement due to statement timeout")  # fmt: skip
        try:
            made, problem = await asyncio.shield(running)
        except asyncio.CancelledError:
            self.cancel("terminating connection due to administrator command")
            await asyncio.wait([running])
            raise
        finally:
            self.running = False
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
        """Interrupt the running call, if there is one."""
        if self._waiting is not None:
            self._waiting.cancel()
        with self._guard:
            if self._thread is not None and self._why is None:
                self._why = why
                _raise_in(ctypes.c_ulong(self._thread), ctypes.py_object(_Cancelled))

    def _outcome(self, function: Callable[[], T]) -> tuple[T | None, Exception | None]:
        """What the function returns, or why it failed. Neither is an interrupt, which would end the event loop."""
        self._why = None
        try:
            return self._tried(function)
        except KeyboardInterrupt:  # the one that `cancel` raises, wherever it came
            self._thread = None
            return None, HalfjoinError(self._why or USER_REQUEST, code="57014")

    def _tried(self, function: Callable[[], T]) -> tuple[T | None, Exception | None]:
        made: T | None = None
        problem: Exception | None = None
        try:
            with self._guard:
                self._thread = get_ident()
            made = function()
        except KeyboardInterrupt:
            raise
        except Exception as error:
            problem = error
        finally:
            with self._guard:
                self._thread = None
        if self._why is not None:
            try:  # wait for the interrupt, so that it does not come later; the call is done
                while True:
                    time.sleep(_MOMENT)
            except _Cancelled:
                pass
        return made, problem

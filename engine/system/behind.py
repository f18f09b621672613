"""Work that goes on behind the batches: in a thread, one piece after the other, which ends when nothing is left to do.

It never keeps a process from ending: pieces that have not begun are dropped when the main thread ends.

Whoever waits for the thread asks what it has noted, not the thread itself: up to Python 3.12, a `Thread.join` that
Ctrl-C interrupts makes the thread look ended while it goes on (https://github.com/python/cpython/issues/90882).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from threading import Condition, RLock, Thread, main_thread

from halfjoin.engine.system.starting import start

_log = logging.getLogger("halfjoin")


class Behind:
    """A queue of pieces of work, and the thread that does them. Whoever waits for a piece learns by other means that it
    has failed."""

    def __init__(self, name: str = "halfjoin-behind") -> None:
        self._name = name
        self._lock = RLock()  # only `with` takes and releases it, so that no interrupt comes between
        self._changed = Condition(self._lock)
        self._waiting: deque[Callable[[], None]] = deque()
        self._worker: object = None  # identifies the thread that is to work
        self._closed = False

    @property
    def stopping(self) -> bool:
        """Whether a long piece of work should end early."""
        return self._closed or not main_thread().is_alive()

    @property
    def busy(self) -> bool:
        """Whether something is left to do."""
        return self._worker is not None

    def submit(self, work: Callable[[], None], *, soon: bool = False) -> bool:
        """Do a piece of work after those that wait already, or before them (`soon`). False: it is too late for that, or
        there can be no more threads."""
        with self._lock:
            if self.stopping:
                return False
            (self._waiting.appendleft if soon else self._waiting.append)(work)
            return self.busy or self._start()

    def _start(self) -> bool:
        try:
            self._worker = worker = object()
            start(Thread(target=self._run, args=(worker,), name=self._name))
        except BaseException as problem:  # if the thread has started nevertheless, it finds no work
            self._worker = None
            self._waiting.clear()
            if isinstance(problem, RuntimeError):
                return False
            raise
        return True

    def _run(self, worker: object) -> None:
        while (work := self._next(worker)) is not None:
            try:
                work()
            except BaseException:  # the rest goes on
                _log.exception("work behind the batches failed")

    def _next(self, worker: object) -> Callable[[], None] | None:
        """The piece to do now. None ends the thread."""
        with self._lock:
            if self._worker is not worker:
                return None
            if self._waiting and not self.stopping:
                return self._waiting.popleft()
            self._waiting.clear()
            self._worker = None
            self._changed.notify_all()
            return None

    def wait(self) -> None:
        """Wait until nothing is left to do."""
        with self._lock:
            self._changed.wait_for(lambda: not self.busy)

    def close(self) -> None:
        """Drop what has not begun, and wait for the rest."""
        self._closed = True
        self.wait()

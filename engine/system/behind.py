"""Work that goes on behind the batches: in a thread, one piece after the other, which ends when nothing is left to do.

It never keeps a process from ending: pieces that have not begun are dropped when the main thread ends.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

_log = logging.getLogger("halfjoin")


class Behind:
    """A queue of pieces of work, and the thread that does them. Whoever waits for a piece learns by other means that it
    has failed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._thread: threading.Thread | None = None
        self._closed = False

    @property
    def stopping(self) -> bool:
        """Whether a long piece of work should end early."""
        return self._closed or not threading.main_thread().is_alive()

    def submit(self, work: Callable[[], None], *, soon: bool = False) -> bool:
        """Do a piece of work after those that wait already, or before them (`soon`). False: it is too late for that."""
        with self._lock:
            if self.stopping:
                return False
            (self._waiting.appendleft if soon else self._waiting.append)(work)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="halfjoin-behind")
                self._thread.start()
            return True

    def _run(self) -> None:
        while True:
            with self._lock:
                if self.stopping or not self._waiting:
                    self._waiting.clear()
                    self._thread = None
                    return
                work = self._waiting.popleft()
            try:
                work()
            except Exception:  # the rest goes on
                _log.exception("work behind the batches failed")

    def wait(self) -> None:
        """Wait until nothing is left to do."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Drop what has not begun, and wait for the rest."""
        self._closed = True
        self.wait()

"""Whose turn it is to write: what comes in several batches at one time is not to be parted by others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, RLock, get_ident
from typing import Any


class Turns:
    """Of the threads of one engine; `changed` is the condition of its lock."""

    def __init__(self, lock: Any, changed: Condition) -> None:
        self._lock, self._changed = lock, changed
        self._alone: int | None = None  # the thread whose version comes in pieces
        self.following: Any = RLock()  # held by whoever follows: how far a table is must not change meanwhile

    def wait(self) -> bool:
        """Until no other thread is to be alone; the lock is held before and after. Returns whether others could call
        meanwhile."""
        waits = self._alone not in (None, get_ident())
        self._changed.wait_for(lambda: self._alone in (None, get_ident()))
        return waits

    @contextmanager
    def alone(self, needed: bool) -> Iterator[None]:
        """While a version comes in pieces, if it does: batches of other threads wait, as they could close its time."""
        if not needed:
            yield
            return
        try:
            with self._lock:
                self.wait()
                self._alone = get_ident()
            yield
        finally:
            with self._lock:
                self.recover(done=True)

    def recover(self, *, done: bool = False) -> None:
        """Let the others go on, if this thread had to be alone and is `done`, or was interrupted when it was."""
        if self._alone == get_ident() and (done or not self.following._is_owned()):
            self._alone = None
            self._changed.notify_all()

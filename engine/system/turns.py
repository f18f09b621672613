"""Decides which thread may write. Other threads must not write between the batches of one version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, RLock, get_ident
from typing import Any


class Turns:
    """The turns of the threads of one engine. `changed` is the condition of the engine's lock."""

    def __init__(self, lock: Any, changed: Condition) -> None:
        self._lock, self._changed = lock, changed
        self._alone: int | None = None  # the thread that writes a version in several batches
        self.following: Any = RLock()  # a thread that follows a table holds it: nobody else may move the table on

    def wait(self) -> bool:
        """Wait until no other thread is alone. The caller holds the lock before and after.

        Returns:
            Whether it waited, so that other threads may have made calls meanwhile.
        """
        if self._alone is None:  # the common case
            return False
        waits = self._alone != get_ident()
        self._changed.wait_for(lambda: self._alone in (None, get_ident()))
        return waits

    @contextmanager
    def alone(self, needed: bool) -> Iterator[None]:
        """Keep other threads' batches waiting, if `needed`: they could close a version's time between its batches."""
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
        """Let other threads go on, if this thread is alone and is `done`, or was interrupted while it was alone."""
        if self._alone == get_ident() and (done or not self.following._is_owned()):
            self._alone = None
            self._changed.notify_all()

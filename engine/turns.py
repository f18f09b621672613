"""Whose turn it is to write: what comes in several batches at one time is not to be parted by others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, get_ident

from halfjoin.engine.process import Turn


class Turns:
    """Of the threads of one engine; `changed` is its lock."""

    def __init__(self, changed: Condition) -> None:
        self._changed = changed
        self._alone: int | None = None  # the thread whose version comes in pieces
        self.following = Turn()  # held by whoever follows: how far a table is must not change meanwhile

    def wait(self) -> None:
        """Until no other thread is to be alone; the lock is held before and after."""
        self._changed.wait_for(lambda: self._alone in (None, get_ident()))

    @contextmanager
    def alone(self, needed: bool) -> Iterator[None]:
        """While a version comes in pieces, if it does: batches of other threads wait, as they could close its time."""
        if not needed:
            yield
            return
        with self._changed:
            self.wait()
            self._alone = get_ident()
        try:
            yield
        finally:
            with self._changed:
                self._alone = None
                self._changed.notify_all()

"""Subscriptions: a view's changes as they close."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition

import pyarrow as pa
import pyarrow.compute as pc


class Subscription:
    """An iterator of Arrow tables (the view's columns, `__time`, `__diff`): a snapshot, then the changes of each batch.

    `next` waits for the next batch, which another thread applies, until the engine is closed or `up_to` is reached.
    """

    def __init__(self, first: list[pa.Table], up_to: int | None, changed: Condition,
                 leave: Callable[[Subscription], None]) -> None:
        self._waiting = deque(first)
        self._up_to = up_to
        self._changed = changed
        self._leave = leave
        self._ended = False

    def push(self, changes: pa.Table, upper: int) -> None:
        """New closed changes; `upper` after them. The caller holds the lock."""
        if self._up_to is not None:
            changes = changes.filter(pc.less(changes["__time"], self._up_to))
        if len(changes):
            self._waiting.append(changes)
        if self._up_to is not None and upper >= self._up_to:
            self._ended = True
        self._changed.notify_all()

    def close(self) -> None:
        """End: what has come is still given out, nothing is waited for."""
        with self._changed:
            self._ended = True
            self._leave(self)
            self._changed.notify_all()

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> pa.Table:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            if self._waiting:
                return self._waiting.popleft()
            self._leave(self)
            raise StopIteration

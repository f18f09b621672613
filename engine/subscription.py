"""Subscriptions: a view's changes as they close."""

from __future__ import annotations

from collections import deque
from threading import Condition
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.changes import Changes, StoredChanges
from halfjoin.sql.errors import HalfjoinError


class Subscription:
    """An iterator of Arrow tables (the view's columns, `__time`, `__diff`): a snapshot, then the changes of each batch.

    `next` waits for the next batch, which another thread applies, until the engine is closed or `up_to` is reached.
    Once the view is dropped or replaced it raises `UnknownName`.
    """

    def __init__(
        self, first: list[pa.Table], upper: int, up_to: int | None, changed: tuple[Any, Condition],
        others: list[Subscription],
    ) -> None:  # fmt: skip
        self._waiting: deque[tuple[int, Changes]] = deque((upper, one) for one in first)  # with `upper` after them
        self._seen = upper  # of what was given out last
        self._up_to = up_to
        self._lock, self._changed = changed  # the engine's
        self._others = others  # the subscriptions that get the engine's changes, this one among them until it ends
        self._ended = False
        self._problem: HalfjoinError | None = None  # why it ended, if that was not to be expected
        others.append(self)

    def push(self, changes: Changes, upper: int) -> None:
        """New closed changes; `upper` after them. The caller holds the lock. What is in files is read by `next`.

        Pushed again, they are there once: who was interrupted need not know how far it got.
        """
        if self._up_to is not None:
            if isinstance(changes, StoredChanges):
                changes = changes.until(self._up_to)
            else:
                changes = changes.filter(pc.less(changes["__time"], self._up_to))
        last = self._waiting[-1][0] if self._waiting else self._seen
        if upper > last and (isinstance(changes, StoredChanges) or len(changes)):
            self._waiting.append((upper, changes))
        if self._up_to is not None and upper >= self._up_to:
            self._end()
        self._changed.notify_all()

    def close(self) -> None:
        """End: what has come is still given out, nothing is waited for."""
        with self._lock:
            self._end()

    def fail(self, problem: HalfjoinError) -> None:
        """End with an error, once what has come is given out."""
        with self._lock:
            self._problem = problem
            self._end()

    def _end(self) -> None:
        self._ended = True
        if self in self._others:
            self._others.remove(self)
        self._changed.notify_all()

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> pa.Table:
        with self._lock:
            while True:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if not self._waiting:
                    if self._problem is not None:
                        raise self._problem
                    raise StopIteration
                upper, changes = self._waiting[0]
                table = changes.table() if isinstance(changes, StoredChanges) else changes
                self._seen = upper
                self._waiting.popleft()  # not before it could be read
                if len(table) or not isinstance(changes, StoredChanges):
                    return table

"""Subscriptions: a view's changes as they close."""

from __future__ import annotations

from collections import deque
from threading import Condition

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.changes import Changes, StoredChanges
from halfjoin.engine.unreadable import Failure
from halfjoin.sql.errors import DataError


class Subscription:
    """An iterator of Arrow tables (the view's columns, `__time`, `__diff`): a snapshot, then the changes of each batch.

    `next` waits for the next batch, which another thread applies, until the engine is closed or `up_to` is reached.
    Where it comes to a time at which the view cannot be read, it raises the DataError that a read raises then, and
    ends: the changes of the rows that do not fail would pass for the view's.
    """

    def __init__(
        self, first: list[pa.Table], up_to: int | None, changed: Condition, others: list[Subscription],
        failure: Failure | None = None,
    ) -> None:  # fmt: skip
        self._waiting: deque[Changes | DataError] = deque(first)
        self._up_to = up_to
        self._changed = changed
        self._others = others  # the subscriptions that get the engine's changes, this one among them until it ends
        self._ended = False
        others.append(self)
        if failure is not None:
            self._fail(failure)

    def push(self, changes: Changes, upper: int, failure: Failure | None = None) -> None:
        """New closed changes; `upper` after them. The caller holds the lock. What is in files is read by `next`.

        `failure`: the first of the times closed at which the view cannot be read.
        """
        if failure is not None and self._up_to is not None and failure.time >= self._up_to:
            failure = None
        end = self._up_to if failure is None else failure.time
        if end is not None:
            if isinstance(changes, StoredChanges):
                changes = changes.until(end)
            else:
                changes = changes.filter(pc.less(changes["__time"], end))
        if isinstance(changes, StoredChanges) or len(changes):
            self._waiting.append(changes)
        if failure is not None:
            self._fail(failure)
        elif self._up_to is not None and upper >= self._up_to:
            self._end()
        self._changed.notify_all()

    def _fail(self, failure: Failure) -> None:
        self._waiting.append(DataError(
            f"{failure.text}. The subscription ends before that; mend the rows, and subscribe again as of a time at "
            "which the view can be read"
        ))  # fmt: skip
        self._end()

    def close(self) -> None:
        """End: what has come is still given out, nothing is waited for."""
        with self._changed:
            self._end()

    def _end(self) -> None:
        self._ended = True
        if self in self._others:
            self._others.remove(self)
        self._changed.notify_all()

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> pa.Table:
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if not self._waiting:
                    raise StopIteration
                changes = self._waiting[0]
                if isinstance(changes, DataError):
                    self._waiting.popleft()
                    raise changes
                table = changes.table() if isinstance(changes, StoredChanges) else changes
                self._waiting.popleft()  # not before it could be read
                if len(table) or not isinstance(changes, StoredChanges):
                    return table

"""Subscriptions: iterators of a view's changes as they close."""

from __future__ import annotations

import os
from collections import deque
from threading import Condition
from typing import Any, NoReturn
from weakref import WeakSet

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.arrange.changes import Changes, StoredChanges
from halfjoin.engine.batch.unreadable import Failure
from halfjoin.engine.system.process import check_process, is_this
from halfjoin.errors import Conflict, HalfjoinError


class Subscription:
    """An iterator of Arrow tables (the view's columns, `__time`, `__diff`): a snapshot, then the changes of each batch.

    `next` waits for the next batch, which another thread applies. It ends when the engine is closed or `up_to` is
    reached. At the first time at which the view cannot be read, `next` raises the DataError that a read raises then,
    and ends: the changes of the rows that do not fail are not the view's changes. Once the view is dropped or replaced,
    it raises `UnknownName`. One that nobody has any more ends: its changes would be kept for ever.
    """

    def __init__(
        self, first: list[pa.Table], upper: int, up_to: int | None, changed: tuple[Any, Condition],
        others: WeakSet[Subscription], failure: Failure | None = None,
    ) -> None:  # fmt: skip
        self._waiting: deque[tuple[int, Changes]] = deque((upper, one) for one in first)  # with `upper` after them
        self._seen = upper  # `upper` after the changes returned last
        self._up_to = up_to
        self._lock, self._changed = changed  # the engine's
        self._process = os.getpid()
        self._others = others  # the subscriptions that get the view's changes; this one is among them until it ends
        self._ended = False
        self._problem: HalfjoinError | None = None  # the error that ended it, if any
        self._returned = 0  # tables
        others.add(self)
        if failure is not None:
            self._fail(failure)

    def push(self, changes: Changes, upper: int, failure: Failure | None = None) -> None:
        """Add closed changes, with `upper` after them. The caller holds the lock. `next` reads changes in files.

        `failure`: the first of the closed times at which the view cannot be read. Changes that are pushed again are
        ignored, so an interrupted caller can simply repeat the call.
        """
        if failure is not None and self._up_to is not None and failure.time >= self._up_to:
            failure = None
        end = self._up_to if failure is None else failure.time
        if end is not None:
            if isinstance(changes, StoredChanges):
                changes = changes.until(end)
            else:
                changes = changes.filter(pc.less(changes["__time"], end))
        last = self._waiting[-1][0] if self._waiting else self._seen
        if upper > last and (isinstance(changes, StoredChanges) or len(changes)):
            self._waiting.append((upper, changes))
        if failure is not None:
            self._fail(failure)
        elif self._up_to is not None and upper >= self._up_to:
            self._end()
        self._changed.notify_all()

    def __reduce__(self) -> NoReturn:
        raise Conflict("a subscription belongs to the process of its engine, and cannot be sent to another one")

    def _fail(self, failure: Failure) -> None:
        self._problem = failure.error.with_(
            remedy="the subscription ends before that time: mend the rows, and subscribe again as of a time at which "
            "the view can be read"
        )
        self._end()

    @property
    def waiting(self) -> int:
        """How many tables have come that `next` has not returned: it returns these without waiting. A table in files
        that turns out to be empty is among them."""
        return len(self._waiting)

    @property
    def come(self) -> int:
        """How many tables have come: those that `next` has returned, and those that are `waiting`. For a moment it may
        count one twice; it never leaves one out. It waits for no batch."""
        waiting = len(self._waiting)  # before what `next` counts up, first
        return waiting + self._returned

    def close(self) -> None:
        """End: `next` still returns the changes that have come, but waits for no more. In a forked child it does
        nothing, as the engine's."""
        if is_this(self._process):
            with self._lock:
                self._end()

    def fail(self, problem: HalfjoinError) -> None:
        """End with an error, which `next` raises after the changes that have come."""
        with self._lock:
            self._problem = problem
            self._end()

    def _end(self) -> None:
        self._ended = True
        self._others.discard(self)
        self._changed.notify_all()

    def __iter__(self) -> Subscription:
        return self

    def __next__(self) -> pa.Table:
        check_process(self._process)
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
                returned = len(table) > 0 or not isinstance(changes, StoredChanges)
                self._returned += returned
                self._waiting.popleft()  # only after a successful read
                if returned:
                    return table

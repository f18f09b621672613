"""The changes of a subscription on their way to a client: a thread waits for them, the event loop takes them."""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError
from threading import Thread

import pyarrow as pa

from halfjoin.engine.batch.subscription import Subscription
from halfjoin.sql.expr import Column

WAITING = 4  # tables that wait for a client; the thread waits when there are more
_STEP = 0.05  # seconds after which a FETCH looks again whether a table that had come is an empty one in files


class Changes:
    """The tables of a subscription, taken one after the other."""

    def __init__(self, subscription: Subscription, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self._subscription = subscription
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[pa.Table | BaseException | None] = asyncio.Queue(WAITING)
        self._closed = False
        self._taken = 0  # tables
        self._rest: pa.Table | None = None  # rows that a FETCH has left
        self._problem: BaseException | None = None  # an error that waits for the FETCH after the rows before it
        Thread(target=self._pump, name="halfjoin-subscription", daemon=True).start()

    async def next(self, timeout: float | None = None) -> pa.Table | None:
        """The next table; None if there are no more, or none comes within `timeout` seconds.

        Raises:
            HalfjoinError: the view cannot be read any more.
        """
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem
        if self._closed and self._queue.empty():
            return None
        try:
            async with asyncio.timeout(timeout):
                found = await self._queue.get()
        except TimeoutError:
            return None
        if isinstance(found, BaseException):
            self._closed = True
            raise found
        if found is None:
            self._closed = True
        else:
            self._taken += 1
        return found

    async def take(self, most: int | None, timeout: float | None) -> pa.Table:
        """At most so many rows (None: all that have come). It waits for the first, for `timeout` seconds (None: until
        one comes).

        Raises:
            HalfjoinError: the view cannot be read any more, and no change from before that is left.
        """
        parts, count = list[pa.Table](), 0
        while most is None or count < most:
            found, self._rest = self._rest, None
            if found is None:
                found = await (self._come() if count else self.next(timeout))
            if found is None:
                break
            if most is not None and count + found.num_rows > most:
                self._rest = found.slice(most - count)
                found = found.slice(0, most - count)
            parts.append(found)
            count += found.num_rows
        if not parts:
            return pa.table({column.name: pa.array([]) for column in self.columns})
        return pa.concat_tables(parts)

    async def _come(self) -> pa.Table | None:
        """The next of the tables that have come, which the thread may not have handed over yet; None if there is none,
        or an error is next."""
        found = None
        while found is None and (not self._queue.empty() or self._subscription.come > self._taken):
            try:
                found = await self.next(_STEP)
            except Exception as problem:
                self._problem = problem
            if self._closed:
                break
        return found

    def close(self) -> None:
        """End it; the thread ends, too."""
        self._closed = True
        self._subscription.close()
        while not self._queue.empty():
            self._queue.get_nowait()

    def _pump(self) -> None:
        last: BaseException | None = None
        try:
            for table in self._subscription:
                if self._closed or not self._put(table):
                    return
        except Exception as problem:
            last = problem
        self._put(last)

    def _put(self, item: pa.Table | BaseException | None) -> bool:
        """Hand something to the event loop, when it has room; whether that still runs."""
        putting = self._queue.put(item)
        try:
            asyncio.run_coroutine_threadsafe(putting, self._loop).result()
        except (RuntimeError, CancelledError):
            putting.close()  # a loop that is closed has not begun it
            return False
        return True



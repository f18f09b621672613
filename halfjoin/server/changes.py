"""The changes of a subscription on their way to a client: a thread waits for them, the event loop takes them."""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError
from threading import Thread

import pyarrow as pa

from halfjoin.engine.batch.subscription import Subscription
from halfjoin.sql.expr import Column

WAITING = 4  # tables that wait for a client; the thread waits when there are more


class Changes:
    """The tables of a subscription, taken one after the other."""

    def __init__(self, subscription: Subscription, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self._subscription = subscription
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[pa.Table | BaseException | None] = asyncio.Queue(WAITING)
        self._closed = False
        self._rest: pa.Table | None = None  # rows that a FETCH has left
        Thread(target=self._pump, name="halfjoin-subscription", daemon=True).start()

    async def next(self, timeout: float | None = None) -> pa.Table | None:
        """The next table; None if there are no more, or none comes within `timeout` seconds.

        Raises:
            HalfjoinError: the view cannot be read any more.
        """
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
        return found

    async def take(self, most: int | None, timeout: float | None) -> pa.Table:
        """At most so many rows (None: all that have come). It waits for the first, for `timeout` seconds (None: until
        one comes)."""
        parts, count = list[pa.Table](), 0
        while most is None or count < most:
            found, self._rest = self._rest, None
            if found is None:
                found = await self.next(0 if count else timeout)
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



"""pg_sleep: how long the answer of a statement waits. No thread sleeps, and a cancel request ends it.

A call is noted when its statement is bound, in a thread; one that is bound twice in a statement counts once.
"""

from __future__ import annotations

import asyncio

from halfjoin.errors import HalfjoinError
from halfjoin.server.working import Worker


class Sleep:
    """The calls in the running statement of one connection."""

    def __init__(self) -> None:
        self._seconds = set[float]()

    def begin(self) -> None:
        """A statement begins."""
        self._seconds.clear()

    def call(self, seconds: float) -> None:
        """A call for so many seconds."""
        self._seconds.add(max(seconds, 0.0))

    async def settle(self, worker: Worker, most: float) -> None:
        """Wait as long as the statement asks to, at most `most` seconds.

        Raises:
            HalfjoinError: it would take longer than that, or is cancelled.
        """
        seconds = sum(self._seconds)
        if seconds:
            await worker.wait(asyncio.sleep(min(seconds, most)))
        if seconds > most:
            raise HalfjoinError("canceling statement due to statement timeout", code="57014")

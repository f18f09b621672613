"""Advisory locks: numbers that clients lock among themselves, for a session or a transaction. They lock nothing else.

A call is made when its statement is bound, in a thread. What it has to wait for is noted, and the answer of the
statement waits. A call that is bound twice in a statement is made once.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from halfjoin.errors import HalfjoinError
from halfjoin.server.working import Worker

Key = tuple[int, ...]  # one bigint, or two integers


@dataclass(frozen=True, slots=True)
class _Hold:
    """How a lock is held. `local`: until the transaction ends."""

    owner: LocksOfClient
    shared: bool
    local: bool


class AdvisoryLocks:
    """The locks of a server."""

    def __init__(self) -> None:
        self._guard = Lock()
        self._held: dict[Key, Counter[_Hold]] = {}
        self._waiting: dict[LocksOfClient, tuple[Key, bool, asyncio.Event, asyncio.AbstractEventLoop]] = {}

    def take(self, key: Key, hold: _Hold) -> bool:
        """Take a lock if nobody else has it; whether that worked."""
        with self._guard:
            if self._others(key, hold.owner, hold.shared):
                return False
            self._held.setdefault(key, Counter())[hold] += 1
            return True

    def release(self, key: Key, hold: _Hold) -> bool:
        """Release a lock that was taken once; whether it was held."""
        with self._guard:
            held = self._held.get(key, Counter())
            if not held[hold]:
                return False
            held.subtract([hold])
            self._forget_free()
            return True

    def release_all(self, owner: LocksOfClient, *, local: bool) -> None:
        """Release the locks of a client's transaction (`local`), or those of its session."""
        with self._guard:
            for held in self._held.values():
                for hold in [hold for hold in held if hold.owner is owner and hold.local is local]:
                    del held[hold]
            self._forget_free()

    async def wait(self, key: Key, hold: _Hold) -> None:
        """Wait until a lock can be taken, and take it.

        Raises:
            HalfjoinError: a client that has it waits for this one.
        """
        freed = asyncio.Event()
        try:
            while not self.take(key, hold):
                freed.clear()
                with self._guard:
                    self._waiting[hold.owner] = key, hold.shared, freed, asyncio.get_running_loop()
                    if self._waits_for(hold.owner, hold.owner, set()):
                        raise HalfjoinError(
                            "deadlock detected", code="40P01", remedy="take advisory locks in the same order everywhere"
                        )
                    free = not self._others(key, hold.owner, hold.shared)
                if not free:
                    await freed.wait()
        finally:
            with self._guard:
                self._waiting.pop(hold.owner, None)

    def _others(self, key: Key, owner: LocksOfClient, shared: bool) -> set[LocksOfClient]:
        """The other clients whose locks a lock has to wait for."""
        return {hold.owner for hold in self._held.get(key, ())
                if hold.owner is not owner and not (shared and hold.shared)}  # fmt: skip

    def _waits_for(self, one: LocksOfClient, other: LocksOfClient, seen: set[LocksOfClient]) -> bool:
        """Whether a client waits for another, maybe through more of them."""
        if one in seen or one not in self._waiting:
            return False
        seen.add(one)
        key, shared, _, _ = self._waiting[one]
        return any(next is other or self._waits_for(next, other, seen) for next in self._others(key, one, shared))

    def _forget_free(self) -> None:
        """Forget what nobody holds any more, and wake those who wait."""
        self._held = {key: kept for key, held in self._held.items() if (kept := +held)}
        for _, _, freed, loop in self._waiting.values():
            loop.call_soon_threadsafe(freed.set)


class LocksOfClient:
    """The locks of one connection."""

    def __init__(self, locks: AdvisoryLocks) -> None:
        self._locks = locks
        self._made: dict[tuple[str, Key], bool] = {}  # what the calls of the running statement have answered
        self._wanted: list[tuple[Key, _Hold]] = []
        self._any = False

    def begin(self) -> None:
        """A statement begins."""
        self._made.clear()
        self._wanted.clear()

    def call(self, name: str, key: Sequence[int]) -> bool:
        """A call such as `pg_try_advisory_xact_lock_shared(key)`; what those that return something return."""
        asked = name, tuple(key)
        if asked not in self._made:
            self._any = True
            self._made[asked] = self._called(name, tuple(key))
        return self._made[asked]

    def _called(self, name: str, key: Key) -> bool:
        if name == "pg_advisory_unlock_all":
            self._locks.release_all(self, local=False)
            return True
        hold = _Hold(self, name.endswith("_shared"), "_xact_" in name)
        if "unlock" in name:
            return self._locks.release(key, hold)
        if self._locks.take(key, hold):
            return True
        if "_try_" not in name:
            self._wanted.append((key, hold))
        return False

    async def settle(self, worker: Worker, most: float, locking: float | None) -> None:
        """Wait for what the statement has to wait for, at most `most` seconds, and `locking` for each lock.

        Raises:
            HalfjoinError: it took too long, was cancelled, or would last for ever.
        """
        for key, hold in self._wanted:
            try:
                await worker.wait(asyncio.wait_for(self._locks.wait(key, hold), min(most, locking or most)))
            except TimeoutError:
                late, code = ("lock", "55P03") if locking is not None and locking <= most else ("statement", "57014")
                raise HalfjoinError(f"canceling statement due to {late} timeout", code=code) from None

    def end_transaction(self) -> None:
        """Release what was locked for the transaction."""
        if self._any:
            self._locks.release_all(self, local=True)

    def end(self) -> None:
        """Release everything."""
        if self._any:
            self._locks.release_all(self, local=True)
            self._locks.release_all(self, local=False)
            self._any = False

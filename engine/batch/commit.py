"""The commit point: an interrupted call has done nothing before it and everything after it.

Ctrl-C, a MemoryError or any other exception may come between any two steps. So a change has three parts:

1. Prepare: all work that may fail, take memory or take long. Its effects can be undone.
2. Keep: the store writes the change in one step, and can tell afterwards whether it did.
3. Finish: a few assignments of prepared values, each of which can be repeated.

The running change is noted, and finished before the next call does anything: if the store has kept it, part 3 runs
(again), otherwise part 1 is undone. Two interrupts in a row have the same effect as one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from halfjoin.errors import Conflict, HalfjoinError

Step: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """A change that a store is about to keep.

    `commit` keeps it, and raises a HalfjoinError only if it has not kept it. `kept` tells whether it is kept, however
    `commit` ended. `follow` is the store's work after that; it may run again.
    """

    commit: Step
    kept: Callable[[], bool]
    follow: Step


@dataclass(slots=True)
class _UnderWay:
    undo: Step
    prepared: tuple[Entry, Step] | None = None
    kept: bool | None = None  # None: not known


class Alone:
    """What is staged and kept within it has no other change within it. A function of the user's that a view calls and
    a handler of a signal run in the thread that has the lock, so the lock does not keep them out.

    Raises:
        Conflict: a change is under way in this thread.
    """

    def __init__(self) -> None:
        self._entered = False

    def __enter__(self) -> None:
        if self._entered:
            raise Conflict("a change of the engine is under way in this thread, and cannot have another one within it",
                           remedy="a function that a view calls, or a handler of a signal, must not change the engine; "
                           "do it after the call")  # fmt: skip
        self._entered = True

    def __exit__(self, *_: object) -> None:
        self._entered = False


class Commits:
    """The changes of one engine, one at a time. The caller holds the engine's lock."""

    def __init__(self) -> None:
        self._under_way: _UnderWay | None = None
        self.alone = Alone()

    def recover(self) -> None:
        """Repair what an interrupted call left. No other call is running."""
        self.alone = Alone()
        self.finish()

    def carry_out(self, prepare: Callable[[], tuple[Entry, Step]], undo: Step) -> None:
        """Prepare a change, keep it and finish it; or undo the preparation. `undo` may be called twice."""
        change = self._under_way = _UnderWay(undo)
        try:
            change.prepared = prepare()
            try:
                change.prepared[0].commit()
            except HalfjoinError:
                change.kept = False
                raise
            change.kept = True
        finally:
            self.finish()

    def finish(self) -> None:
        """Finish or undo the running change, if there is one."""
        change = self._under_way
        if change is None:
            return
        if change.prepared is None or change.kept is False:
            change.undo()
        else:
            entry, done = change.prepared
            if change.kept or entry.kept():
                change.kept = True
                entry.follow()
                done()
            else:
                change.undo()
        self._under_way = None


def nothing() -> None:
    """A step that does nothing."""


NO_CHANGE = Entry(nothing, lambda: True, nothing)  # a change that keeps nothing

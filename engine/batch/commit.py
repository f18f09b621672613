"""The commit point: before it nothing has happened, after it everything is done, whatever ends a call, and wherever.

Ctrl-C, a MemoryError or any other exception may come between any two steps. So a change has three parts:

1. It is prepared: all that may fail, take memory or take long. What that changes can be undone.
2. The store keeps it, in one step of its own, and can say afterwards whether it has.
3. What follows is done: a few assignments of what was prepared, each of which can be made again.

What is under way is noted, and settled before the next call does anything: the third part is done (again) if the store
has kept the change, and else the first is undone. Two interrupts in a row are no different from one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from halfjoin.errors import HalfjoinError

Step: TypeAlias = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """What a store is about to keep.

    `commit` keeps it, and raises a HalfjoinError only where it has not. `kept` says whether it is kept, however
    `commit` ended. `follow` is what the store has to do then; it may be done again.
    """

    commit: Step
    kept: Callable[[], bool]
    follow: Step


@dataclass(slots=True)
class _UnderWay:
    undo: Step
    prepared: tuple[Entry, Step] | None = None
    kept: bool | None = None  # None: it is not known


class Commits:
    """The changes of one engine, one at a time; the engine's lock is held by whoever calls."""

    def __init__(self) -> None:
        self._under_way: _UnderWay | None = None

    def carry_out(self, prepare: Callable[[], tuple[Entry, Step]], undo: Step) -> None:
        """Prepare a change, keep it, do what follows; or undo what was prepared. `undo` may be called twice."""
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
        """Bring what is under way to its end."""
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
    """A step of a change that has nothing to do there."""


NO_CHANGE = Entry(nothing, lambda: True, nothing)  # of which there is nothing to be kept

"""A delivery to a sink's table: changes of a view, in pieces, so that memory holds one piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from halfjoin.engine.arrange.changes import StoredChanges
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Updates, concat

Closed: TypeAlias = Updates | StoredChanges  # in memory, or read from files and runs on each use


@dataclass(frozen=True, slots=True)
class Delivery:
    """Updates of any times that turn the contents as of below `low` into those as of below `upper`.

    If `whole`, they add up to the new contents, whatever the table has. Iteration gives the updates in pieces, the same
    ones each time. Equal rows may be in several pieces.
    """

    low: int | None
    upper: int
    changes: tuple[Closed, ...]
    whole: bool = False
    note: str | None = None  # goes into the commit

    @property
    def some(self) -> bool:
        """Whether there may be any updates."""
        parts = (one.parts if isinstance(one, StoredChanges) else (one,) for one in self.changes)
        return any(len(part) for found in parts for part in found)

    def __iter__(self) -> Iterator[Updates]:
        waiting: list[Updates] = []
        rows = 0
        for found in self._parts():
            for start in range(0, len(found), limits.PIECE_ROWS):
                waiting.append(found.slice(start, min(start + limits.PIECE_ROWS, len(found))))
                rows += len(waiting[-1])
                if rows >= limits.PIECE_ROWS:
                    yield concat(waiting)
                    waiting, rows = [], 0
        if waiting:
            yield concat(waiting)

    def _parts(self) -> Iterator[Updates]:
        for one in self.changes:
            if isinstance(one, StoredChanges):
                yield from one.pieces()
            else:
                yield one

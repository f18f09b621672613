"""What a partial index has: entries only for the rows that somebody may still look for.

Law of partial indexes. An index may lack the entry of a row that no user of its arrangement wants; never another. So
each index says what it has, and each lookup says what it wants. A lookup that an index cannot serve builds another one.

A lookup of a batch finds rows for changes whose times are at or above `upper`. By the linear law a row and a change
together have the greater of their times. So where a temporal filter is false for a row at all times from `upper` on, it
makes nothing of the two. A lookup that reads history has no such bound: it wants what was there before, too.

Only large indexes are partial, since only they take much memory. A batch's own run never waits for a filter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halfjoin.engine.linear.temporal import AliveFrom, alive_from
from halfjoin.engine.scalar import Scalar, compile, mask_of
from halfjoin.engine.updates.updates import Ints, Mask, Updates, where_true
from halfjoin.planner.wants import EVERY, Wants

LARGE = 1 << 15  # rows; only the index of a run of so many may be partial
_PIECE = 1 << 16  # rows tested at a time


@dataclass(frozen=True, slots=True)
class Partial:
    """What an index has: the rows that some want names, with their temporal formulas as they are from `begins` on."""

    wants: Wants
    begins: int

    def serves(self, wants: Wants, begins: int) -> bool:
        """Whether it has all rows that a lookup wants. The changes that look them up have times at or above `begins`.
        """
        own = [one for one in self.wants if not one.until or self.begins <= begins]
        return all(any(want.within(one) for one in own) for want in wants)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Compiled wants."""

    wants: Wants
    tests: tuple[tuple[tuple[Scalar, ...], tuple[AliveFrom, ...]], ...]  # of each want: conditions, temporal formulas
    columns: tuple[str, ...]  # that they read

    def wanted(self, updates: Updates, asked: Mask, begins: int) -> Mask:
        """The rows that somebody wants, among those `asked` for. Other rows are not tested."""
        found: Mask = np.zeros(len(updates), np.bool_)
        rows = where_true(asked)
        for start in range(0, len(rows), _PIECE):
            piece = rows[start : start + _PIECE]
            found[piece] = self._passing(self._columns(updates, piece), begins)
        return found

    @property
    def expires(self) -> bool:
        """Whether a row that is wanted now may not be wanted later."""
        return any(one.until for one in self.wants)

    def partial(self, begins: int) -> Partial:
        """What an index has that this filter leaves."""
        return Partial(self.wants, begins)

    def _columns(self, updates: Updates, rows: Ints) -> Updates:
        part = updates.select(self.columns)
        first, last = int(rows[0]), int(rows[-1])
        return part.slice(first, last + 1) if last - first + 1 == len(rows) else part.take(rows)

    def _passing(self, part: Updates, begins: int) -> Mask:
        found: Mask = np.zeros(len(part), np.bool_)
        for conditions, formulas in self.tests:
            passing: Mask = np.ones(len(part), np.bool_)
            for scalar in conditions:
                passing &= mask_of(scalar.evaluate(part.columns, len(part)).values)
            for alive in formulas:
                passing &= alive(part, begins)
            found |= passing
        return found


def row_filter(wants: Wants) -> RowFilter | None:
    """The filter for an arrangement whose users want these rows; None if they want all."""
    if EVERY in wants:
        return None
    tests = tuple((tuple(map(compile, one.conditions)), tuple(map(alive_from, one.until))) for one in wants)
    return RowFilter(wants, tests, tuple(sorted(frozenset[str]().union(*(one.columns for one in wants)))))

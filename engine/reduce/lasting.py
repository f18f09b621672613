"""The rows of groups at each of many moments: each row once, with the moments at which it is there.

A group with `n` moments has about `n` rows or more, together the square of that. So functions of whole groups get the
moments in pieces of bounded size, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.sorting import ranks_of
from halfjoin.engine.reduce.words import differ
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Ints, Mask, Updates, where_true


@dataclass(frozen=True, slots=True)
class Lasting:
    """`which` row is there at the moments from `start` on, before `end`, with a `count` above 0; in order of `start`.
    Equal rows are not there together."""

    which: Ints
    start: Ints
    end: Ints
    count: Ints

    def where(self, mask: Mask) -> Lasting:
        """Some of the rows."""
        return Lasting(self.which[mask], self.start[mask], self.end[mask], self.count[mask])

    def updates(self, moments: Moments) -> tuple[Ints, Ints, Ints]:
        """What changes: the number of the entry, the moment, the copies that come or go."""
        every = np.arange(len(self.which))
        goes = where_true(~np.append(moments.was, True)[self.end])  # else the group ends
        return (np.concatenate([every, goes]), np.concatenate([self.start, self.end[goes]]),
                np.concatenate([self.count, -self.count[goes]]))  # fmt: skip

    def sizes(self, moments: int) -> Ints:
        """How many rows are there at each moment."""
        comes, goes = (np.bincount(one, minlength=moments + 1)[:moments] for one in (self.start, self.end))
        found: Ints = np.cumsum(comes - goes)
        return found

    def pieces(self, moments: Moments) -> Iterator[tuple[int, int]]:
        """The first moments and the ends of pieces of about `limits.PIECE_ROWS` rows at moments."""
        return pieces_of(self.sizes(len(moments)))

    def part(self, first: int, after: int) -> Lasting:
        """The rows from one moment on, before another, with the moments of `Moments.part`."""
        there = where_true((self.end > first) & (self.start < after))
        start, end = np.maximum(self.start[there], first), np.minimum(self.end[there], after)
        return Lasting(self.which[there], start - first, end - first, self.count[there])

    def at(self, moments: Moments, first: int, after: int) -> tuple[Ints, Ints, Ints]:
        """The rows that are there from one moment on, before another: which row, the moment, the count. The rows of a
        moment are in the order of their numbers."""
        opens = int(moments.group.searchsorted(moments.group[first]))  # rows of groups before it are gone
        some = slice(*self.start.searchsorted([opens, after]))
        there = where_true(self.end[some] > first) + some.start
        there = there[np.argsort(self.which[there], kind="stable")]
        start = np.maximum(self.start[there], first)
        lengths = np.minimum(self.end[there], after) - start
        moment = np.arange(lengths.sum()) + (start - (lengths.cumsum() - lengths)).repeat(lengths)
        by_moment = np.argsort(moment, kind="stable")
        own = there.repeat(lengths)[by_moment]
        return self.which[own], moment[by_moment], self.count[own]


def pieces_of(rows: Ints) -> Iterator[tuple[int, int]]:
    """The first moments and the ends of pieces of about `limits.PIECE_ROWS`, given the number of rows of each moment.
    """
    ends, first = np.append(0, np.cumsum(rows)), 0
    while first < len(rows):
        after = int(ends.searchsorted(ends[first] + limits.PIECE_ROWS, "right")) - 1
        after = max(after, first + 1)
        yield first, after
        first = after


def lasting(moments: Moments, rows: Updates, group: Ints, starts: Ints) -> Lasting | None:
    """The rows that are there. None: a row has a negative count at some moment.

    `group`: of each row. `starts`: the moment from which on it counts, which is one of its group.
    """
    if not len(rows):
        return Lasting(starts, starts, starts, starts)
    rank = ranks_of(rows.columns, group, moments.groups, ()).row
    order = np.lexsort((starts, rank))
    starts, opening = starts[order], differ([rank[order]], len(order))
    ends = np.append(where_true(moments.was)[1:], len(moments))[group[order]]  # of the group
    ends[:-1] = np.where(opening[1:], ends[:-1], starts[1:])  # or where the next update counts
    running = rows.diff[order].cumsum()
    first = np.maximum.accumulate(np.where(opening, np.arange(len(order)), 0))
    count = running - running[first] + rows.diff[order][first]
    there = where_true((count != 0) & (starts < ends))
    if (count[there] < 0).any():
        return None
    there = there[np.argsort(starts[there], kind="stable")]
    return Lasting(order[there], starts[there], ends[there], count[there])

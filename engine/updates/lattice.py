"""Product times `(batch time, round, ...)`: their order, their join, and when a group must be looked at again.

Many times are columns, one int64 array for each coordinate, the batch time first: `(batch, rounds)` are `len(batch)`
times. Outside loops a time has one coordinate, and one more for each loop around it.

# The law

`a` is at or below `b` if it is so in every coordinate. That is a partial order: (1, 0) and (0, 1) are on neither side
of each other. The join of two times, the least time that both are at or below, is the maximum of each coordinate. The
contents at a time are the sum of all updates at or below it.

So a group that is touched at `a` and has history at `b` must be looked at again at the join of the two: there both are
seen, while at neither is the other. What is written at that time is history too, so it goes on until nothing new comes.
Two ways that are wrong: to look at the touched times alone, which misses (1, 1) after updates at (1, 0) and (0, 1); and
to join in pairs once, which misses the join of three where there are three coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from halfjoin.engine.updates.updates import Ints, Mask, Updates

Times = Sequence[Ints]


def below(left: Times, right: Times) -> Mask:
    """Time by time, whether the left one is at or below the right one; a time is at or below itself. A single time on
    the right stands for as many as there are on the left.

    >>> one, other = [np.array([1, 0, 1]), np.array([0, 0, 2])], [np.array([0, 0, 3]), np.array([1, 0, 2])]
    >>> below(one, other).tolist(), below(other, one).tolist()
    ([False, True, True], [False, True, False])
    """
    return reduce(np.logical_and, (a <= b for a, b in zip(left, right, strict=True)))


def lub(left: Times, right: Times) -> list[Ints]:
    """Time by time, the join: the least time that both are at or below.

    >>> [column.tolist() for column in lub([np.array([1]), np.array([0])], [np.array([0]), np.array([2])])]
    [[1], [2]]
    """
    return [np.maximum(a, b) for a, b in zip(left, right, strict=True)]


def looked_at(
    touched: tuple[Ints, Times], history: tuple[Ints, Times]
) -> tuple[Ints, list[Ints]]:
    """The times at which groups must be looked at, given those at which they are touched and those of their history.

    Both are `(groups, times)`: the number of a group and a time, as often as they come. The result has each pair once,
    by group and then in lexicographic order, which is an order of work: no time comes before one that is below it. A
    group that is not touched is not in it.

    >>> groups, (batches, rounds) = looked_at(
    ...     (np.array([7]), [np.array([5]), np.array([0])]),
    ...     (np.array([7, 7, 8]), [np.array([2, 3, 4]), np.array([1, 2, 9])]),
    ... )
    >>> list(zip(groups.tolist(), batches.tolist(), rounds.tolist()))
    [(7, 5, 0), (7, 5, 1), (7, 5, 2)]
    """
    groups, times = _distinct(*touched)
    # Whatever a touched time and several times of history join to is a join of what it and each one of them join to,
    # and of those many are the same: history that is below the touched time adds nothing.
    found = _joined((groups, times), _distinct(*history))
    groups, times = _distinct(np.concatenate([groups, found[0]]), _laid(times, found[1]))
    # A coordinate of a join comes from one of its times, so joins of as many times as there are coordinates are all.
    together = 1
    while together < len(times):
        groups, times = _distinct(*_joined((groups, times), (groups, times)))
        together *= 2
    return groups, times


def _joined(left: tuple[Ints, Times], right: tuple[Ints, Times]) -> tuple[Ints, list[Ints]]:
    """The joins of each time on the left with each of the same group on the right, whose groups ascend."""
    groups, times = left
    starts, stops = (right[0].searchsorted(groups, side) for side in ("left", "right"))
    counts = stops - starts
    mine = np.repeat(np.arange(len(groups)), counts)
    others = np.arange(len(mine)) + np.repeat(starts - (counts.cumsum() - counts), counts)
    return groups[mine], lub([column[mine] for column in times], [column[others] for column in right[1]])


def _distinct(groups: Ints, times: Times) -> tuple[Ints, list[Ints]]:
    """Each group and time once, in order."""
    order = np.lexsort((*reversed(times), groups))
    columns = [groups[order], *(column[order] for column in times)]
    fresh = np.ones(len(groups), np.bool_)
    fresh[1:] = reduce(np.logical_or, (column[1:] != column[:-1] for column in columns))
    first, *rest = (column[fresh] for column in columns)
    return first, rest


def _laid(first: Times, second: Times) -> list[Ints]:
    return [np.concatenate([a, b]) for a, b in zip(first, second, strict=True)]


def ints(rows: Updates, column: str) -> Ints:
    """A column of integers, such as a round."""
    found: Ints = rows.columns[column].to_numpy()
    return found

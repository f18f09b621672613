"""Aggregates of all rows of a group at each of its moments.

A percentile is the value at a place that follows from the number of rows. Where moments are many, no moment's rows are
put in order. All rows have ranks, and the updates are in order of their moments; so the rows at a moment are what the
first updates of its group add up to. The place of each moment is found bit by bit of the ranks: as many rows as there
are with a 0 in the bit, among the updates up to the moment, tell whether the bit of the rank at the place is 0 or 1.
Then the updates are parted by that bit. That is a few passes over all updates for each bit, whatever the moments
(wavelet matrix: Claude, Navarro, Ordonez 2015).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.reduce.contents import Contents
from halfjoin.engine.reduce.lasting import Lasting
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.ordered import constant_fractions, evaluate, of_sorted
from halfjoin.engine.reduce.sorting import ranks_of
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import mask_of, valid
from halfjoin.engine.updates.updates import Ints, taken, where_true
from halfjoin.planner.group_functions import Ordered
from halfjoin.sql.expr import Column, columns_of


@dataclass(frozen=True)
class OverTime:
    """Values at moments. `args`: the values by their ranks. Updates, in order of their moments, take `count` copies of
    a `rank`; those of moment `i` and of its group before it are at `[first[i], after[i])`."""

    args: tuple[pa.Array, ...]
    rank: Ints
    count: Ints
    first: Ints
    after: Ints

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def sizes(self) -> Ints:
        """The number of values at each moment."""
        ends = np.append(0, self.count.cumsum())
        found: Ints = ends[self.after] - ends[self.first]
        return found

    def position(self, place: Ints) -> Ints:
        """The rank of the value with this number at each moment, from 0; any rank if there are no values."""
        rank, count, first, after = self.rank, self.count, self.first, self.after
        found, left = np.zeros(len(self), np.int64), place
        for shift in reversed(range(len(self.args[0]).bit_length())):
            low = rank >> shift & 1 == 0
            number = np.append(0, low.cumsum())
            copies = np.append(0, np.where(low, count, 0).cumsum())
            below = copies[after] - copies[first]
            high = left >= below
            found += high.astype(np.int64) << shift
            left = np.where(high, left - below, left)
            first, after = (np.where(high, number[-1] + at - number[at], number[at]) for at in (first, after))
            order = np.concatenate([where_true(low), where_true(~low)])
            rank, count = rank[order], count[order]
        return np.minimum(found, max(len(self.args[0]) - 1, 0))


def at_moments(part: Ordered, contents: Contents, registry: Registry) -> pa.Array:
    """The value of an aggregate at each moment. Moments for which it fails become errors of the contents."""
    if contents.lasting is not None and part.function.startswith("percentile") and not columns_of(part.args[0]):
        values = _over_time(part, contents.moments, contents.rows.columns, contents.lasting)
        try:
            return of_sorted(part, values, constant_fractions(part))
        except Failed:  # the other way finds what is an error
            pass
    return contents.values(partial(evaluate, part, registry=registry))


def _over_time(part: Ordered, moments: Moments, columns: Mapping[str, pa.Array], lasting: Lasting) -> OverTime:
    """The values that count, of rows that last."""
    subject = part.order[0].expr
    assert isinstance(subject, Column)
    counts = valid(columns[subject.name])
    if part.condition is not None:
        counts &= mask_of(columns[part.condition.name])
    some = lasting.where(counts[lasting.which])
    columns = taken(columns, some.which)
    rank = ranks_of(columns, moments.group[some.start], moments.groups, part.order).row
    of_rank = np.empty(int(rank.max(initial=-1)) + 1, np.int64)  # a row of each rank
    of_rank[rank] = np.arange(len(rank))
    which, moment, count = some.updates(moments)
    by_moment = np.argsort(moment, kind="stable")
    moment = moment[by_moment]
    first = moment.searchsorted(where_true(moments.was))[moments.group]
    after = moment.searchsorted(np.arange(len(moments)), "right")
    values = taken({subject.name: columns[subject.name]}, of_rank)[subject.name]
    return OverTime((values,), rank[which][by_moment], count[by_moment], first, after)

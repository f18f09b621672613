"""What is at hand of partitions around their changes, and which part of it the changes reach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from halfjoin.engine.reduce.extents import Extents
from halfjoin.engine.reduce.groups import Groups, starts_of
from halfjoin.engine.reduce.partitions import Partitions
from halfjoin.engine.reduce.reading import Entries
from halfjoin.engine.reduce.sorting import ranks_of
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.updates import MINIMUM, Ints, Mask, Updates, concat, constant
from halfjoin.planner.reach import Reach
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import SortKey


class Sight:
    """All rows at hand, ranked: the changed ones, and the entries read around them.

    Equal rows of a group have the same rank; the ranks ascend from the first row of the first group on. All rows of a
    group are at hand between two *bounds*: the runs have more rows only at their first and last entries that were read,
    and outside them. With `reach.peers`, rows that tie stay together.

    Of each group: `start`, `end`: the ranks of its region, which is all rows at hand without the rows beside it.
    `before`, `after`: the ranks of the rows beside it that its results continue from; -1: there are none. `begins`,
    `ends`: the region begins, or ends, with the group. `head`, `tail`: the copies at its begin and its end that are no
    changed rows, and on which no other results depend than those of the region. `enough_before`, `enough_after`:
    whether there are enough rows at hand before the changes, and after them; if both, the group is `ready`. `wrong`: it
    must be looked up whole, as a row has a negative count, or a bound of a frame is out of range.
    """

    def __init__(
        self, order: Sequence[SortKey], reach: Reach, changed: Updates, group: Ints, entries: Entries, groups: int
    ) -> None:
        names, self.entries = list(changed.columns), entries
        self._every = concat([changed, entries.rows.select(names)])
        number = np.concatenate([group, entries.probe])
        ranks = ranks_of(self._every.columns, number, groups, order)
        self._own, self._of_entries = ranks.row[: len(group)], ranks.row[len(group) :]
        total = int(ranks.row.max()) + 1
        self._first = np.empty(total, np.int64)  # the first row of each rank
        self._first[ranks.row[::-1]] = np.arange(len(number))[::-1]
        self._group = number[self._first]
        self._count = np.zeros(total, np.int64)
        np.add.at(self._count, self._of_entries[entries.mine], entries.rows.diff[entries.mine])
        opens = starts_of(self._group, groups)
        low, high = opens[:-1].copy(), opens[1:].copy()  # all rows from `low` to before `high` are at hand
        np.maximum.at(low, entries.probe[entries.first], self._of_entries[entries.first] + 1)
        np.minimum.at(high, entries.probe[entries.last], self._of_entries[entries.last])
        self.begins, self.ends = np.ones((2, groups), np.bool_)
        self.begins[entries.probe[entries.first]] = self.ends[entries.probe[entries.last]] = False
        first, last = opens[1:].copy(), opens[:-1].copy()  # of the changed rows; and the rank after the last one
        np.minimum.at(first, group, self._own)
        np.maximum.at(last, group, self._own + 1)
        new = np.ones(total, np.bool_)
        if reach.peers:
            new[1:] = np.diff(ranks.peers[self._first]) > 0
        exprs = [*(key.expr for key in order), *(expr for expr, *_ in reach.given)]
        read = dict.fromkeys(expr.name for expr in exprs if isinstance(expr, Column))
        seen = Groups(self._every.select(read).take(self._first).columns, constant(1, total), opens)
        self.wrong = np.zeros(groups, np.bool_)
        self.before, self.after = np.full((2, groups), -1)
        self.head, self.tail = np.zeros((2, groups), np.int64)
        try:
            extents = Extents(reach, Partitions(seen, np.arange(total), opens, new, tuple(order)), self._count)
        except Failed:  # a lookup finds in which group
            self.wrong[:] = True
            self.start, self.end = first, last
            self.ready = self.enough_before = self.enough_after = ~self.wrong
            return
        low, high = np.where(self.begins, low, extents.after(low)), np.where(self.ends, high, extents.first(high))
        within = np.arange(total)
        within = (low[self._group] <= within) & (within < high[self._group])
        self.wrong[self._group[within & (self._count < 0)]] = True
        copies, (second, beyond) = extents.copies, extents.inner(low, high)
        self.start = np.where(self.begins | (not reach.running), low, second)
        self.end = np.where(self.ends | (not reach.remaining), high, beyond)
        if reach.running:
            self.before = np.where(self.begins, -1, copies.searchsorted(copies[self.start]) - 1)
        if reach.remaining:
            self.after = np.where(self.ends, -1, copies.searchsorted(copies[self.end], "right") - 1)
        early, late = extents.between(self.start, self.end)
        self.enough_before = self.begins | (early <= extents.first(first))
        self.enough_after = self.ends | (late >= extents.after(last))
        self.head, self.tail = copies[early] - copies[self.start], copies[self.end] - copies[late]
        self.ready = self.enough_before & self.enough_after & ~self.wrong

    def rows(self, groups: Mask) -> tuple[Updates, Ints]:
        """The rows of the regions of some groups, and their groups: those that were there have the time `MINIMUM`."""
        ranks = np.arange(len(self._count))
        inside = (self.start[self._group] <= ranks) & (ranks < self.end[self._group]) & groups[self._group]
        there = np.flatnonzero(inside & (self._count > 0))
        was = self._every.take(self._first[there])
        new = np.flatnonzero(groups[self._group[self._own]])
        rows = concat([Updates(was.columns, constant(MINIMUM, len(was)), self._count[there]), self._every.take(new)])
        return rows, np.concatenate([self._group[there], self._group[self._own[new]]])

    def entries_of(self, ranks: Ints) -> Ints:
        """The entries of rows with these ranks, one for each group."""
        entries = self.entries
        return np.flatnonzero(entries.mine & (self._of_entries == ranks[entries.probe]))

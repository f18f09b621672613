"""What is at hand of partitions around their changes, and which part of it the changes reach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from halfjoin.engine.reduce.extents import Extents
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.partitions import Partitions
from halfjoin.engine.reduce.reading import Entries
from halfjoin.engine.reduce.sorting import ranks_of
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.updates import MINIMUM, Ints, Mask, Updates, concat, constant, where_true
from halfjoin.planner.reach import Reach
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import SortKey


class Sight:
    """All rows at hand, ranked: the changed ones, and the entries read around them.

    Equal rows of a group have the same rank; the ranks ascend from the first row of the first group on. All rows of a
    group are at hand between two *bounds*: the runs have more rows only at their first and last entries that were read,
    and outside them. With `reach.peers`, rows that tie stay together.

    Of each group: `enough_before`, `enough_after`: whether there are enough rows at hand before the changes, and after
    them. If so, `start` and `end` are the ranks of its region. `ends`: the region ends with the group. `before`: the
    rank of the row that its results continue from; -1: there is none. `wrong`: it must be looked up whole, as a row has
    a negative count, or a bound of a frame is out of range.
    """

    def __init__(
        self, order: Sequence[SortKey], reach: Reach, changed: Updates, group: Ints, entries: Entries, groups: int
    ) -> None:
        names, self._entries = list(changed.columns), entries
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
        begins = self._group.searchsorted(np.arange(groups + 1))
        low, high = begins[:-1].copy(), begins[1:].copy()  # all rows from `low` to before `high` are at hand
        np.maximum.at(low, entries.probe[entries.first], self._of_entries[entries.first] + 1)
        np.minimum.at(high, entries.probe[entries.last], self._of_entries[entries.last])
        begin, self.ends = np.ones((2, groups), np.bool_)
        begin[entries.probe[entries.first]] = self.ends[entries.probe[entries.last]] = False
        start, end = begins[1:].copy(), begins[:-1].copy()  # of the changed rows
        np.minimum.at(start, group, self._own)
        np.maximum.at(end, group, self._own + 1)
        new = np.ones(total, np.bool_)
        if reach.peers:
            new[1:] = np.diff(ranks.peers[self._first]) > 0
        names = [key.expr.name for key in order if isinstance(key.expr, Column)]
        sorted_by = Groups(self._every.select(names).take(self._first).columns, constant(1, total), begins)
        self.wrong = np.zeros(groups, np.bool_)
        self.before = np.full(groups, -1)
        try:
            extents = Extents(reach, Partitions(sorted_by, np.arange(total), begins, new, tuple(order)), self._count)
        except Failed:  # a lookup finds in which group
            self.wrong[:] = True
            self.start, self.end = start, end
            self.ready = self.enough_before = self.enough_after = ~self.wrong
            return
        low, high = np.where(begin, low, extents.after(low)), np.where(self.ends, high, extents.first(high))
        within = np.arange(total)
        within = (low[self._group] <= within) & (within < high[self._group])
        self.wrong[self._group[within & (self._count < 0)]] = True
        start, end = extents.seen(*extents.touched(extents.first(start), extents.after(end)))
        copies = extents.copies
        behind = copies[high] - copies[np.minimum(end, high)]
        self.enough_before = begin | (low <= start)
        self.enough_after = self.ends | ((end <= high) & (behind >= reach.running))
        self.start, self.end = np.maximum(start, low), high
        if reach.running:
            there = copies[self.start] > copies[low]
            self.before = np.where(there, copies.searchsorted(copies[self.start]) - 1, -1)
            self.enough_before &= there | begin
        self.ready = self.enough_before & self.enough_after & ~self.wrong

    def rows(self, groups: Mask) -> tuple[Updates, Ints]:
        """The rows of the regions of some groups, and their groups: those that were there have the time `MINIMUM`."""
        ranks = np.arange(len(self._count))
        inside = (self.start[self._group] <= ranks) & (ranks < self.end[self._group]) & groups[self._group]
        there = where_true(inside & (self._count > 0))
        was = self._every.take(self._first[there])
        new = where_true(groups[self._group[self._own]])
        rows = concat([Updates(was.columns, constant(MINIMUM, len(was)), self._count[there]), self._every.take(new)])
        return rows, np.concatenate([self._group[there], self._group[self._own[new]]])

    @property
    def befores(self) -> Ints:
        """The entries of the rows that the regions continue from."""
        entries = self._entries
        return where_true(entries.mine & (self._of_entries == self.before[entries.probe]))

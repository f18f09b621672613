"""Where groups change: a group's changed rows are divided into *places* far from each other, which are read apart.

Of a partition of a million rows, of which the first and the last one change, two places of a few rows are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from halfjoin.engine.reduce.reading import Begins, Entries, Reading
from halfjoin.engine.reduce.sorting import ranks_of
from halfjoin.engine.updates.updates import Ints, Mask, Updates
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import SortKey


@dataclass(frozen=True, slots=True)
class Places:
    """Places in order of their groups, and of the rows of a group. `reading`: of the group of each place.

    `row`: the place of each changed row. `first`, `last`: in each run, the entries where the first changed row of each
    place would stand, and the last one, or a few entries before. `back`, `ahead`: as many entries are read before the
    first and after the last.
    """

    group: Ints
    reading: Reading
    row: Ints
    first: Begins
    last: Begins
    back: Ints
    ahead: Ints

    def __len__(self) -> int:
        """The number of places."""
        return len(self.group)

    @classmethod
    def of(
        cls, changed: Updates, group: Ints, reading: Reading, order: Sequence[SortKey], *, peers: bool, margin: int,
        to_first: Mask, to_last: Mask,
    ) -> Places:  # fmt: skip
        """Each changed row is a place, with a margin on both sides; rows with `peers` are one. `reading`: of all
        groups.

        A group with so many changed rows that the margins are as long as the group is one place. So are the groups of
        which all rows up to the first one, or to the last one, will be read.
        """
        sizes = reading.sizes
        ranks = ranks_of(changed.columns, group, len(sizes), order)
        rank = ranks.peers if peers else ranks.row
        by_rank = np.argsort(rank, kind="stable")
        new = np.append(True, np.diff(rank[by_rank]) > 0)
        spots, spot = by_rank[new], np.cumsum(new) - 1  # a row of each rank; and the rank's number
        of_spot = group[spots]
        split = (np.bincount(of_spot, minlength=len(sizes)) * 2 * margin < sizes) & ~to_first & ~to_last
        opens = np.append(True, np.diff(of_spot) > 0) | split[of_spot]
        begin = np.flatnonzero(opens)
        end = np.append(begin[1:], len(spots)) - 1
        row = np.empty(len(group), np.int64)
        row[by_rank] = (np.cumsum(opens) - 1)[spot]
        longer = end > begin
        asked = spots[np.concatenate([begin, end[longer]])]
        names = [key.expr.name for key in order if isinstance(key.expr, Column)] if peers else list(changed.columns)
        found = reading.of(group[asked]).near(changed.select(names).take(asked).columns)
        first = [one[: len(begin)] for one in found]
        last = [one.copy() for one in first]
        for whole, one in zip(found, last, strict=True):
            one[longer] = whole[len(begin) :]
        own = of_spot[begin]
        back, ahead = (np.where(whole[own], sizes[own], margin) for whole in (to_first, to_last))
        return cls(own, reading.of(own), row, first, last, back, ahead)

    def apart(self) -> Places:
        """The places, without rows in common: those that would have some are one."""
        begins, ends = self.ends()
        apart = self.group[1:] != self.group[:-1]
        for begin, end in zip(begins, ends, strict=True):  # if they are apart in one run, there are rows between them
            some = begin < end
            apart |= (end[:-1] <= begin[1:]) & some[:-1] & some[1:]
        if apart.all():
            return self
        first, last = np.flatnonzero(np.append(True, apart)), np.flatnonzero(np.append(apart, True))
        number = np.cumsum(np.append(0, apart))
        back, ahead = (np.maximum.reduceat(count, first) for count in (self.back, self.ahead))
        return Places(self.group[first], self.reading.of(first), number[self.row], [one[first] for one in self.first],
                      [one[last] for one in self.last], back, ahead).apart()  # fmt: skip

    def ends(self) -> tuple[Begins, Begins]:
        """The entries of each run from which on each place is read, and up to which one."""
        return self.reading.within(self.first, self.last, self.back, self.ahead)

    def entries(self, before: int, names: Sequence[str]) -> Entries:
        """The rows of the places."""
        return self.reading.between(*self.ends(), before, names=names, ordered=False)

    def grown(self, back: Mask, ahead: Mask, times: int) -> Places:
        """Places that are so many times as long before the first changed row, and after the last one."""
        return replace(self, back=np.where(back, self.back * times, self.back),
                       ahead=np.where(ahead, self.ahead * times, self.ahead))  # fmt: skip

    def only(self, kept: Mask) -> tuple[Places, Mask]:
        """Some of the places, and which of the changed rows are in them."""
        some, rows = np.flatnonzero(kept), kept[self.row]
        number = np.cumsum(kept) - 1
        return Places(self.group[some], self.reading.of(some), number[self.row[rows]],
                      [one[some] for one in self.first], [one[some] for one in self.last],
                      self.back[some], self.ahead[some]), rows  # fmt: skip

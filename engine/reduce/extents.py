"""How far reaches go among the rows at hand of a few partitions: in ranks, which number their rows in order.

Where too few rows are at hand on one side, a reach goes beyond those.
"""

from __future__ import annotations

import numpy as np

from halfjoin.engine.reduce.frames import spans
from halfjoin.engine.reduce.partitions import Partitions
from halfjoin.engine.updates.updates import Ints
from halfjoin.planner.reach import Reach

_MANY = 1 << 40  # more copies than any reach; counts are cut there, so that their sums stay small


class Extents:
    """The reach of ranks. `rows`: one of each rank. `count`: its copies that are there.

    `copies`: the number of copies before each rank, and at last of all.

    Raises:
        Failed: a bound of a frame is out of range.
    """

    def __init__(self, reach: Reach, rows: Partitions, count: Ints) -> None:
        self._reach, self._rows = reach, rows
        self.copies = np.append(0, np.cumsum(np.clip(count, 0, _MANY)))
        there = np.zeros(len(rows), np.bool_)
        there[rows.peer_starts[1:] - 1] = np.add.reduceat(count > 0, rows.peer_starts[:-1], dtype=np.int64) > 0
        self._groups = np.append(0, np.cumsum(there))  # the groups of peers that are there and end before each rank
        self._frames = [spans(frame, rows).pieces[0] for frame in reach.ranges]

    def first(self, at: Ints) -> Ints:
        """The first peer of each rank."""
        return np.append(self._rows.first_peer, len(self._rows))[at]

    def after(self, at: Ints) -> Ints:
        """The end of the peers of the rank before."""
        return np.append(0, self._rows.peer_end)[at]

    def touched(self, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """From which rank up to which one other results depend on the rows from `start` to `end`, in each partition.

        The starts and the ends of frames ascend with the ranks.
        """
        reach, number, begins = self._reach, self._rows.numbers, self._rows.starts
        starts, ends = [self._back(start, reach.after, reach.groups[1])], [self._on(end, reach.before, reach.groups[0])]
        for opens, closes in self._frames:
            starts.append(begins[:-1] + np.bincount(number[closes <= start[number]], minlength=len(start)))
            ends.append(begins[:-1] + np.bincount(number[opens < end[number]], minlength=len(end)))
        return self._within(np.minimum.reduce([start, *starts]), np.maximum.reduce([end, *ends]))

    def seen(self, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """From which rank up to which one the rows are that results from `start` to `end` depend on; with frames, one
        more on both sides, which shows that there are not more of them."""
        reach, starts, ends = self._reach, [start], [end]
        starts.append(self._back(start, reach.before, reach.groups[0]))
        ends.append(self._on(end, reach.after, reach.groups[1]))
        for opens, closes in self._frames:
            starts.append(np.minimum(start, opens[start]) - 1)
            ends.append(np.maximum(end, closes[end - 1]) + 1)
        return self._within(np.minimum.reduce(starts), np.maximum.reduce(ends))

    def _back(self, start: Ints, rows: int, groups: int) -> Ints:
        """The last ranks from which on there are as many rows, and as many groups of peers, before `start`."""
        places = (kept.searchsorted(kept[start] - count, "right") - 1
                  for kept, count in ((self.copies, rows), (self._groups, groups)))  # fmt: skip
        return np.minimum(*places)

    def _on(self, end: Ints, rows: int, groups: int) -> Ints:
        """The first ranks up to which there are as many rows, and as many groups of peers, from `end` on."""
        places = (kept.searchsorted(kept[end] + count)
                  for kept, count in ((self.copies, rows), (self._groups, groups)))  # fmt: skip
        return np.maximum(*places)

    def _within(self, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """The ranks moved into the partition, and to the ends of peers."""
        begins = self._rows.starts
        return self.first(np.maximum(start, begins[:-1])), self.after(np.minimum(end, begins[1:]))

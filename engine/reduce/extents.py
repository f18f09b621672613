"""How far reaches go among the rows at hand of a few partitions: in ranks, which number their rows in order.

Where too few rows are at hand on one side, a reach goes beyond those.
"""

from __future__ import annotations

import numpy as np

from halfjoin.engine.reduce.frames import spans
from halfjoin.engine.reduce.partitions import Partitions
from halfjoin.engine.scalar.values import valid
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
        there = np.clip(count, 0, _MANY)
        self.copies = np.append(0, np.cumsum(there))
        some = np.zeros(len(rows), np.bool_)
        some[rows.peer_starts[1:] - 1] = np.add.reduceat(count > 0, rows.peer_starts[:-1], dtype=np.int64) > 0
        groups = np.append(0, np.cumsum(some))  # the groups of peers that are there and end before each rank
        self._counted = [(self.copies, reach.before, reach.after), (groups, *reach.groups)]
        for expr, before, after in reach.given:
            given = np.append(0, np.cumsum(there * valid(rows.values(expr))))
            self._counted.append((given, before, after))
        self._frames = [spans(frame, rows).pieces[0] for frame in reach.ranges]

    def first(self, at: Ints) -> Ints:
        """The first peer of each rank."""
        return np.append(self._rows.first_peer, len(self._rows))[at]

    def after(self, at: Ints) -> Ints:
        """The end of the peers of the rank before."""
        return np.append(0, self._rows.peer_end)[at]

    def inner(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """The ranks between `low` and `high` without the first row that is there, and without the last one."""
        kept = self.copies
        start, end = kept.searchsorted(kept[low] + 1), kept.searchsorted(kept[high] - 1, "right") - 1
        return self._within(end, start)[::-1]

    def between(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """If the rows from `low` to `high` are at hand: the ranks between which rows may change, so that no result that
        depends on them depends on rows that are not at hand."""
        seeing_more, ending = self._dependent(high, low)
        end, start = self._needed(seeing_more, ending)
        return start, end

    def _dependent(self, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """From which rank on results depend on rows from `start` on, and up to which one on those before `end`.

        The starts and the ends of frames ascend with the ranks.
        """
        number, begins = self._rows.numbers, self._rows.starts[:-1]
        starts = [start, *(_back(kept, start, after) for kept, _, after in self._counted)]
        ends = [end, *(_on(kept, end, before) for kept, before, _ in self._counted)]
        for opens, closes in self._frames:
            starts.append(begins + np.bincount(number[closes <= start[number]], minlength=len(start)))
            ends.append(begins + np.bincount(number[opens < end[number]], minlength=len(end)))
        return self._within(np.minimum.reduce(starts), np.maximum.reduce(ends))

    def _needed(self, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """From which rank on the rows are that results from `start` on depend on, and up to which one those that
        results before `end` depend on."""
        starts = [start, *(_back(kept, start, before) for kept, before, _ in self._counted)]
        ends = [end, *(_on(kept, end, after) for kept, _, after in self._counted)]
        for opens, closes in self._frames:
            starts.append(np.append(opens, len(opens))[start])
            ends.append(np.append(0, closes)[end])
        return self._within(np.minimum.reduce(starts), np.maximum.reduce(ends))

    def _within(self, start: Ints, end: Ints) -> tuple[Ints, Ints]:
        """The ranks moved into the partition, and to the ends of peers."""
        begins = self._rows.starts
        return self.first(np.maximum(start, begins[:-1])), self.after(np.minimum(end, begins[1:]))


def _back(kept: Ints, start: Ints, count: int) -> Ints:
    """The last ranks from which on there are so many before `start`. `kept`: how many there are before each rank."""
    return kept.searchsorted(kept[start] - count, "right") - 1


def _on(kept: Ints, end: Ints, count: int) -> Ints:
    """The first ranks up to which there are so many from `end` on."""
    return kept.searchsorted(kept[end] + count)

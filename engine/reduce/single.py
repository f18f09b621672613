"""The window around the place of one group, in Python's numbers: the same rows as `around` finds, and fewer calls.

The common batch changes a row or two of one large group. Then numpy's price for a call, paid for each step of an
arithmetic of many groups, would be most of the price of the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce.bisection import Beside
from halfjoin.engine.updates.updates import MINIMUM, Ints, Updates, gather, indices_of

FEW = 16  # updates


@dataclass(frozen=True, slots=True)
class Changed:
    """The updates of a group, in order of their moments: their keys, as in `Beside`; their times and diffs; and how
    many of them belong to the group's first moment."""

    keys: Sequence[Any]
    time: Sequence[int]
    diff: Sequence[int]
    opening: int


class Window:
    """What is read of a group, by the keys of values. `copies`: of each value between the edges `low` and `high`, which
    are None if nothing is outside. At an edge, the copies are of all rows outside, too; there are `below` and `above`
    so many."""

    def __init__(self, asked: Any, runs: Sequence[Beside], total: int) -> None:
        """`asked`: the key of the value that the runs were searched for. `total`: the rows of the group."""
        self.low = max([run.keys[0] for run in runs if run.more_before], default=None)
        self.high = min([run.keys[-1] for run in runs if run.more_behind], default=None)
        ahead, own = sum([run.ahead for run in runs]), sum([run.own for run in runs])
        self.copies: dict[Any, int] = {asked: own}
        self.total, self.below, self.above = total, ahead, total - ahead - own
        for run in runs:
            for number, (key, weight) in enumerate(zip(run.keys, run.weights, strict=True)):
                if number < run.back:
                    if self.low is not None and key <= self.low:
                        continue
                    self.below -= weight
                else:
                    if self.high is not None and key >= self.high:
                        continue
                    self.above -= weight
                self.copies[key] = self.copies.get(key, 0) + weight
        if self.low is not None:
            self.copies[self.low] = self.copies.get(self.low, 0) + self.below
        if self.high is not None:
            self.copies[self.high] = self.copies.get(self.high, 0) + self.above

    def at(self, changed: Changed) -> list[tuple[int, int, int]]:
        """The rows of the group, below the lower edge, and at or above the upper edge: before and after each update."""
        size, below, above = self.total, self.below, self.above
        found = [(size, below, above)]
        for key, diff in zip(changed.keys, changed.diff, strict=True):
            size += diff
            below += diff if self.low is not None and key <= self.low else 0
            above += diff if self.high is not None and key >= self.high else 0
            found.append((size, below, above))
        return found

    def rows(self, changed: Changed) -> list[tuple[Any, int, int]] | None:
        """The keys, times and diffs of the rows, in order. None if a row has a negative count before the updates of the
        first moment, or after them."""
        if min(self.copies.values()) < 0:
            return None
        shown = [self._shown(key) for key in changed.keys]
        for key, diff in zip(shown[: changed.opening], changed.diff, strict=False):
            self.copies[key] = self.copies.get(key, 0) + diff
        if min(self.copies.values()) < 0:
            return None
        later = slice(changed.opening, None)
        rows = [(key, MINIMUM, copies) for key, copies in self.copies.items() if copies]
        rows += zip(shown[later], changed.time[later], changed.diff[later], strict=True)
        return sorted(rows, key=lambda row: row[0])

    def _shown(self, key: Any) -> Any:
        """The key, moved to an edge if it is outside."""
        if self.low is not None and key < self.low:
            return self.low
        return self.high if self.high is not None and key > self.high else key


def updates_of(name: str, rows: Sequence[tuple[Any, int, int]], values: Sequence[pa.Array], keys: list[Any]) -> Updates:
    """The rows as updates of a column. `values` has, one after the other, the values of the `keys`."""
    places = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
    found = indices_of(_ints([places[key] for key, _, _ in rows]))
    columns = {name: gather(pa.concat_arrays(values), found)}
    return Updates(columns, _ints([time for _, time, _ in rows]), _ints([diff for _, _, diff in rows]))


def _ints(numbers: list[int]) -> Ints:
    return np.array(numbers, np.int64)

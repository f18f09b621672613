"""An order index: the live rows of a run, group after group, and each group's rows in an order. 4 bytes per entry.

It has the same groups at the same places as the index of its arrangement. So the first rows of a group are the first
entries of its range, and a search by halves finds any row. One row is compared with another by all their values, so
rows that tie in the sort keys are in order, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from halfjoin.engine.arrange.index import RowNumbers
from halfjoin.engine.updates.updates import Ints, Updates
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.relation import SortKey

# The positions of rows in their final order, given the rows group after group, and where the groups start.
Sort = Callable[[Updates, Ints], Ints]


@dataclass(frozen=True, slots=True)
class OrderKey:
    """Names an order: the groups of an arrangement, by sort keys, then by columns in this order."""

    arrangement: ArrangementKey
    order: tuple[SortKey, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """The rows of a run in an order. `adds`: none of them has a negative diff."""

    rows: RowNumbers
    adds: bool

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.rows.nbytes


def order_of(key: OrderKey, updates: Updates, groups: Ints, live: RowNumbers, diffs: Ints, sort: Sort) -> Order:
    """Put the live rows in order. `groups` (ascending codes) and `diffs` are those of the live rows."""
    if not len(live):
        return Order(live, adds=True)
    starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1], [True]]))
    positions = sort(updates.select(key.columns).take(live), starts)
    return Order(live[positions], adds=not bool((diffs < 0).any()))

"""An order index: the live rows of a run, group after group, and each group's rows in an order. 4 bytes per entry.

It has the same groups at the same places as the index of its arrangement. So the first rows of a group are the first
entries of its range, and a search by halves finds any row. One row is compared with another by all their values, so
rows that tie in the sort keys are in order, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from halfjoin.engine.arrange.index import RowNumbers
from halfjoin.engine.updates.codes import same
from halfjoin.engine.updates.updates import Ints, Mask, Updates, indices_of, where_true
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import SortKey

# The positions of rows in their final order, given the rows group after group, and where the groups start.
Sort = Callable[[Updates, Ints], Ints]


@dataclass(frozen=True, slots=True)
class OrderKey:
    """Names an order: the groups of an arrangement, by sort keys, then by columns in this order."""

    arrangement: ArrangementKey
    order: tuple[SortKey, ...]
    columns: tuple[str, ...]
    _hash: int = field(init=False, repr=False, compare=False)  # of all the rest, once: each lookup asks for it

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.arrangement, self.order, self.columns)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return OrderKey, (self.arrangement, self.order, self.columns)  # hashes differ by process


@dataclass(frozen=True, slots=True)
class Order:
    """The rows of a run in an order. `adds`: none of them has a negative diff. `whole`: rows of one range have one key.

    `sums`: the sum of the diffs ahead of each entry, and of all; None if each diff is 1.
    """

    rows: RowNumbers
    adds: bool = True
    whole: bool = True
    sums: Ints | None = None

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.rows.nbytes + (0 if self.sums is None else self.sums.nbytes)


def order_of(
    key: OrderKey, updates: Updates, groups: Ints, live: RowNumbers, diffs: Ints, sort: Sort, *, exact: bool
) -> Order:
    """Put the live rows in order. `groups` (ascending codes) and `diffs` are those of the live rows. `exact`: equal
    codes mean equal keys."""
    if not len(live):
        return Order(live)
    new = groups[1:] != groups[:-1]
    starts = where_true(np.concatenate([[True], new, [True]]))
    positions = sort(updates.select(key.columns).take(live), starts)
    sums = None if bool((diffs == 1).all()) else np.concatenate([[0], diffs[positions].cumsum()])
    whole = exact or _are_whole(key.arrangement, updates, live, new)
    return Order(live[positions], not bool((diffs < 0).any()), whole, sums)


def _are_whole(key: ArrangementKey, updates: Updates, live: RowNumbers, new: Mask) -> bool:
    """Whether neighbours with the same code have the same key. Only keys that are columns are compared."""
    one, other = (indices_of(live[at][~new]) for at in (slice(1, None), slice(None, -1)))
    for expr in key.keys:
        if not isinstance(expr, Column):
            return False
        column = updates.columns[expr.name]
        if not bool(same(column.take(one), column.take(other)).all()):
            return False
    return True

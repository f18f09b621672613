"""The partitions of a window: the rows in order, one for each copy, and where partitions and peers begin and end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce.groups import Groups, sums
from halfjoin.engine.reduce.sorting import sort
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.updates import Ints, Mask, gather, indices_of, where_true
from halfjoin.sql.expr import Expr, columns_of
from halfjoin.sql.relation import SortKey
from halfjoin.sql.types import RESULT_ROWS

_TOO_MANY = f"a window over more than {RESULT_ROWS:,} copies of rows"


@dataclass(frozen=True)
class Partitions:
    """One row for each copy of a row of `groups`, partition after partition, in the window's order.

    `source`: the row's position in `groups`. `starts`: where the partitions start, and at last the number of rows.
    `new`: whether a row is the first of its peers, which tie in the window's ORDER BY. All other properties have one
    number for each row. Positions count from the first row of the first partition; an end is the position after the
    last row.
    """

    groups: Groups
    source: Ints
    starts: Ints
    new: Mask
    order: tuple[SortKey, ...]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.source)

    def reading(self, *exprs: Expr) -> Groups:
        """The rows, with only the columns that the expressions read."""
        indices = indices_of(self.source)
        names = sorted({name for expr in exprs for name in columns_of(expr)})
        columns = {name: gather(self.groups.columns[name], indices) for name in names}
        return Groups(columns, np.ones(len(self), np.int64), self.starts)

    def values(self, expr: Expr) -> pa.Array:
        """The values of a column or a constant."""
        return self.reading(expr).values(expr)

    @cached_property
    def numbers(self) -> Ints:
        """The number of the row's partition."""
        return np.repeat(np.arange(len(self.groups)), np.diff(self.starts))

    @cached_property
    def place(self) -> Ints:
        """The position of the row itself."""
        return np.arange(len(self))

    @cached_property
    def first(self) -> Ints:
        """The position of the partition's first row."""
        return self.starts[:-1][self.numbers]

    @cached_property
    def end(self) -> Ints:
        """The end of the partition."""
        return self.starts[1:][self.numbers]

    @cached_property
    def peers(self) -> Ints:
        """The number of the row's group of peers, counted through all partitions."""
        return np.cumsum(self.new) - 1

    @cached_property
    def peer_starts(self) -> Ints:
        """The position of the first row of each group of peers, and at last the number of rows."""
        return np.append(where_true(self.new), len(self))

    @cached_property
    def first_peer(self) -> Ints:
        """The position of the row's first peer."""
        return self.peer_starts[self.peers]

    @cached_property
    def peer_end(self) -> Ints:
        """The end of the row's peers."""
        return self.peer_starts[self.peers + 1]


def partitions(groups: Groups, order: Sequence[SortKey]) -> Partitions:
    """The rows of the groups in order, each as often as it is there.

    Raises:
        Failed: a partition has too many copies of rows; the mask marks the groups.
    """
    copies = sums(np.minimum(groups.count - 1, RESULT_ROWS + 1), groups.starts)
    if (copies > RESULT_ROWS).any():
        raise Failed(_TOO_MANY, copies > RESULT_ROWS)
    found = sort(groups, order)
    count = groups.count[found.positions]
    source, firsts = np.repeat(found.positions, count), np.cumsum(count) - count
    new = np.zeros(len(source), np.bool_)
    new[firsts[found.new]] = True
    starts = np.append(firsts, len(source))[groups.starts]
    return Partitions(groups, source, starts, new, tuple(order))

"""Rows of many groups side by side, which is what functions of whole groups read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from halfjoin.engine.scalar import evaluate
from halfjoin.engine.updates.updates import Ints, Mask, Positions, gather, indices_of, where_true
from halfjoin.sql.expr import Column, Expr


class Segments:
    """The entries of group `i` are those at `[starts[i], starts[i + 1])`; entry `j` is there `count[j] > 0` times.

    `starts` has one entry more than there are groups. A group may be empty.
    """

    count: Ints
    starts: Ints

    def __len__(self) -> int:
        """The number of groups."""
        return len(self.starts) - 1

    @cached_property
    def numbers(self) -> Ints:
        """The group of each entry."""
        return np.arange(len(self)).repeat(self.starts[1:] - self.starts[:-1])


@dataclass(frozen=True)
class Groups(Segments):
    """Rows of groups. `columns` are Arrow arrays, one value a row, in declared order. `ordered`: the rows of each group
    are known to be in the order that the function asks for.
    """

    columns: Mapping[str, pa.Array]
    count: Ints
    starts: Ints
    ordered: bool = False

    def values(self, expr: Expr) -> pa.Array:
        """The values of a column or a constant, one a row."""
        if isinstance(expr, Column):
            return self.columns[expr.name]
        return evaluate.compile(expr).evaluate(self.columns, len(self.count)).values

    def where(self, mask: Mask) -> Groups:
        """The groups with only the rows where the mask is true. If it is true everywhere, the same object."""
        positions = where_true(mask)
        if len(positions) == len(mask):
            return self
        kept = np.concatenate([[0], np.cumsum(mask)])[self.starts]
        return self.take(positions, kept)

    def take(self, positions: Positions, starts: Ints | None = None) -> Groups:
        """The rows at these positions. `starts`: where the groups of the result start, if the rows' groups change."""
        indices = indices_of(positions)
        columns = {name: gather(column, indices) for name, column in self.columns.items()}
        return Groups(columns, self.count[positions], self.starts if starts is None else starts)


def starts_of(numbers: Ints, groups: int) -> Ints:
    """Where each of so many groups starts, given the group of each entry, in order; and the number of entries."""
    starts = np.zeros(groups + 1, np.int64)
    np.bincount(numbers, minlength=groups).cumsum(out=starts[1:])
    return starts


def sums(values: Ints, starts: Ints) -> Ints:
    """The sum of the values of each group; 0 for an empty one."""
    before: Ints = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])[starts]
    return np.diff(before)

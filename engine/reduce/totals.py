"""Exact sums for many groups, side by side. They add up, and come back to the same bytes when they are retracted.

The kinds are those of `sql.functions.decompose`. Each is integers of any width (`engine.scalar.wide`): a count; the
values themselves; floats in units of 2^-1074; products of floats in units of 2^-2148; for `bits` one integer whose
64-bit digits are the counts of the bits; for `intervals` one whose 128-bit digits are its months, days and
microseconds. NaN and infinities have no such integer, so they are counted apart.

Integers add up in any order to the same integer, so neither order nor batches nor retractions show in a sum. A running
float would keep the rounding of what has gone: 1e16 + 1 - 1e16 is 0 in floats, and 1 here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.kernels import summing
from halfjoin.engine.scalar import kept, lifting
from halfjoin.engine.scalar.values import raw, valid
from halfjoin.engine.scalar.wide import Ints, Wide, most
from halfjoin.errors import DataError


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums of one kind. `special`: counts of NaN, +inf and -inf, 3 x sums; None if there are none."""

    kind: str
    numbers: Wide
    special: Ints | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def lifted(cls, kind: str, arrays: Sequence[Any], diff: Ints) -> Totals:
        """One sum a row: what `diff` copies of the row add. A row in which an argument is NULL adds nothing.

        `arrays`: the arguments, each with a value for each row; the first, or for products the first two, are summed.

        >>> rows = [pa.array([1.5, None, -2.0])]
        >>> totals = Totals.lifted("floats", rows, np.array([1, 1, 2])).added(np.array([0]))
        >>> again = Totals.lifted("floats", [pa.array([2.5])], np.array([-1])).added(np.array([0]))
        >>> totals.kept() == again.kept()
        True
        """
        weights = diff
        for array in arrays:
            if array.null_count:
                weights = np.where(valid(array), weights, 0)
        weight = Wide.of(weights)
        match kind:
            case "count":
                return cls(kind, weight)
            case "integers":
                return cls(kind, lifting.integers(arrays[0]).times(weight))
            case "integer products":
                first = lifting.integers(arrays[0])
                second = first if arrays[1] is arrays[0] else lifting.integers(arrays[1])
                return cls(kind, first.times(second).times(weight))
            case "intervals":
                return cls(kind, lifting.intervals(arrays[0]).times(weight))
            case "bits":
                return cls(kind, lifting.bits(arrays[0]).times(weight))
            case "floats":
                units, odd = lifting.floats(arrays[0])
            case _:
                units, odd = lifting.float_products(arrays[0], arrays[1])
        return cls(kind, units.times(weight), _special(odd, weights))

    @classmethod
    def of_floats(cls, kind: str, arrays: Sequence[Any], diff: Ints, group: Ints, groups: int) -> Totals | None:
        """As `lifted` and `added`, given the numbers of the rows' groups, of floats or their products. None: of another
        kind, without a kernel, or for NaN and infinities."""
        factors = {"floats": 1, "float products": 2}.get(kind)
        if factors is None:
            return None
        for array in arrays[factors:]:
            if array.null_count:
                diff = np.where(valid(array), diff, 0)
        made = summing.float_sums(list(arrays[:factors]), diff, group, groups)
        if made is None:
            return None
        first, digits = made
        return cls(kind, Wide(digits, np.full(groups, first), most(digits.ravel())))

    @classmethod
    def read(cls, kind: str, array: Any) -> Totals:
        """The sums that `kept` gave, from an array of a column. NULL is a sum of nothing."""
        if kind == "count":
            return cls(kind, Wide.of(np.where(valid(array), raw(array), 0)))
        return cls(kind, *kept.read(array))

    @classmethod
    def concat(cls, parts: Sequence[Totals]) -> Totals:
        """The sums of several, of one kind, one after the other."""
        special = None
        if any(part.special is not None for part in parts):
            special = np.concatenate([part._counts() for part in parts], axis=1)
        return cls(parts[0].kind, Wide.concat([part.numbers for part in parts]), special)

    def take(self, positions: Ints) -> Totals:
        """The sums at these positions."""
        special = None if self.special is None else self.special[:, positions]
        return Totals(self.kind, self.numbers.take(positions), special)

    def weighted(self, weights: Ints) -> Totals:
        """Each sum, so many times."""
        special = None if self.special is None else self.special * weights
        return Totals(self.kind, self.numbers.times(Wide.of(weights)), special)

    def added(self, starts: Ints) -> Totals:
        """The sum of each segment. `starts`: where the segments begin; the first begins at 0, and none is empty."""
        special = None
        if self.special is not None:
            special = np.add.reduceat(self.special, starts, axis=1) if len(starts) else self.special
        return Totals(self.kind, self.numbers.added(starts), special)

    def running(self, starts: Ints) -> Totals:
        """For each entry the sum of its segment up to it, itself included. `starts` as in `added`."""
        special = None
        if self.special is not None:
            special = Wide(self.special, np.zeros(len(self), np.int64), 1).running(starts).digits
        return Totals(self.kind, self.numbers.running(starts), special)

    def kept(self) -> Any:
        """The sums as an array without NULLs: int64 for counts, otherwise binary. Equal sums have equal bytes.

        Raises:
            DataError: a count is out of the range of bigint.
        """
        if self.kind != "count":
            return kept.kept(self.numbers, self.special)
        counts, outside = self.numbers.narrow()
        if outside.any():
            raise DataError("a count of rows is out of the range of bigint")
        return pa.array(counts)

    def _counts(self) -> Ints:
        return np.zeros((3, len(self)), np.int64) if self.special is None else self.special


def _special(values: Any, weights: Ints) -> Ints | None:
    """The counts of NaN, +inf and -inf that each row adds."""
    if np.isfinite(values).all():
        return None
    return np.stack([np.where(mask, weights, 0) for mask in (np.isnan(values), values == np.inf, values == -np.inf)])

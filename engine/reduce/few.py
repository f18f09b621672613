"""Sums of a few updates, in Python's integers: the same sums as `Totals`, with the same bytes, and no call per digit.

The common batch changes a row or two of a group. Then numpy's price for a call, paid for each step of the arithmetic
of wide integers, would be most of the price of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.scalar import kept
from halfjoin.engine.scalar.lifting import FLOAT_UNIT
from halfjoin.engine.scalar.values import raw, valid
from halfjoin.engine.updates.updates import MAXIMUM, Ints, indices_of

FEW = 16  # updates


@dataclass(frozen=True, slots=True)
class Few:
    """What each of a few updates adds to a sum of one kind, in the kind's unit."""

    kind: str
    numbers: list[int]

    @classmethod
    def lifted(cls, kind: str, arrays: Sequence[Any], diff: Ints) -> Few | None:
        """As `Totals.lifted`; None if this kind or a value needs it.

        >>> import numpy as np
        >>> Few.lifted("floats", [pa.array([1.5, None])], np.array([1, 1])).numbers == [3 << 1073, 0]
        True
        """
        if kind not in ("count", "integers", "integer products", "floats", "float products"):
            return None
        weights = [int(one) for one in diff]
        columns = list[list[int]]()
        for array in arrays[: 2 if kind.endswith("products") else 1]:
            column = _integers(array) if kind.startswith("integer") else _floats(array) if kind != "count" else None
            if column is not None:
                columns.append(column)
            elif kind != "count":
                return None
        for array in arrays:
            if array.null_count:
                weights = [weight if there else 0 for weight, there in zip(weights, valid(array).tolist(), strict=True)]
        for column in columns:
            weights = [weight * number for weight, number in zip(weights, column, strict=True)]
        return cls(kind, weights)

    def totals(self) -> Totals:
        """The same as `Totals`."""
        if self.kind == "count":
            return Totals.lifted(self.kind, (), np.array(self.numbers, np.int64))
        return Totals.read(self.kind, kept.array_of([kept.bytes_of(number) for number in self.numbers]))

    def running(self, moments: Moments, old: pa.Array | None) -> pa.Array | None:
        """The sum at each moment as it is kept: the group's `old` one, and what the updates up to the moment add. None
        if an old one has NaN or infinities, or a count leaves the range of bigint."""
        before = [None] * moments.groups if old is None else old.to_pylist()
        count = self.kind == "count"
        if len(moments.group) == 2 and not moments.begins:  # one group at one time
            known = (before[0] or 0) if count else kept.exact(before[0] or b"")
            return None if known is None else _array([known, known + sum(self.numbers)], count=count)
        rows, starts = moments.rows.tolist(), moments.starts.tolist()
        parts = [rows[start:stop] for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True)]
        if moments.begins:
            parts.insert(0, [])
        total, found, number = 0, list[int](), 0
        for was, group in zip(moments.was.tolist(), moments.group.tolist(), strict=True):
            if was:
                known = (before[group] or 0) if count else kept.exact(before[group] or b"")
                if known is None:
                    return None
                total = known
            else:
                total += sum([self.numbers[row] for row in parts[number]])
                number += 1
            found.append(total)
        return _array(found, count=count)


def _array(sums: Sequence[int], *, count: bool) -> pa.Array | None:
    """Sums as they are kept; None if a count leaves the range of bigint."""
    if not count:
        return kept.array_of([kept.bytes_of(one) for one in sums])
    if max(sums) > MAXIMUM or min(sums) < -MAXIMUM:
        return None
    return indices_of(np.array(sums, np.int64))


def _integers(array: Any) -> list[int]:
    """As `lifting.integers`; NULL is any number."""
    if not pa.types.is_decimal(array.type):
        numbers: list[int] = raw(array).tolist()
        return numbers
    width = array.type.bit_width // 8
    data = memoryview(array.buffers()[1])[array.offset * width :]
    return [int.from_bytes(data[width * n : width * (n + 1)], "little", signed=True) for n in range(len(array))]


def _floats(array: Any) -> list[int] | None:
    """As `lifting.floats`; None if a value is NaN or infinite. NULL is 0."""
    found = []
    for value in array.to_pylist():
        if value is None:
            value = 0.0
        if value - value != 0:
            return None
        number, power = value.as_integer_ratio()
        found.append(number << FLOAT_UNIT - power.bit_length() + 1)
    return found

"""Kernels whose arguments are mostly the same few: they compute each of these once.

What a group keeps of its sums comes once for each row that meets the group in a join, and a sum that is read or divided
costs a hundred times what it costs to see that it is the one of the row before. So does a month before the latest time
that a subquery finds for all rows.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.kernels import summing
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import Datum, Kernel

_FROM = 1 << 12  # rows; fewer are computed as they are
_SAMPLE = 1 << 10
_FEW = 4  # a value comes so often, or more, where this pays


def once(kernel: Kernel) -> Kernel:
    """The same kernel, called with each row of its arguments once if many rows are the same."""

    @wraps(kernel)
    def run(*data: Datum) -> Datum:
        if isinstance(data[0], pa.Scalar) or len(data[0]) < _FROM:
            return kernel(*data)
        arrays, rows = [datum for datum in data if not isinstance(datum, pa.Scalar)], len(data[0])
        if all(one.slice(1).equals(one.slice(0, rows - 1)) for one in arrays):
            number, firsts = None, np.zeros(1, np.int64)
        elif _few([one.slice(0, _SAMPLE) for one in arrays], min(rows, _SAMPLE)):
            found = summing.groups(arrays, None, rows)
            if found is None or len(found[1]) * _FEW > rows:
                return kernel(*data)
            number, firsts = found
        else:
            return kernel(*data)
        some: list[Any] = [one if isinstance(one, pa.Scalar) else one.take(pa.array(firsts)) for one in data]
        try:
            made = kernel(*some)
        except (Failed, pa.ArrowInvalid):  # it is to name the rows
            return kernel(*data)
        if isinstance(made, pa.Scalar):
            return made
        return made[0] if number is None else made.take(pa.array(number))

    return run


def _few(arrays: list[Any], rows: int) -> bool:
    found = summing.groups(arrays, None, rows)
    return found is not None and len(found[1]) * _FEW <= rows

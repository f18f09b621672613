"""What many updates add to sums without groups: one pass over each column, which copies nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from halfjoin.engine.kernels import summing
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.scalar.wide import MASK, Wide
from halfjoin.engine.updates.updates import Updates
from halfjoin.planner.group_functions import Sums

_FACTORS = {"count": 0, "integers": 1}
_DIGITS = 5  # of 32 bits: so many hold the sum of 2^31 numbers of 128 bits


def added_alone(part: Sums, pieces: Sequence[Updates]) -> Totals | None:
    """What all updates add to a sum of all rows; None without a kernel for it."""
    factors = _FACTORS.get(part.kind)
    if factors is None or part.kept:
        return None
    total = 0
    for updates in pieces:
        arrays = [updates.columns[arg.name] for arg in part.args]
        asked = [array for array in arrays[factors:] if array.null_count]
        if not factors and len(asked) < 2 and updates.diff.strides == (0,):
            total += (len(updates) - sum(array.null_count for array in asked)) * int(updates.diff[:1].sum())
            continue
        one = summing.added_up(arrays[0] if factors else None, asked, updates.diff)
        if one is None:
            return None
        total += one
    return Totals(part.kind, _wide(total))


def _wide(number: int) -> Wide:
    if -(1 << 63) < number < 1 << 63:
        return Wide.of(np.array([number], np.int64))
    digits = [number >> 32 * place & MASK for place in range(_DIGITS - 1)]
    return Wide(np.array([[digit] for digit in (*digits, number >> 32 * (_DIGITS - 1))]), np.zeros(1, np.int64), MASK)

"""Weights that do not fit into an int64: rows with such weights become errors, until other such weights cancel them.

The error's diff is exact: three errors hold its limbs as their diffs. All limbs are 0 only if the diff is 0, so no
error goes away before its row does, and each goes away with the row that brought it. A row that comes in one batch and
goes in several, or the other way round, may leave limbs that only cancel each other. Then the error stays.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.failures import of_rows
from halfjoin.engine.updates.updates import MAXIMUM, TOO_HEAVY, Updates, concat, is_wide

_LIMB = 1 << 42  # three limbs hold the product of two int64s, and an int64 holds the sum of millions of limbs
_FEW = 8  # the most int64s that may stand for one diff: sums of updates are exact, so such rows need not be errors
_NAMES = ("", " (its middle digits)", " (its first digits)")


def split(updates: Updates) -> tuple[Updates, Updates]:
    """The updates whose diffs fit into a few int64s, as one update per int64; and the errors of the other updates."""
    size = np.abs(updates.diff)
    light = (size <= _FEW * MAXIMUM).astype(np.bool_)
    counts = np.maximum(-(-size[light] // MAXIMUM), 1).astype(np.int64)
    pieces = updates.take(np.repeat(np.flatnonzero(light), counts))
    diffs = np.sign(pieces.diff) * MAXIMUM
    lasts = np.cumsum(counts) - 1
    diffs[lasts] = updates.diff[light] - np.sign(updates.diff[light]) * MAXIMUM * (counts - 1)
    made = Updates(pieces.columns, pieces.time, diffs.astype(np.int64))
    return made, of_rows(updates.take(np.flatnonzero(~light)), TOO_HEAVY)


def in_limbs(errors: Updates) -> Updates:
    """Split errors whose diffs may not fit into an int64 into errors whose diffs do."""
    if not is_wide(errors.diff):
        return errors
    sign, rest = np.sign(errors.diff), np.abs(errors.diff)
    parts = []
    for name in _NAMES:
        text = pa.array([f"{error}{name}" for error in errors.columns["error"].to_pylist()], pa.string())
        limb = (sign * (rest % _LIMB)).astype(np.int64)
        parts.append(Updates({**errors.columns, "error": text}, errors.time, limb))
        rest = rest // _LIMB
    return concat(parts)

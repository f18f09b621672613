"""Weights past an int64: the rows that have them are errors, until other such weights cancel theirs.

The diff of such an error is exact: it is spread over three errors, whose diffs are its limbs. All of them are 0 only
where it is, so no error goes before the row does, and it goes with the row that brought it. What came in one batch and
goes in several, or the other way round, may leave limbs that cancel only each other: then the error stays.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.failures import of_rows
from halfjoin.engine.updates.updates import MAXIMUM, TOO_HEAVY, Updates, concat, is_wide

_LIMB = 1 << 42  # two int64s multiply to three such limbs, and millions of limbs add up to an int64
_FEW = 8  # int64s that may stand for one diff: sums of updates are exact, so such rows need be no errors
_NAMES = ("", " (its middle digits)", " (its first digits)")


def split(updates: Updates) -> tuple[Updates, Updates]:
    """The updates whose diffs a few int64s hold, one for each of these, and the errors of the others."""
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
    """Errors whose diffs may be none of an int64 as errors whose diffs are."""
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

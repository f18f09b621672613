"""Rounds decimals whose digits fit into 64 bits, as those of most columns do, by one division each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.lifting import integers
from halfjoin.engine.scalar.values import Datum, valid
from halfjoin.engine.updates.updates import Ints

_MOST = 1 << 62
_DIGITS = 18  # any number with so many digits is below `_MOST`


def rounded(a: Datum, places: int, mode: str) -> Ints | None:
    """Decimals without those behind the first `places`, as integers in units of 10^-places; those of NULLs have no
    meaning. `mode`: as Arrow calls it. None: they may not fit, or a single value is given."""
    if not isinstance(a, pa.Array) or not 0 < a.type.scale - places <= _DIGITS:
        return None
    whole = integers(a)
    if len(whole.digits) > 1 or whole.bound >= _MOST // 2:
        return None
    values, unit = whole.digits[0], 10 ** (a.type.scale - places)
    match mode:
        case "down":
            found: Ints = values // unit
        case "up":
            found = -(-values // unit)
        case "towards_zero":
            found = np.sign(values) * (np.abs(values) // unit)
        case _:
            found = np.sign(values) * ((np.abs(values) + unit // 2) // unit)
    return found


def with_places(a: Datum, places: int, mode: str, result: Any) -> pa.Array | None:
    """Decimals rounded to so many places, which may be below 0, as those of another type. None: as in `rounded`, or a
    value may not fit the type."""
    more = result.scale - places
    found = rounded(a, places, mode) if result.bit_width == 128 and 0 <= more <= _DIGITS else None
    if found is None:
        return None
    if more:
        if int(np.abs(found).max(initial=0)) >= _MOST // 10**more:
            return None
        found = found * 10**more
    if result.precision <= _DIGITS and int(np.abs(found).max(initial=0)) >= 10**result.precision:
        return None
    pairs = np.stack([found, found >> 63], axis=1)
    made = pa.Array.from_buffers(result, len(found), [None, pa.py_buffer(pairs)])
    return pc.if_else(pa.array(valid(a)), made, pa.scalar(None, result)) if a.null_count else made


def as_integers(a: Datum, result: Any) -> pa.Array | None:
    """Decimals as integers of a type, halves away from zero. None: as in `with_places`."""
    found = rounded(a, 0, "half_towards_infinity")
    if found is None:
        return None
    limit = 1 << result.bit_width - 1
    if len(found) and not (-limit <= int(found.min()) and int(found.max()) < limit):
        return None
    return pa.array(found.astype(f"i{result.bit_width // 8}"), result, mask=~valid(a) if a.null_count else None)

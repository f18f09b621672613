"""Floats as decimals, by arithmetic: the values that `%.14e` writes, without a text for each of them.

A float that is the nearest one to a decimal of at most 15 digits is written as this decimal. So where a float is
`round(x * 10^6) / 10^6`, that tells all its digits. Of another one the product with a power of 10 tells them, which is
a float and what that leaves (Dekker 1971). Where the product is a half, or may be one, somebody else has to look.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.updates.updates import Ints, Mask, where_true

_PLACES, _SHORT = 6, 1e9  # decimals that most floats have at most, where they are below this: 15 digits in all
_LEAST, _MOST = -8, 22  # the least power of 10 that is looked at, and the greatest one that is a float
_TENS = np.array([10.0**power for power in range(_LEAST, 23)])
_WHOLE = np.array([10**power for power in range(19)])
_SPLIT = 134217729.0  # 2^27 + 1
_HALF = 1e-9  # so near a half, a product may be one


def decimals_of(values: NDArray[np.float64], digits: int, type: Any) -> tuple[pa.Array, Ints] | None:
    """Finite floats, rounded to so many significant digits, then to the decimals of a type, halves away from zero; and
    the rows of which nothing is known. None: a value may not fit."""
    if type.bit_width != 128 or not 0 <= type.scale < len(_WHOLE):
        return None
    size = np.abs(values)
    if not bool((size < min(2.0**62, 10.0 ** min(type.precision, 18)) / 10.0**type.scale).all()):
        return None
    found, unknown = np.zeros(len(values), np.int64), np.arange(len(values))
    if digits > _PLACES and bool((size < _SHORT).all()):
        whole = np.rint(values * 10.0**_PLACES)
        known = whole / 10.0**_PLACES == values
        if bool(known[: len(known) // 2].any()):
            found = _rescaled(whole.astype(np.int64), np.int64(_PLACES), type.scale)
            unknown = where_true(~known)
    if len(unknown):
        some = slice(None) if len(unknown) == len(values) else unknown
        whole, places, left = _digits(values[some], size[some], digits)
        found[some] = _rescaled(whole, places, type.scale)
        unknown = unknown[left]
    if bool((np.abs(found) >= 10 ** min(type.precision, 18)).any()):
        return None
    pairs = np.stack([found, found >> 63], axis=1)
    return pa.Array.from_buffers(type, len(found), [None, pa.py_buffer(pairs)]), unknown


def _digits(values: NDArray[np.float64], size: NDArray[np.float64], digits: int) -> tuple[Ints, Ints, Mask]:
    """The significant digits of floats as integers, and how many of them are decimals; and for which that is not known.
    """
    power = _TENS.searchsorted(size, "right") - 1 + _LEAST
    places = digits - 1 - power
    unknown = (size < _TENS[0]) | (places < 0) | (places > _MOST)
    unknown &= size != 0
    places = np.clip(places, 0, _MOST)
    ten = _TENS[places - _LEAST]
    product = values * ten
    high, low = _halves(values)
    ten_high, ten_low = _halves(ten)
    rest = ((high * ten_high - product) + high * ten_low + low * ten_high) + low * ten_low
    whole = np.rint(product)
    fraction = (product - whole) + rest
    unknown |= np.abs(np.abs(fraction) - 0.5) < _HALF
    whole += (fraction > 0.5).astype(np.float64) - (fraction < -0.5)
    whole[unknown] = 0
    return whole.astype(np.int64), places, unknown


def _halves(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two floats with half as many bits, which add up to each of these."""
    scaled = values * _SPLIT
    high = scaled - (scaled - values)
    return high, values - high


def _rescaled(whole: Ints, places: Any, scale: int) -> Ints:
    """Decimals with these digits, of which so many are behind the point, as those with `scale` decimals."""
    drop = np.clip(places - scale, 0, 17)  # no number here has so many digits
    made = whole if not np.any(places < scale) else whole * _WHOLE[np.maximum(scale - places, 0)]
    if not np.any(drop):
        return made
    divisor = _WHOLE[drop]
    rounded: Ints = np.sign(made) * ((np.abs(made) + divisor // 2) // divisor)
    return rounded

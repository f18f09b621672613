"""How many decimals the quotients of columns of numerics have: PostgreSQL's rule of weights (`decimal_places`)."""

from __future__ import annotations

from decimal import Context
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from halfjoin.engine.scalar.values import broadcast
from halfjoin.sql.functions.decimal_places import GROUP, SIGNIFICANT
from halfjoin.sql.types import WORKING_DIGITS

Ints: TypeAlias = NDArray[np.int64]

_WORD = 18  # decimal digits that fit into int64
_EXACT = Context(prec=100)


def decimals_of_quotients(dividends: Any, divisors: Any, count: int) -> Ints:
    """The decimals of the quotients of decimal arrays or scalars. Those of NULL are arbitrary."""
    (w1, first1), (w2, first2) = (_leading_digits(broadcast(datum, count)) for datum in (dividends, divisors))
    least = max(dividends.type.scale, divisors.type.scale)
    found: Ints = np.maximum(SIGNIFICANT - GROUP * (w1 - w2 - (first1 <= first2)), least)
    return found


def _leading_digits(array: Any) -> tuple[Ints, Ints]:
    """The weights and the first digits of decimals, as many of their digits at a time as fit into int64."""
    scale, limits = array.type.scale, pc.min_max(array)
    most = max((len(str(abs(int(limit.as_py().scaleb(scale, _EXACT))))) for limit in limits.values() if limit.is_valid),
               default=0)  # fmt: skip
    weights, firsts = np.zeros(len(array), np.int64), np.zeros(len(array), np.int64)
    below, open_rows = most, np.arange(len(array))
    while len(open_rows):
        dropped = 0 if below <= _WORD else below - _WORD + (scale - below + _WORD) % GROUP
        high = np.abs(_without(array.take(pa.array(open_rows)) if len(open_rows) < len(array) else array, dropped))
        found = high != 0
        rows = open_rows[found]
        weights[rows], firsts[rows] = _leading_of_words(high[found], scale - dropped)
        open_rows, below = open_rows[~found] if dropped else open_rows[:0], dropped
    return weights, firsts


def _without(array: Any, dropped: int) -> Ints:
    """The numbers without their point and without so many last digits, which then fit into int64."""
    if dropped:
        wide = array.cast(pa.decimal256(WORKING_DIGITS, array.type.scale))
        moved = pa.decimal256(WORKING_DIGITS, dropped)
        shifted = pa.Array.from_buffers(moved, len(wide), wide.buffers(), offset=wide.offset)
        array = shifted.cast(pa.decimal256(WORKING_DIGITS, 0), safe=False)  # cuts the decimals
    words = array.type.bit_width // 64
    buffer = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, words)[array.offset : array.offset + len(array)]
    low = buffer[:, 0]
    return low if not array.null_count else np.where(array.is_valid().to_numpy(zero_copy_only=False), low, 0)


def _leading_of_words(numbers: Ints, scale: int) -> tuple[Ints, Ints]:
    """Weights and first digits of positive numbers in int64. With `scale` below 0 there were digits after them."""
    least = -(scale // GROUP)  # the least weight whose power of 10000 is a whole number of units
    exponents = range(GROUP * least + scale, _WORD + 1, GROUP)
    powers = np.array([10**exponent for exponent in exponents], np.int64)
    place = np.searchsorted(powers, numbers, "right") - 1
    small = numbers * 10 ** (-scale % GROUP)
    return place + least, np.where(place >= 0, numbers // powers[np.maximum(place, 0)], small)

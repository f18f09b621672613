"""From the values of a column to exact integers: unscaled numerics, and floats as multiples of 2^-1074."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.scalar.values import raw, valid
from halfjoin.engine.scalar.wide import MASK, Ints, Wide, most
from halfjoin.engine.updates.intervals import fields

FLOAT_UNIT = 1074  # the least double is 2^-1074, so each double is a multiple of it
FIELD_WORDS = 4  # of a field of an interval: so wide that its sum never reaches the next field
_MANTISSA = 53


def integers(array: Any) -> Wide:
    """Integers, or numerics without their point: 1.50 is 150. NULL is 0."""
    given = valid(array)
    if not pa.types.is_decimal(array.type):
        return Wide.of(np.where(given, raw(array), 0).astype(np.int64))
    count = array.type.bit_width // 32
    if not len(array):
        return Wide.of(np.zeros(0, np.int64))
    buffer = np.frombuffer(array.buffers()[1], "<i4").reshape(-1, count)[array.offset : array.offset + len(array)]
    words = np.where(given[:, None], buffer, 0) if array.null_count else buffer
    sign = words[:, 1] >> 31
    if (words[:, 2:] == sign[:, None]).all():  # all fit into 64 bits
        return Wide.of(np.ascontiguousarray(words[:, :2]).view("<i8")[:, 0])
    digits = words.T.astype(np.int64)
    digits[:-1] &= MASK
    return Wide(digits, np.zeros(len(array), np.int64), MASK)


def floats(array: Any) -> tuple[Wide, NDArray[np.float64]]:
    """The finite floats in units of 2^-1074, and all floats. NULL, NaN and infinities are 0 units."""
    values = np.where(valid(array), raw(array), 0.0).astype(np.float64, copy=False)
    mantissa, exponent = _parts(values)
    return _numbers(Wide.of(mantissa), exponent), values


def float_products(first: Any, second: Any) -> tuple[Wide, NDArray[np.float64]]:
    """The products of finite floats in units of 2^-2148, and a NaN for each product of another."""
    x, y = (np.where(valid(array), raw(array), 0.0).astype(np.float64, copy=False) for array in (first, second))
    finite = np.isfinite(x) & np.isfinite(y)
    (m, p), (n, q) = _parts(np.where(finite, x, 0.0)), _parts(np.where(finite, y, 0.0))
    return _numbers(Wide.of(m).times(Wide.of(n)), p + q), np.where(finite, 0.0, np.nan)


def _parts(values: NDArray[np.float64]) -> tuple[Ints, Ints]:
    """Integers m and p for which each finite value is m * 2^(p - 1074); 0 for the others."""
    mantissa, exponent = np.frexp(values)
    finite = np.isfinite(values)
    if not finite.all():
        mantissa = np.where(finite, mantissa, 0.0)
    m = (mantissa * 2.0**_MANTISSA).astype(np.int64)
    p = exponent.astype(np.int64) + (FLOAT_UNIT - _MANTISSA)
    small = p < 0
    if small.any():  # a subnormal has fewer bits
        m, p = np.where(small, m >> np.where(small, -p, 0), m), np.maximum(p, 0)
    return m, p


def _numbers(mantissa: Wide, exponent: Ints) -> Wide:
    """mantissa * 2^exponent. A 0 gets the least exponent of the others, so that it widens no sum."""
    some = mantissa.digits.any(0)
    if not some.all():
        least = int(exponent[some].min()) if some.any() else 0
        exponent = np.where(some, exponent, least)
    return mantissa.shifted(exponent)


def bits(array: Any) -> Wide:
    """For each bit that some value has a 64-bit digit: 1 if the value has it. NULL has none."""
    values = np.where(valid(array), raw(array), 0)
    unsigned = values.view(f"u{values.itemsize}").astype(np.uint64)
    used = int(np.bitwise_or.reduce(unsigned, initial=0)).bit_length()
    digits = np.zeros((max(2 * used - 1, 1), len(array)), np.int64)
    for bit in range(used):
        digits[2 * bit] = (unsigned >> np.uint64(bit)) & np.uint64(1)
    return Wide(digits, np.zeros(len(array), np.int64), 1)


def intervals(array: Any) -> Wide:
    """Months, days and microseconds as one number: months * 2^256 + days * 2^128 + microseconds. NULL is 0."""
    given = valid(array)
    digits = np.zeros((2 * FIELD_WORDS + 1, len(array)), np.int64)
    months, days, micros = fields(array)
    digits[:: FIELD_WORDS] = [np.where(given, part, 0) for part in (micros, days, months)]
    return Wide(digits, np.zeros(len(array), np.int64), max(most(row) for row in digits))

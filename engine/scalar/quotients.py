"""From exact integers to numerics and floats: divided by a count, and rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.scalar.lifting import FLOAT_UNIT
from halfjoin.engine.scalar.wide import MASK, Ints, Wide

Mask = NDArray[np.bool_]
Words = NDArray[np.uint32]

_FEW = 1 << 31  # counts below it divide word by word: a remainder and a word fit into 63 bits
_EXTRA = 3  # words of a quotient after the point: 96 bits, so it has 65 or more, and a float needs 53
_MANTISSA = {64: (53, -1022), 32: (24, -126)}  # by the bits of a float: those of its mantissa, and the least exponent


def decimals(numbers: Wide, type: Any) -> tuple[Any, Mask]:
    """The numbers as unscaled values of a decimal type, and which of them do not fit; those are 0."""
    numbers = numbers.grounded()
    if len(numbers.digits) == 1 and numbers.bound < 10**type.precision:  # the common case: 64 bits hold them
        data = np.empty((len(numbers), type.bit_width // 64), np.int64)
        data[:, 0], data[:, 1:] = numbers.digits[0], (numbers.digits[0] >> 63)[:, None]
        return pa.Array.from_buffers(type, len(data), [None, pa.py_buffer(data)]), np.zeros(len(data), np.bool_)
    outside = _beyond(numbers, 10**type.precision)
    words, count = numbers.words(), type.bit_width // 32
    if outside.any():
        words = np.where(outside, np.uint32(0), words)
    if len(words) < count:
        words = np.concatenate([words, np.repeat(words[-1:], count - len(words), axis=0)])
    data = np.ascontiguousarray(words[:count].T)
    return pa.Array.from_buffers(type, len(data), [None, pa.py_buffer(data)]), outside


def few_decimals(numbers: Sequence[int | None], type: Any) -> Any | None:
    """A few numbers as unscaled values of a decimal type; None if one of them does not fit."""
    limit, width = 10**type.precision, type.bit_width // 8
    if any(number is not None and abs(number) >= limit for number in numbers):
        return None
    body = b"".join([(number or 0).to_bytes(width, "little", signed=True) for number in numbers])
    there = pa.array([number is not None for number in numbers]).buffers()[1] if None in numbers else None
    return pa.Array.from_buffers(type, len(numbers), [there, pa.py_buffer(body)])


def nearest_whole(number: int, count: int) -> int:
    """number / count as a whole number, halves away from zero.

    >>> [nearest_whole(number, 2) for number in (5, -5, 4)], nearest_whole(5, -2)
    ([3, -3, 2], -3)
    """
    quotient, rest = divmod(abs(number), abs(count))
    quotient += 2 * rest >= abs(count)
    return quotient if (number < 0) == (count < 0) else -quotient


def _beyond(numbers: Wide, limit: int) -> Mask:
    """The numbers whose absolute value is at least the limit."""
    if len(numbers.digits) == 1 and numbers.bound < limit:
        return np.zeros(len(numbers), np.bool_)
    numbers = numbers.balanced()
    count = max(len(numbers.digits), -(-limit.bit_length() // 32))
    digits = np.zeros((count, len(numbers)), np.int64)
    digits[: len(numbers.digits)] = numbers.digits
    taken = np.array([[limit >> 32 * j & MASK] for j in range(count)])
    over, under = (Wide(sign * digits - taken, numbers.at, numbers.bound + MASK).words()[-1] for sign in (1, -1))
    beyond: Mask = (over == 0) | (under == 0)
    return beyond


def floats(numbers: Wide, counts: Ints | None, bits: int) -> tuple[NDArray[np.float64], Mask]:
    """numbers / counts in units of 2^-1074, as floats of 32 or 64 bits rounded once, and which are too large.

    `counts`: none is 0; None: do not divide.
    """
    words, negative = numbers.magnitudes()
    at, rest = numbers.at, np.zeros(len(numbers), np.int64)
    if counts is not None:
        words = np.concatenate([np.zeros((_EXTRA, len(numbers)), np.uint32), words])
        at, negative = at - _EXTRA, negative != (counts < 0)
        words, rest = _divided(words, np.abs(counts))
    values = _nearest(words, at, rest != 0, *_MANTISSA[bits])
    if bits == 32:
        with np.errstate(over="ignore"):
            values = values.astype(np.float32).astype(np.float64)
    return np.where(negative, -values, values), np.isinf(values)


def _divided(words: Words, divisor: Ints) -> tuple[Words, Ints]:
    """The whole quotients of absolute values, and the remainders."""
    quotient = np.empty_like(words)
    rest = np.zeros(words.shape[1], np.int64)
    few = np.where(divisor < _FEW, divisor, 1)
    for j in reversed(range(len(words))):
        part = (rest << 32) | words[j]
        quotient[j] = part // few
        rest = part - quotient[j].astype(np.int64) * few
    for i in np.flatnonzero(divisor >= _FEW):  # more than 2^31 rows in a group
        number = int.from_bytes(words[:, i].tobytes(), "little")
        whole, rest[i] = divmod(number, int(divisor[i]))
        quotient[:, i] = np.frombuffer(whole.to_bytes(4 * len(words), "little"), "<u4")
    return quotient, rest


def _nearest(words: Words, at: Ints, more: Mask, mantissa: int, least: int) -> NDArray[np.float64]:
    """The nearest floats, halves to the even one; infinity if too large. `more`: there is a rest below the words."""
    there = words != 0
    top = len(words) - 1 - there[::-1].argmax(0)
    number = np.arange(words.shape[1])
    first, second, third = (
        np.where(top >= k, words[np.maximum(top - k, 0), number], 0).astype(np.uint64) for k in range(3))  # fmt: skip
    length = np.frexp(first.astype(np.float64))[1].astype(np.int64)  # the bits of the first word that is not 0
    shift, unshift = (32 - length).astype(np.uint64), length.astype(np.uint64)
    window = (((first << np.uint64(32)) | second) << shift) | (third >> unshift)  # the first 64 bits
    more = more | (third & ((np.uint64(1) << unshift) - np.uint64(1)) != 0) | (there.argmax(0) < top - 2)
    exponent = 32 * (at + top) + length - 1 - FLOAT_UNIT
    drop = 64 - mantissa + np.maximum(least - exponent, 0)  # more bits go if the result is subnormal
    window = np.where(drop > 64, np.uint64(0), window)
    by = np.minimum(drop, 63).astype(np.uint64)
    none = drop >= 64
    kept = np.where(none, np.uint64(0), window >> by)
    rest = np.where(none, window, window & ((np.uint64(1) << by) - np.uint64(1)))
    half = np.where(none, np.uint64(1) << np.uint64(63), np.uint64(1) << (by - np.uint64(1)))
    kept += (rest > half) | ((rest == half) & (more | (kept & np.uint64(1) != 0)))
    with np.errstate(over="ignore"):
        values: NDArray[np.float64] = np.ldexp(kept.astype(np.float64), exponent - 63 + drop)
    return np.where(there.any(0), values, 0.0)

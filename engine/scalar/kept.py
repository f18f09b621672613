"""How a sum is kept: as bytes that are equal for equal sums.

A sum of 0 is no byte. Otherwise:

    offset                     1 byte: how many 32-bit words below are 0 and left out
    number                     the rest in two's complement, least byte first, as few bytes as it needs

A sum of floats that has NaN or infinities among them begins with what no offset is:

    255                        1 byte
    NaN, +inf, -inf            3 counts of 8 bytes, least byte first
    offset, number             of the finite values, as above; missing if their sum is 0

The unit is the kind's: 1 for integers, 2^-1074 for floats, 2^-2148 for products of floats.

>>> kept(Wide.of(np.array([0, 5, -1, 300, 2**32]))).to_pylist()
[b'', b'\\x00\\x05', b'\\x00\\xff', b'\\x00,\\x01', b'\\x01\\x01']
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.kernels import summing
from halfjoin.engine.scalar.wide import MASK, Ints, Wide

_SPECIAL = 255
_COUNTS = 24  # the bytes of the three counts
_FEW = 16  # so few small numbers are read faster one by one
_MOST = np.iinfo(np.int64).max
_PIECE = 1 << 20  # words to convert at a time


def kept(numbers: Wide, special: Ints | None = None) -> Any:
    """The canonical bytes of sums, as an array of binary without NULLs.

    `special`: counts of NaN, +inf and -inf, 3 x numbers; None if there are none.
    """
    if special is None and len(numbers.digits) == 1 and not numbers.at.any():
        made = summing.kept(numbers.digits[0])
        if made is not None:
            return made
    step = max(_PIECE // (len(numbers.digits) + 2), 1)
    if len(numbers) <= step:
        return _kept(numbers, special)
    pieces = [_kept(numbers.take(rows), None if special is None else special[:, rows])
              for rows in _rows(len(numbers), step)]  # fmt: skip
    return pa.concat_arrays(pieces)


def _rows(total: int, step: int) -> Iterator[Ints]:
    for first in range(0, total, step):
        yield np.arange(first, min(first + step, total))


def _kept(numbers: Wide, special: Ints | None) -> Any:
    words = numbers.words()
    there = words != 0
    low = there.argmax(0)
    offset = numbers.at + low
    some = there.any(0)
    assert not some.any() or int(offset[some].max()) < _SPECIAL
    negative = words[-1] != 0
    data = np.ascontiguousarray(words.T).view(np.uint8)
    position = np.arange(data.shape[1])
    differs = data != np.where(negative, 255, 0).astype(np.uint8)[:, None]
    last = data.shape[1] - 1 - differs[:, ::-1].argmax(1)  # the highest byte that is not only sign
    last = np.where(differs.any(1), last, 4 * low - 1)
    top = data[np.arange(len(data)), np.maximum(last, 0)]
    end = last + 1 + ((last < 4 * low) | ((top >= 128) != negative))
    given = some[:, None] & (position >= 4 * low[:, None]) & (position < end[:, None])
    parts, masks = [offset.astype(np.uint8)[:, None], data], [some[:, None], given]
    if special is not None and special.any():
        odd = np.repeat((special != 0).max(0).reshape(-1, 1), _COUNTS + 1, axis=1)
        counts = np.ascontiguousarray(special.T, "<i8").view(np.uint8)
        parts = [np.full((len(data), 1), _SPECIAL, np.uint8), counts, *parts]
        masks = [odd, *masks]
    chosen = np.concatenate(masks, axis=1)
    offsets = np.zeros(len(data) + 1, np.int32)
    np.cumsum(chosen.sum(1), out=offsets[1:])
    body = np.concatenate(parts, axis=1)[chosen]
    return pa.Array.from_buffers(pa.binary(), len(data), [None, pa.py_buffer(offsets), pa.py_buffer(body)])


def read(array: Any) -> tuple[Wide, Ints | None]:
    """The numbers, and the counts of NaN, +inf and -inf if there are any. NULL is a sum of nothing, so 0."""
    if not len(array):
        return Wide.of(np.zeros(0, np.int64)), None
    if len(array) <= _FEW:
        few = [exact(value or b"") for value in array.to_pylist()]
        if all(number is not None and abs(number) <= _MOST for number in few):
            return Wide.of(np.array(few, np.int64)), None
    plain = summing.read_kept(array)
    if plain is not None:
        return Wide.of(plain), None
    offsets, data = _buffers(array)
    length = np.diff(offsets)
    if array.null_count:
        length = np.where(np.asarray(array.is_null()), 0, length)
    first = offsets[:-1]
    special = None
    odd = _at(data, first, length > 0) == _SPECIAL
    if odd.any():
        special = np.zeros((3, len(array)), np.int64)
        counts = data[first[odd][:, None] + np.arange(1, 1 + _COUNTS)]
        special[:, odd] = np.ascontiguousarray(counts).view("<i8").T
        first, length = first + odd * (1 + _COUNTS), length - odd * (1 + _COUNTS)
    some = length > 0
    at = _at(data, first, some).astype(np.int64)
    at[~some] = at[some].min() if some.any() else 0  # a 0 lies where it widens no sum
    size = np.maximum(length - 1, 0)
    count = max(-(-int(size.max()) // 4), 2)
    step = max(_PIECE // count, 1)
    pieces = [_words(data, first[rows] + 1, size[rows], count) for rows in _rows(len(array), step)]
    words = np.concatenate(pieces)
    if count == 2:
        numbers = Wide.of(words.view("<i8")[:, 0])
        return Wide(numbers.digits, at, numbers.bound), special
    digits = words.view("<u4").T.astype(np.int64)
    digits[-1] = words.view("<i4")[:, -1]
    return Wide(digits, at, MASK), special


def exact(value: bytes) -> int | None:
    """The number of one kept sum in its unit; None if NaN or infinities are part of it."""
    if not value:
        return 0
    return None if value[0] == _SPECIAL else int.from_bytes(value[1:], "little", signed=True) << 32 * value[0]


def bytes_of(number: int) -> bytes:
    """The canonical bytes of one number: what `kept` gives for it.

    >>> [bytes_of(number) for number in (0, 5, -1, 300, 2**32)]
    [b'', b'\\x00\\x05', b'\\x00\\xff', b'\\x00,\\x01', b'\\x01\\x01']
    """
    if not number:
        return b""
    offset = ((number & -number).bit_length() - 1) // 32
    number >>= 32 * offset
    bits = number.bit_length() if number > 0 else (~number).bit_length()
    return bytes((offset,)) + number.to_bytes(bits // 8 + 1, "little", signed=True)


def array_of(values: Sequence[bytes]) -> Any:
    """A few values as an array of binary. (`pa.array` looks at the environment first, which takes longer.)"""
    offsets, body = np.array([0, *accumulate(map(len, values))], np.int32), b"".join(values)
    return pa.Array.from_buffers(pa.binary(), len(values), [None, pa.py_buffer(offsets), pa.py_buffer(body)])


def _words(data: NDArray[np.uint8], first: Ints, size: Ints, count: int) -> NDArray[np.uint8]:
    """The bytes of numbers of these sizes in two's complement, extended to `count` words, numbers x bytes."""
    position = np.arange(4 * count)
    given = position < size[:, None]
    top = _at(data, first + size - 1, size > 0)
    return np.where(given, data[np.where(given, first[:, None] + position, 0)], np.where(top >= 128, 255, 0)[:, None]
                    ).astype(np.uint8)  # fmt: skip


def _buffers(array: Any) -> tuple[Ints, NDArray[np.uint8]]:
    """The offsets and the bytes of an array of binary; there is at least one byte, to take from for an empty value."""
    _, offsets, data = array.buffers()
    found = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    held = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return found, held


def _at(data: NDArray[np.uint8], position: Ints, there: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """The byte at each position; 0 where nothing is there."""
    return np.where(there, data[np.where(there, position, 0)], 0).astype(np.uint8)

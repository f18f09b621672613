"""The order of values as int64 words: comparing words, the first one first, compares values as PostgreSQL does.

Numbers, dates and times are words themselves. A double becomes the integer that its bits spell, so NaN is above
infinity. A decimal has a word for each 64 bits. Text and bytea get their place among the column's values, byte by byte
(C collation). An array gets the place of the bytes of its elements' places, so a prefix comes before what it begins; a
NULL element is above all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from halfjoin.engine.scalar.values import raw, valid
from halfjoin.engine.updates.codes import integers, is_integral
from halfjoin.engine.updates.intervals import DAY, fields, has_intervals
from halfjoin.engine.updates.updates import Ints, Mask

_SIGN = np.int64(-(1 << 63))
_REST = np.int64((1 << 63) - 1)


def words(column: pa.Array) -> list[Ints]:
    """Words of a column, most significant first. Equal values have equal words, whatever they look like (1 month, 30
    days); a NULL has zeros."""
    kind = column.type
    if is_integral(kind) and not column.null_count:  # the common case
        return [integers(column)]
    if pt.is_null(kind):
        return [np.zeros(len(column), np.int64)]
    found = _words(column)
    if column.null_count:
        null = ~valid(column)
        found = [np.where(null, 0, word) for word in found]
    return found


def ordered_words(column: pa.Array, descending: bool = False, nulls_first: bool = False) -> list[Ints]:
    """Words whose ascending order is the order of a sort key."""
    found = [~word for word in words(column)] if descending else words(column)
    if column.null_count:
        null = ~valid(column)
        found = [np.where(null, 0, word) for word in found]
        found.insert(0, (~null if nulls_first else null).astype(np.int64))
    return found


def only_word(column: pa.Array) -> Ints | None:
    """The word of each value, if there is one which tells the value (`of_word`); None otherwise. NULLs have any."""
    kind = column.type
    if not (pt.is_integer(kind) or pt.is_temporal(kind) or pt.is_floating(kind) or pt.is_decimal128(kind)):
        return None
    found = words(column)
    return found[0] if len(found) == 1 and not pt.is_interval(kind) else None


def of_word(word: Ints, kind: pa.DataType, *, descending: bool = False) -> pa.Array:
    """The values that have these words, or if `descending` their complements: the inverse of `only_word`."""
    word = ~word if descending else word
    if pt.is_floating(kind):
        return pa.array((word ^ ((word >> 63) & _REST)).view(np.float64), pa.float64()).cast(kind)
    if pt.is_decimal128(kind):
        pairs = np.stack([word, word >> 63], axis=1)
        return pa.Array.from_buffers(kind, len(word), [None, pa.py_buffer(pairs)])
    return pa.array(word.astype(f"i{kind.bit_width // 8}")).view(kind)


def look(column: pa.Array) -> list[Ints]:
    """Words that tell equal values apart which look different: intervals of one length, and what has such inside."""
    if not has_intervals(column.type):
        return []
    if pt.is_struct(column.type):
        return [word for member in column.flatten() for word in look(member)]
    if pt.is_list(column.type):
        return _lists(column, look(column.flatten()))
    return [np.where(valid(column), part, 0) for part in fields(column)[:2]]


def differ(found: Sequence[NDArray[Any]], length: int) -> Mask:
    """For each row, whether some word differs from that of the row before; true for the first row."""
    new = np.zeros(length, np.bool_)
    new[:1] = True
    for word in found:
        new[1:] |= word[1:] != word[:-1]
    return new


def places(found: Sequence[Ints], length: int) -> Ints:
    """The place of each row's words among all different ones, from 0."""
    order = np.lexsort(found[::-1])
    numbers = np.empty(length, np.int64)
    numbers[order] = np.cumsum(differ([word[order] for word in found], length)) - 1
    return numbers


def _words(column: pa.Array) -> list[Ints]:
    kind = column.type
    if pt.is_boolean(kind):
        return [raw(column.cast(pa.int8())).astype(np.int64)]
    if pt.is_floating(kind):
        values = raw(column).astype(np.float64) + 0.0  # one zero
        bits = np.where(np.isnan(values), np.nan, values).view(np.int64)  # one NaN
        return [bits ^ ((bits >> 63) & _REST)]
    if pt.is_decimal(kind):
        return _decimals(column)
    if pt.is_interval(kind):
        months, days, micros = fields(column)
        return [months * 30 + days + micros // DAY, micros % DAY]
    if pt.is_list(kind):
        return _lists(column, ordered_words(column.flatten()))
    if pt.is_struct(kind):
        found = [word for member in column.flatten() for word in ordered_words(member)]
        return found or [np.zeros(len(column), np.int64)]
    if pt.is_integer(kind) or pt.is_temporal(kind):
        return [raw(column).astype(np.int64)]
    return _bytes(column)


def _decimals(column: pa.Array) -> list[Ints]:
    if not len(column):
        return [np.zeros(0, np.int64)]
    width = column.type.bit_width // 64
    flat = np.frombuffer(column.buffers()[1], np.int64)[column.offset * width : (column.offset + len(column)) * width]
    parts = flat.reshape(-1, width)
    lowest = parts[:, 0]
    if (parts[:, 1:] == (lowest >> 63)[:, None]).all():  # all fit into 64 bits
        return [lowest]
    return [parts[:, -1], *(parts[:, i] ^ _SIGN for i in range(width - 2, -1, -1))]


def _bytes(column: pa.Array) -> list[Ints]:
    encoded = column.dictionary_encode()
    dictionary = encoded.dictionary
    place = np.zeros(len(dictionary) + 1, np.int64)  # the last one is for NULLs
    place[pc.sort_indices(dictionary).to_numpy()] = np.arange(len(dictionary))
    return [place[encoded.indices.fill_null(-1).to_numpy()]]


def _lists(column: pa.Array, elements: Sequence[Ints]) -> list[Ints]:
    """Words of lists from those of all their elements."""
    own = places(elements, len(elements[0]))
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths * 8)])
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(own.astype(">i8").tobytes())]
    packed = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(column), buffers)
    return _bytes(packed)

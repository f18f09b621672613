"""64-bit codes of rows: equal rows have equal codes, so sorting and searching codes finds equal rows.

A single column of an integer, date, time or boolean type is its own code, so its codes need no check. Other keys are
hashed, and the user of a code compares the values (`same`). Intervals are
equal here if they look the same: 1 month and 30 days are different rows. Keys have their lengths instead
(`planner.lengths`). Codes do not depend on the process or on the version of a
library, so an index can be stored. Words are mixed with splitmix64's finaliser (Steele, Lea, Flood 2014). The hash of
a text is a polynomial of its bytes, computed for a whole column at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from halfjoin.engine.kernels import indexing, native
from halfjoin.engine.updates.updates import Ints, Mask, ends, where_true

Words = NDArray[np.uint64]

_NULL = np.uint64(0x9AE16A3B2F90404F)
_BASE = np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
_SIGNED = {8 * size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
_AS_BYTES = pa.binary(16)  # of an interval, which Arrow does not compare
_MANY, _DENSE = 1 << 12, 8  # values, and the range of each in which they are marked sooner than sorted
_CHUNK = 1 << 22  # bytes of texts, or elements of arrays, to hash at a time; they take about 100 MB


def is_exact(columns: Sequence[pa.Array]) -> bool:
    """Whether equal codes mean equal values: there is one column, of an integral type and without NULLs."""
    return len(columns) == 1 and columns[0].null_count == 0 and columns[0].type.id in _INTEGRAL


def codes(columns: Sequence[pa.Array], length: int) -> Ints:
    """One int64 code per row, from all columns. An integer has the same code in every width."""
    if not columns:
        return np.zeros(length, np.int64)
    if len(columns) == 1 and columns[0].type.id in _INTEGRAL:
        return integers(columns[0])
    if native.on:
        found = indexing.codes(list(columns), length)
        if found is not None:
            return found
    state = np.zeros(length, np.uint64)
    for column in columns:
        state = mix(state * _BASE + _hash(column))
    signed: Ints = state.view(np.int64)
    return signed


def distinct(values: Ints) -> Ints:
    """The values, each once, ascending. `np.unique` hashes integers first, which takes many times as long as to sort.
    """
    if len(values) >= _MANY:
        least, most = ends(values)
        if most - least < _DENSE * len(values):
            there = np.zeros(most - least + 1, np.bool_)
            there[values - least] = True
            return where_true(there) + least
    ascending = np.sort(values)
    first = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return ascending[first]


def same(left: pa.Array, right: pa.Array) -> Mask:
    """Row by row, whether the values are equal; NULL equals NULL and NaN equals NaN."""
    if pt.is_nested(left.type):
        return _factorized(left, right)
    if pt.is_interval(left.type):
        left, right = left.view(_AS_BYTES), right.view(_AS_BYTES)
    if left.type != right.type and is_integral(left.type):
        left, right = left.cast(pa.int64()), right.cast(pa.int64())
    equal = pc.equal(left, right)
    if pt.is_floating(left.type):
        equal = pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    if left.null_count or right.null_count:
        both = pc.and_(left.is_null(), right.is_null())
        equal = pc.or_(pc.fill_null(equal, False), both)
    mask: Mask = equal.to_numpy(zero_copy_only=False)
    return mask


def same_rows(left: Iterable[pa.Array], right: Iterable[pa.Array], length: int) -> Mask:
    """Row by row, whether the values are equal in all the columns. It is fastest if whole columns are equal."""
    equal = np.ones(length, np.bool_)
    for one, other in zip(left, right, strict=True):
        if not one.equals(other):
            equal &= same(one, other)
    return equal


def factorize(column: pa.Array) -> Ints:
    """A small integer for each value: equal exactly where the values are equal; -1 for NULL."""
    if pt.is_struct(column.type):
        members = np.stack([np.zeros(len(column), np.int64), *map(factorize, column.flatten())], axis=1)
        packed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(8 * members.shape[1]), len(column),
                                                      [None, pa.py_buffer(members.tobytes())])  # fmt: skip
        numbers = factorize(packed)
        numbers[column.is_null().to_numpy(zero_copy_only=False)] = -1
        return numbers
    if pt.is_nested(column.type):
        # Turn a list into the byte string of its elements' numbers: Arrow can compare whole byte strings.
        inner = np.ascontiguousarray(factorize(column.flatten()))
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths * 8)])
        packed = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(column), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(inner.tobytes())]
        )
        numbers = factorize(packed)
        numbers[column.is_null().to_numpy(zero_copy_only=False)] = -1
        return numbers
    if pt.is_interval(column.type):
        column = column.view(_AS_BYTES)
    if pt.is_floating(column.type):
        column = pa.array(integers_of_floats(column), mask=column.is_null().to_numpy(zero_copy_only=False))
    indices = column.dictionary_encode().indices
    filled = indices.fill_null(-1) if indices.null_count else indices
    plain: Ints = filled.to_numpy(zero_copy_only=False).astype(np.int64)
    return plain


def _factorized(left: pa.Array, right: pa.Array) -> Mask:
    numbers = factorize(pa.concat_arrays([left, right]))
    equal: Mask = numbers[: len(left)] == numbers[len(left) :]
    return equal


_INTEGRAL = frozenset(kind.id for kind in (
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.date32(), pa.date64(), pa.time32("s"), pa.time64("us"), pa.timestamp("us"), pa.duration("us"),
))  # fmt: skip


_BOOLEAN, _INT64 = pa.bool_().id, pa.int64().id


def is_integral(kind: pa.DataType) -> bool:
    """Whether values of the type are integers inside."""
    return kind.id in _INTEGRAL


def integers(column: pa.Array) -> Ints:
    """The values as int64; NULL is an arbitrary constant."""
    kind = column.type.id
    if kind == _INT64 and not column.null_count and (length := len(column)):  # the common case
        return np.frombuffer(column.buffers()[1], np.int64, length, 8 * column.offset)
    if kind == _BOOLEAN:
        column = column.cast(pa.int8())
    values = _raw(column, _SIGNED[column.type.bit_width]).astype(np.int64, copy=False)
    if column.null_count:
        values = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL.view(np.int64), values)
    return values


def _raw(column: pa.Array, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The data buffer of a fixed-width column. A NULL has an arbitrary value."""
    data = column.buffers()[1]
    if data is None or not len(column):
        return np.zeros(len(column), dtype)
    width = column.type.bit_width // 8 // dtype.itemsize
    flat = np.frombuffer(data, dtype, count=len(column) * width, offset=column.offset * width * dtype.itemsize)
    return flat.reshape(-1, width) if width > 1 else flat


def integers_of_floats(column: pa.Array) -> Ints:
    """The bits of the values as doubles. All NaNs have one pattern, and both zeros have one."""
    values = _raw(column, np.dtype(f"f{column.type.bit_width // 8}")).astype(np.float64) + 0.0
    return np.where(np.isnan(values), np.nan, values).view(np.int64)


def _hash(column: pa.Array) -> Words:
    kind = column.type
    if pt.is_null(kind):
        return np.full(len(column), _NULL)
    if is_integral(kind):
        return mix(integers(column).view(np.uint64))
    if pt.is_floating(kind):
        hashed = mix(integers_of_floats(column).view(np.uint64))
    elif pt.is_decimal(kind) or pt.is_interval(kind):
        words = _raw(column, np.dtype("u8")).reshape(len(column), kind.bit_width // 64)
        hashed = mix(words[:, 0])
        for word in range(1, words.shape[1]):
            hashed = mix(hashed * _BASE + words[:, word])
    elif pt.is_struct(kind):
        hashed = np.full(len(column), _BASE)
        for member in column.flatten():
            hashed = mix(hashed * _BASE + _hash(member))
    elif pt.is_list(kind):
        hashed = _hash_lists(column)
    else:
        hashed = _hash_bytes(column)
    if column.null_count:
        hashed = np.where(column.is_null().to_numpy(zero_copy_only=False), _NULL, hashed)
    return hashed


def _hash_lists(column: pa.Array) -> Words:
    """Hash arrays, a bounded number of elements at a time."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    hashed = np.empty(len(column), np.uint64)
    for start, stop in _chunks(np.append(0, lengths.cumsum())):
        hashed[start:stop] = polynomial(_hash(column.slice(start, stop - start).flatten()), lengths[start:stop])
    return hashed


def _hash_bytes(column: pa.Array) -> Words:
    """Hash text or binary values, a bounded number of bytes at a time."""
    _, offset_buffer, data_buffer = column.buffers()
    width = np.dtype(np.int64 if pt.is_large_string(column.type) or pt.is_large_binary(column.type) else np.int32)
    count = len(column) + 1
    if offset_buffer is None or not len(column):
        return np.zeros(len(column), np.uint64)
    offsets = np.frombuffer(offset_buffer, width, count=count, offset=column.offset * width.itemsize).astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.zeros(0, np.uint8)
    hashed = np.empty(len(column), np.uint64)
    for start, stop in _chunks(offsets):
        part = data[offsets[start] : offsets[stop]].astype(np.uint64)
        hashed[start:stop] = polynomial(part, np.diff(offsets[start : stop + 1]))
    return hashed


def _chunks(offsets: Ints) -> Iterator[tuple[int, int]]:
    """The first values and the ends of chunks with about `_CHUNK` elements; value `i` has those from `offsets[i]` to
    `offsets[i + 1]`."""
    start = 0
    while start < len(offsets) - 1:
        stop = int(np.searchsorted(offsets, offsets[start] + _CHUNK, "right")) - 1
        stop = min(max(stop, start + 1), len(offsets) - 1)
        yield start, stop
        start = stop


def polynomial(elements: Words, lengths: Ints) -> Words:
    """The hash of each group: the mixed sum over positions p of (element + 1) * base**p, plus the group's length.

    The groups are consecutive and have these `lengths`.
    """
    if not len(lengths):
        return np.zeros(0, np.uint64)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    position = np.arange(len(elements)) - np.repeat(starts, lengths)
    terms = (elements + np.uint64(1)) * _powers(int(lengths.max()))[position]
    totals = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return mix(totals[ends] - totals[starts] + lengths.view(np.uint64))


@lru_cache(maxsize=8)
def _power_table(size: int) -> Words:
    table = np.full(size, _BASE)
    table[0] = 1
    return np.cumprod(table, dtype=np.uint64)


def _powers(length: int) -> Words:
    return _power_table(1 << max(length, 32).bit_length())


def mix(words: Words) -> Words:
    """splitmix64's finaliser: every input bit reaches every output bit."""
    mixed: Words = words >> np.uint64(30)
    mixed ^= words
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed

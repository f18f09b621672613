"""Updates, the only data that flows through plans: Arrow columns with an int64 time and an int64 diff per row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from sys import byteorder
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from halfjoin.engine.kernels import computing, joining, native
from halfjoin.engine.system.value import value
from halfjoin.errors import DataError

Ints = NDArray[np.int64]
Positions = NDArray[Any]  # of any integer width
Mask = NDArray[np.bool_]

MINIMUM = np.iinfo(np.int64).min  # as a time: always
MAXIMUM = np.iinfo(np.int64).max  # as a time: never, as it is above every valid time
TIME, DIFF = "__time", "__diff"
TOO_HEAVY = "the weights of joined rows multiply to more than an int64 holds; use smaller __diff values"
TOO_MANY = "the weights of equal rows add up to more than an int64 holds; use smaller __diff values"
_FEW = 16  # diffs; so few are multiplied faster one by one
_BELOW = 1  # the order of a value to a constant, for kernels (`engine.scalar.threshold`)
ARRAY_BYTES = (1 << 31) - 1  # the most bytes of one Arrow array of texts: its offsets are int32
TOO_LONG = f"the values of one column would take more than {ARRAY_BYTES:,} bytes"


@value
class Updates:
    """`(row, time, diff)` in columns: `columns[name][i]` changes by `diff[i]` copies at `time[i]`.

    Columns are single Arrow arrays of equal length (not chunked, as lookups gather from them). There may be no columns,
    so the length is that of `time`. A constant time or diff may be a broadcast view, which takes no memory.
    Between the stages of a path, diffs may be wider than an int64 (`is_wide`).
    """

    columns: dict[str, pa.Array]
    time: Ints
    diff: Ints

    def __len__(self) -> int:
        return len(self.time)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns, times and diffs; a broadcast view holds none."""
        total = 0 if self.time.strides == (0,) else self.time.nbytes
        total += 0 if self.diff.strides == (0,) else self.diff.nbytes
        length = len(self.time)
        for column in self.columns.values():
            kind = column.type
            plain = kind.id in _FIXED and not column.null_count
            total += length * kind.bit_width // 8 if plain else bytes_of(column)
        return total

    def take(self, positions: Positions) -> Updates:
        """The updates at these positions, in their order."""
        columns = taken(self.columns, positions) if native.on else gathered(self.columns, indices_of(positions))
        return Updates(columns, _at(self.time, positions), _at(self.diff, positions))

    def filter(self, mask: Mask) -> Updates:
        """The updates where the mask is true. If it is true everywhere, the same object."""
        positions = where_true(mask)
        return self if len(positions) == len(mask) else self.take(positions)

    def where(self, mask: pa.Array, names: Iterable[str] | None = None) -> Updates:
        """As `filter`, for a boolean array of Arrow, in which NULL is as false. `names`: the columns wanted."""
        wanted = self if names is None else self.select(names)
        found = wanted._by_kernel([mask], [], ())
        return wanted.filter(mask.fill_null(False).to_numpy(zero_copy_only=False)) if found is None else found

    def meeting(
        self, tested: Iterable[str], constants: list[pa.Array], allowed: tuple[int, ...],
        names: Iterable[str] | None = None,
    ) -> Updates | None:  # fmt: skip
        """The updates with values in the tested columns that are ordered to constants as `allowed` says
        (`engine.scalar.threshold`). `names`: the columns wanted. None: there is no kernel for some type."""
        wanted = self if names is None else self.select(names)
        return wanted._by_kernel([*map(self.columns.__getitem__, tested)], constants, allowed)

    def _by_kernel(
        self, tested: list[pa.Array], constants: list[pa.Array], allowed: tuple[int, ...]
    ) -> Updates | None:
        made = joining.filtered([*self.columns.values()], self.time, self.diff, tested, constants, allowed)
        if made is None or made is True:
            return self if made else None
        count, columns, time, diff = made
        return Updates(
            dict(zip(self.columns, columns, strict=True)),
            constant(self.time.item(0), count) if time is None else time,
            constant(self.diff.item(0), count) if diff is None else diff,
        )

    def slice(self, start: int, stop: int) -> Updates:
        """A view of a contiguous part, without a copy. For the whole, the same object."""
        if start == 0 and stop == len(self):
            return self
        return Updates(
            {name: column.slice(start, stop - start) for name, column in self.columns.items()},
            self.time[start:stop],
            self.diff[start:stop],
        )

    def select(self, names: Iterable[str]) -> Updates:
        """Only these columns, in this order."""
        return Updates({name: self.columns[name] for name in names}, self.time, self.diff)

    def renamed(self, pairs: Sequence[tuple[str, str]]) -> Updates:
        """Only the columns of `(name, new name)`, under the new names."""
        return Updates({new: self.columns[name] for name, new in pairs}, self.time, self.diff)

    def with_columns(self, columns: Mapping[str, pa.Array]) -> Updates:
        """The updates with these columns added or replaced."""
        return Updates({**self.columns, **columns}, self.time, self.diff)

    def within(self, low: int, high: int) -> bool:
        """Whether all times are in `[low, high)`."""
        if self.time.strides == (0,) and len(self.time):  # most batches have one time
            return low <= self.time.item(0) < high
        if not len(self.time):
            return True
        first, last = ends(self.time)
        return low <= first and last < high

    def before(self, end: int) -> Updates:
        """The updates with times below `end`. If all are, the same object."""
        if self.time.strides == (0,) and len(self):
            return self if self.time.item(0) < end else self.slice(0, 0)
        if len(self) <= _FEW:
            return self.filter(self.time < end)
        if ends(self.time)[1] < end:
            return self
        found = self._by_kernel([indices_of(self.time)], [pa.array([end], pa.int64())], (_BELOW,))
        return self.filter(self.time < end) if found is None else found

    def not_before(self, since: int) -> Updates:
        """The updates with times below `since` raised to `since`."""
        if not len(self) or ends(self.time)[0] >= since:
            return self
        return Updates(self.columns, np.maximum(self.time, since), self.diff)

    def settled(self, closed: int) -> Updates:
        """The updates with times below `closed` at the last of these, so that most histories have one time. Times and
        diffs that are all the same take no memory."""
        if not len(self):
            return self
        time = self.time
        if time.strides == (0,):
            time = constant(max(time.item(0), closed - 1), len(time))
        elif ends(time)[1] < closed:
            time = constant(closed - 1, len(time))
        else:
            time = np.maximum(time, closed - 1)
        return Updates(self.columns, time, self.diff if is_wide(self.diff) else _as_one(self.diff))

    def table(self, *, changes: bool) -> pa.Table:
        """The updates as an Arrow table. With `changes`, the columns `__time` and `__diff` come last."""
        columns = dict(self.columns)
        if changes:
            columns[TIME], columns[DIFF] = indices_of(self.time), indices_of(self.diff)
        if not columns:  # `pa.table` of no columns has no rows
            return pa.table({"": pa.nulls(len(self))}).select([])
        return pa.Table.from_arrays(list(columns.values()), names=list(columns))


_FIXED = frozenset(kind.id for kind in (
    pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32(), pa.time64("us"),
    pa.timestamp("us"), pa.decimal128(1), pa.decimal256(1),
))  # fmt: skip


def is_fixed(kind: pa.DataType) -> bool:
    """Whether the values have a fixed width of whole bytes."""
    return kind.id in _FIXED


def bytes_of(column: pa.Array) -> int:
    """The bytes of a column. Arrow takes twenty times as long to count those of values of fixed width."""
    kind = column.type
    if kind.id not in _FIXED:
        return int(column.nbytes)
    size: int = len(column) * kind.bit_width // 8
    return size + (len(column) + 7) // 8 if column.null_count else size


_INDICES = {np.dtype(np.int64): pa.int64(), np.dtype(np.uint32): pa.uint32()}


def indices_of(positions: Positions) -> pa.Array:
    """Positions as an Arrow array, usually without a copy. It skips the slow inspections of `pa.array`."""
    kind = _INDICES.get(positions.dtype)
    if kind is None:
        return pa.array(positions)
    return pa.Array.from_buffers(kind, len(positions), [None, pa.py_buffer(np.ascontiguousarray(positions))])


def where_true(mask: Mask) -> Ints:
    """The positions at which a mask is true. For a few rows it costs a fifth of `np.flatnonzero`."""
    found: Ints = mask.nonzero()[0]
    return found


def _as_one(numbers: Ints) -> Ints:
    """The numbers, as a broadcast view if they are all the same."""
    if numbers.strides == (0,) or numbers[0] != numbers[-1] or (numbers != numbers[0]).any():
        return numbers
    return constant(numbers.item(0), len(numbers))


def _at(numbers: Ints, positions: Positions) -> Ints:
    """The numbers at positions; a broadcast view stays one."""
    if numbers.strides == (0,) and len(numbers):
        return constant(numbers.item(0), len(positions))
    return numbers[positions]


_TAKE = pc.get_function("array_take")
_UNCHECKED = pc.TakeOptions(boundscheck=False)
_LIST = pa.list_(pa.null()).id


def gather(column: pa.Array, indices: pa.Array) -> pa.Array:
    """The values at positions, without a check of bounds. For a few rows it costs half of `take`.

    Raises:
        DataError: the texts or arrays do not fit into one array.
    """
    _check_elements(column, indices)
    try:
        return _TAKE.call([column, indices], _UNCHECKED)
    except pa.ArrowInvalid:
        raise DataError(TOO_LONG) from None


def gathered(columns: Mapping[str, pa.Array], indices: pa.Array) -> dict[str, pa.Array]:
    """As `gather`, for several columns."""
    found = {}
    try:
        for name in columns:
            _check_elements(columns[name], indices)
            found[name] = _TAKE.call([columns[name], indices], _UNCHECKED)
    except pa.ArrowInvalid:
        raise DataError(TOO_LONG) from None
    return found


def _check_elements(column: pa.Array, indices: pa.Array) -> None:
    """Refuse arrays that have more elements together than offsets can count: Arrow's take makes wrong offsets then."""
    if column.type.id == _LIST and len(indices) > 1:
        lengths = _TAKE.call([pc.list_value_length(column), indices], _UNCHECKED)
        if (pc.sum(lengths).as_py() or 0) > ARRAY_BYTES:
            raise DataError(TOO_LONG)


def taken(columns: Mapping[str, pa.Array], positions: Positions) -> dict[str, pa.Array]:
    """The values of columns at positions.

    Raises:
        DataError: the texts do not fit into one array.
    """
    if columns:
        made = joining.gather([[*columns.values()]], positions, [len(positions)])
        if made is not None:
            return dict(zip(columns, made, strict=True))
    return gathered(columns, indices_of(positions))


def product(left: Ints, right: Ints) -> Ints:
    """The products of diffs, row by row. If one does not fit into an int64, all are Python integers (`is_wide`)."""
    if left.strides == (0,) and len(left) and left.item(0) == 1 and not is_wide(right):
        return right
    if len(left) <= _FEW:
        few = [one * other for one, other in zip(left.tolist(), right.tolist(), strict=True)]
        fits_int64 = not [one for one in few if not MINIMUM <= one <= MAXIMUM]
        return np.array(few, np.int64 if fits_int64 else object)
    if len(left) and (is_wide(left) or is_wide(right) or bits(left) + bits(right) > 62):
        exact: Ints = left.astype(object) * right.astype(object)
        return exact if max(exact) > MAXIMUM or min(exact) < MINIMUM else exact.astype(np.int64)
    return left * right


def is_wide(diffs: Ints) -> bool:
    """Whether some diffs may not fit into an int64. Such diffs occur inside a path; its end turns them into errors."""
    return diffs.dtype == object


def some_below_zero(diffs: Ints) -> bool:
    """Whether a diff is negative."""
    if not len(diffs):
        return False
    return ends(diffs)[0] < 0


def both_ways(diffs: Ints) -> bool:
    """Whether some diffs are negative and some positive."""
    if not len(diffs):
        return False
    least, most = ends(diffs)
    return least < 0 < most


def bits(diffs: Ints) -> int:
    """The number of binary digits of the largest absolute value."""
    if diffs.strides == (0,):
        return abs(int(diffs[0])).bit_length()
    return int(np.bitwise_or.reduce(np.abs(diffs).view(np.uint64))).bit_length()  # abs(least) is 2**63


def ends(values: Ints) -> tuple[int, int]:
    """The least and the greatest of one value or more."""
    return computing.bounds(values) or (int(values.min()), int(values.max()))


def constant(value: int, length: int) -> Ints:
    """An array of `length` times the same int64, as a broadcast view that takes no memory."""
    return np.ndarray((length,), np.int64, int(value).to_bytes(8, byteorder, signed=True), strides=(0,))


def empty(schema: Mapping[str, pa.DataType]) -> Updates:
    """Zero updates with these columns."""
    none = np.zeros(0, np.int64)
    return Updates({name: pa.nulls(0, kind) for name, kind in schema.items()}, none, none)


def concat(parts: Sequence[Updates]) -> Updates:
    """The concatenated parts. There must be at least one part, and all must have the same columns."""
    if len(parts) == 1:
        return parts[0]
    columns = {}
    try:
        for name in parts[0].columns:
            columns[name] = pa.concat_arrays([part.columns[name] for part in parts])
    except (pa.ArrowInvalid, pa.ArrowCapacityError):  # the texts do not fit into one array
        raise DataError(TOO_LONG) from None
    times, diffs = [part.time for part in parts], [part.diff for part in parts]
    return Updates(columns, _concat_ints(times), _concat_ints(diffs))


def repeated(one: pa.Array, length: int) -> pa.Array:
    """The value of an array of one, so many times (of lists, at least once). The caller knows that texts fit."""
    size = one.type.bit_width // 8 if pt.is_primitive(one.type) or pt.is_decimal(one.type) else 0
    if not size or one.type.bit_width % 8 or one.null_count:
        return pa.repeat(one[0], length)
    value = one.buffers()[1][one.offset * size : (one.offset + 1) * size].to_pybytes()
    return pa.Array.from_buffers(one.type, length, [None, pa.py_buffer(value * length)])


def chained(arrays: Iterable[pa.Array]) -> pa.Array:
    """The values of arrays, one after the other. There must be at least one array, and all must have the same type.

    Raises:
        DataError: the values do not fit into one array. No more arrays are asked for then.
    """
    found, size = list[pa.Array](), 0
    for array in arrays:
        found.append(array)
        size += int(array.nbytes)
        if size > ARRAY_BYTES:
            raise DataError(TOO_LONG)
    try:
        return pa.concat_arrays(found) if len(found) > 1 else found[0]
    except pa.ArrowInvalid:
        raise DataError(TOO_LONG) from None


def fitting(parts: Iterable[Updates]) -> Iterator[list[Updates]]:
    """The parts in order, in groups of neighbours. Each group is as large as `concat` allows."""
    group, sizes = list[Updates](), dict[str, int]()
    for part in parts:
        own = {name: int(column.nbytes) for name, column in part.columns.items()}
        if group and any(sizes[name] + size > ARRAY_BYTES for name, size in own.items()):
            yield group
            group, sizes = [], {}
        group.append(part)
        sizes = {name: sizes.get(name, 0) + size for name, size in own.items()}
    if group:
        yield group


def fits(parts: Sequence[Updates], size: int) -> bool:
    """Whether `concat` can put all the parts, `size` bytes in all, into one array per column."""
    return size <= ARRAY_BYTES or len(next(fitting(parts), parts)) == len(parts)


def _concat_ints(parts: list[Ints]) -> Ints:
    """The concatenated parts. If all parts are broadcast views of one value, the result is one as well."""
    if len(parts[0]) and parts[0].strides != (0,):
        return np.concatenate(parts)
    filled = [part for part in parts if len(part)]
    if filled and all(part.strides == (0,) and part[0] == filled[0][0] for part in filled):
        return constant(int(filled[0][0]), sum(map(len, filled)))
    return np.concatenate(parts)

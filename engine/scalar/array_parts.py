"""Kernels of parts of arrays of one dimension, on the lists' offsets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from halfjoin.engine.scalar.arrays import elements
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.bounds import check, sizes
from halfjoin.engine.scalar.comparison import kernel_for
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.intervals import length
from halfjoin.engine.scalar.values import Kernel, call, from_numpy, mask_of, on_arrays, raw, valid
from halfjoin.sql.expr import Call

_Ints = NDArray[np.int64]
_length = call("list_value_length")


def lengths_of(array: Any) -> _Ints:
    """The number of elements of each list; 0 for NULL."""
    found: _Ints = np.where(valid(array), raw(_length(array)), 0).astype(np.int64)
    return found


def lists_of(rows: _Ints, values: Any, n: int, null: NDArray[np.bool_], type: Any) -> Any:
    """Lists of values from the ascending numbers of the rows that they belong to."""
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int32)
    mask = pa.array(null) if null.any() else None
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=mask).cast(type)


def positions(array: Any) -> tuple[_Ints, Any, _Ints]:
    """Of each element: its row, its value, and its position in the list, from 1."""
    rows, values = elements(array)
    count = lengths_of(array)
    starts = np.cumsum(count) - count
    return rows, values, np.arange(len(rows)) - starts[rows] + 1


def _array_fill(expr: Call) -> Kernel:
    """So many copies of each value. The count is an array, which has one element, or none for an empty result."""
    type = arrow_type(expr.type)

    @on_arrays
    def run(value: Any, dimensions: Any) -> Any:
        n, given = len(dimensions), lengths_of(dimensions)
        rows, counts = elements(dimensions)
        missing, negative = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        missing[rows[~valid(counts)]] = True
        copies = np.zeros(n, np.int64)
        copies[rows] = np.where(valid(counts), raw(counts), 0)
        negative[rows] = copies[rows] < 0
        for bad, reason in (
            (~valid(dimensions), "dimension array or low bound array cannot be null"),
            (missing, "dimension values cannot be null"),
            (given > 1, "several dimensions must be written: ARRAY[2, 3]"),
            (negative, "array size exceeds the maximum allowed"),
        ):  # fmt: skip
            if bad.any():
                raise Failed(reason, bad, strict=False)
        check(copies * np.maximum(sizes(value), 1), n, strict=False)
        filled = np.repeat(np.arange(n), copies)
        return lists_of(filled, value.take(pa.array(filled)), n, np.zeros(n, np.bool_), type)

    return run


def _trim_array(expr: Call) -> Kernel:
    type = arrow_type(expr.type)

    @on_arrays
    def run(array: Any, number: Any) -> Any:
        null = ~(valid(array) & valid(number))
        count, less = lengths_of(array), np.where(null, 0, raw(number)).astype(np.int64)
        if (bad := ((less < 0) | (less > count)) & ~null).any():
            first = count[int(np.flatnonzero(bad)[0])]
            raise Failed(f"number of elements to trim must be between 0 and {first}", bad & (count == first))
        rows, values, at = positions(array)
        kept = (at <= (count - less)[rows]) & ~null[rows]
        return lists_of(rows[kept], values.filter(pa.array(kept)), len(array), null, type)

    return run


def _same(equal: Kernel, values: Any, wanted: Any) -> NDArray[np.bool_]:
    """Where a value IS NOT DISTINCT FROM the wanted one."""
    both: NDArray[np.bool_] = mask_of(pc.is_null(values)) & mask_of(pc.is_null(wanted))
    return mask_of(equal(values, wanted)) | both


def _found(expr: Call, keep: bool) -> Kernel:
    """array_positions (`keep`: the positions of equal elements), array_remove (the other elements)."""
    equal, type = kernel_for("=", expr.args[1].type), arrow_type(expr.type)

    @on_arrays
    def run(array: Any, value: Any) -> Any:
        rows, values, at = positions(array)
        hit = _same(equal, values, value.take(pa.array(rows)))
        if not keep:
            return lists_of(rows[~hit], values.filter(pa.array(~hit)), len(array), ~valid(array), type)
        return lists_of(rows[hit], pa.array(at[hit].astype(np.int32)), len(array), ~valid(array), type)

    return run


def _array_position(expr: Call) -> Kernel:
    """The position of the first element, from a start on, that IS NOT DISTINCT FROM the value."""
    equal = kernel_for("=", expr.args[1].type)

    @on_arrays
    def run(array: Any, value: Any, start: Any = None) -> Any:
        rows, values, at = positions(array)
        hits = _same(equal, values, value.take(pa.array(rows)))
        if start is not None:
            some = np.bincount(rows, minlength=len(array)) > 0
            nulls = np.bincount(rows[~valid(values)], minlength=len(array)) > 0
            asked = some & (valid(value) | nulls)  # else there is nothing to find, from wherever
            if (bad := ~valid(start) & valid(array) & asked).any():
                raise Failed("initial position must not be null", bad, strict=False)
            hits &= at >= np.where(valid(start), raw(start), 0)[rows]
        hit = np.flatnonzero(hits)
        first_rows, first = np.unique(rows[hit], return_index=True)
        position = np.zeros(len(array), np.int32)
        position[first_rows] = at[hit][first]
        return from_numpy(position, pa.int32(), position == 0)

    return run


def _array_replace(expr: Call) -> Kernel:
    equal, type = kernel_for("=", expr.args[1].type), arrow_type(expr.type)

    @on_arrays
    def run(array: Any, value: Any, by: Any) -> Any:
        rows, values = elements(array)
        index = pa.array(rows)
        hit = _same(equal, values, value.take(index))
        made = pa.concat_arrays([values, by.take(index)]).take(pa.array(np.arange(len(rows)) + hit * len(rows)))
        return lists_of(rows, made, len(array), ~valid(array), type)

    return run


def _sets(compare: Callable[[set[Any], bool, set[Any], bool], bool]) -> Callable[[Call], Kernel]:
    """A comparison of the sets of elements, which also gets whether each list has a NULL."""

    @on_arrays
    def run(a: Any, b: Any) -> Any:
        found: list[bool | None] = []
        for left, right in zip(_keys(a), _keys(b), strict=True):
            if left is None or right is None:
                found.append(None)
                continue
            first, second = set(left), set(right)
            found.append(compare(first - {None}, None in first, second - {None}, None in second))
        return pa.array(found, pa.bool_())

    return lambda _: run


def _keys(array: Any) -> list[Any]:
    """A value in Python for each, equal for those that are equal: of intervals their length, of moments their number,
    as Python has not all of them."""
    type = array.type
    if pt.is_interval(type):
        made: list[Any] = length(array).to_pylist()
    elif pt.is_temporal(type):
        made = raw(array).tolist()
    elif pt.is_list(type):
        items, ends = _keys(array.values), array.offsets.to_pylist()
        made = [tuple(items[start:end]) for start, end in pairwise(ends)]
    elif pt.is_struct(type):
        made = list(zip(*map(_keys, array.flatten()), strict=True))
    elif pt.is_floating(type):
        made = ["NaN" if value != value else value for value in array.to_pylist()]
    else:
        made = array.to_pylist()
    return [value if ok else None for value, ok in zip(made, valid(array).tolist(), strict=True)]


def _subscripts(expr: Call) -> Kernel:
    """The numbers of the elements of arrays with so many, from the first number, or backwards to it."""
    type = arrow_type(expr.type)

    @on_arrays
    def run(lengths: Any, first: Any, backwards: Any) -> Any:
        count = np.where(valid(lengths), raw(lengths), 0).astype(np.int64)
        rows = np.repeat(np.arange(len(count)), count)
        place = np.arange(len(rows)) - (np.cumsum(count) - count)[rows]
        numbers = raw(first)[rows] + np.where(mask_of(backwards)[rows], count[rows] - 1 - place, place)
        return lists_of(rows, pa.array(numbers.astype(np.int32)), len(count), np.zeros(len(count), np.bool_), type)

    return run


ARRAY_PARTS: dict[str, Callable[[Call], Kernel]] = {
    "subscripts": _subscripts,
    "array_fill": _array_fill,
    "trim_array": _trim_array,
    "array_positions": lambda expr: _found(expr, True),
    "array_position": _array_position,
    "array_remove": lambda expr: _found(expr, False),
    "array_replace": _array_replace,
    "@>": _sets(lambda a, _, b, null: b <= a and not null),
    "<@": _sets(lambda a, null, b, _: a <= b and not null),
    "&&": _sets(lambda a, _, b, __: not a.isdisjoint(b)),
}

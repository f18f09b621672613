"""Kernels of parts and bounds of arrays, on the lists' offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from halfjoin.engine.scalar.arrays import elements
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.comparison import kernel_for
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import Kernel, call, from_numpy, mask_of, on_arrays, raw, valid
from halfjoin.sql.expr import Call

_Ints = NDArray[np.int64]
_length = call("list_value_length")


def lengths_of(array: Any) -> _Ints:
    """The number of elements of each list; 0 for NULL."""
    found: _Ints = np.where(valid(array), raw(_length(array)), 0).astype(np.int64)
    return found


def _bound(lower: bool) -> Callable[[Call], Kernel]:
    @on_arrays
    def run(array: Any, dimension: Any) -> Any:
        count = lengths_of(array)
        known = (count > 0) & valid(dimension) & (np.where(valid(dimension), raw(dimension), 0) == 1)
        return from_numpy((np.ones_like(count) if lower else count).astype(np.int32), pa.int32(), ~known)

    return lambda _: run


def _array_ndims(_: Call) -> Kernel:
    return on_arrays(lambda array: from_numpy(np.ones(len(array), np.int32), pa.int32(), lengths_of(array) == 0))


def _array_dims(_: Call) -> Kernel:
    @on_arrays
    def run(array: Any) -> Any:
        count = lengths_of(array)
        last = pa.array(count, mask=count == 0).cast(pa.string())
        return pc.binary_join_element_wise("[1:", last, "]", "")

    return run


def _lists(rows: _Ints, values: Any, n: int, null: NDArray[np.bool_], type: Any) -> Any:
    """Lists of values from the ascending numbers of the rows that they belong to."""
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int32)
    mask = pa.array(null) if null.any() else None
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=mask).cast(type)


def _positions(array: Any) -> tuple[_Ints, Any, _Ints]:
    """Of each element: its row, its value, and its position in the list, from 1."""
    rows, values = elements(array)
    count = lengths_of(array)
    starts = np.cumsum(count) - count
    return rows, values, np.arange(len(rows)) - starts[rows] + 1


def _slice(expr: Call) -> Kernel:
    type = arrow_type(expr.type)

    @on_arrays
    def run(array: Any, first: Any, last: Any) -> Any:
        null = ~(valid(array) & valid(first) & valid(last))
        low, high = (np.where(null, 0, raw(bound)).astype(np.int64) for bound in (first, last))
        rows, values, at = _positions(array)
        kept = (at >= low[rows]) & (at <= high[rows]) & ~null[rows]
        return _lists(rows[kept], values.filter(pa.array(kept)), len(array), null, type)

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
        rows, values, at = _positions(array)
        kept = (at <= (count - less)[rows]) & ~null[rows]
        return _lists(rows[kept], values.filter(pa.array(kept)), len(array), null, type)

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
        rows, values, at = _positions(array)
        hit = _same(equal, values, value.take(pa.array(rows)))
        if not keep:
            return _lists(rows[~hit], values.filter(pa.array(~hit)), len(array), ~valid(array), type)
        return _lists(rows[hit], pa.array(at[hit].astype(np.int32)), len(array), ~valid(array), type)

    return run


def _array_position(expr: Call) -> Kernel:
    """The position of the first element, from a start on, that IS NOT DISTINCT FROM the value."""
    equal = kernel_for("=", expr.args[1].type)

    @on_arrays
    def run(array: Any, value: Any, start: Any = None) -> Any:
        rows, values, at = _positions(array)
        hits = _same(equal, values, value.take(pa.array(rows)))
        if start is not None:
            full = np.bincount(rows, minlength=len(array)) > 0  # the start of an empty array does not matter
            if (bad := ~valid(start) & valid(array) & full).any():
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
        return _lists(rows, made, len(array), ~valid(array), type)

    return run


def _sets(compare: Callable[[set[Any], bool, set[Any], bool], bool]) -> Callable[[Call], Kernel]:
    """A comparison of the sets of elements, which also gets whether each list has a NULL."""

    @on_arrays
    def run(a: Any, b: Any) -> Any:
        found: list[bool | None] = []
        for left, right in zip(a.to_pylist(), b.to_pylist(), strict=True):
            if left is None or right is None:
                found.append(None)
                continue
            first, second = {_key(item) for item in left}, {_key(item) for item in right}
            found.append(compare(first - {None}, None in first, second - {None}, None in second))
        return pa.array(found, pa.bool_())

    return lambda _: run


def _key(item: Any) -> Any:
    return "NaN" if item != item else item


ARRAY_PARTS: dict[str, Callable[[Call], Kernel]] = {
    "array_length": _bound(False),
    "array_upper": _bound(False),
    "array_lower": _bound(True),
    "array_ndims": _array_ndims,
    "array_dims": _array_dims,
    "slice": _slice,
    "trim_array": _trim_array,
    "array_positions": lambda expr: _found(expr, True),
    "array_position": _array_position,
    "array_remove": lambda expr: _found(expr, False),
    "array_replace": _array_replace,
    "@>": _sets(lambda a, _, b, null: b <= a and not null),
    "<@": _sets(lambda a, null, b, _: a <= b and not null),
    "&&": _sets(lambda a, _, b, __: not a.isdisjoint(b)),
}

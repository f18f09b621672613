"""Kernels of arrays of arrays, which are lists of lists; see `sql.functions.nested_arrays`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from halfjoin.engine.scalar.array_parts import lengths_of, lists_of, positions
from halfjoin.engine.scalar.arrays import ARRAYS
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import Kernel, mask_of, on_arrays, raw, valid
from halfjoin.sql.expr import Call, Literal

_Ints = NDArray[np.int64]
_MESSAGES = {
    "array": "multidimensional arrays must have array expressions with matching dimensions",
    "agg": "cannot accumulate arrays of different dimensionality",
    "cat": "cannot concatenate incompatible arrays",
}


def shape(array: Any) -> _Ints:
    """The length of each dimension (a column) of each array (a row); 0 for NULL and for an array without elements."""
    count = lengths_of(array)
    if not pt.is_list(array.type.value_type):
        return count[:, None]
    inner = shape(array.flatten())
    if not len(inner):
        return np.hstack([count[:, None], np.zeros((len(array), inner.shape[1]), np.int64)])
    first = np.where(count > 0, np.cumsum(count) - count, 0)
    return np.hstack([count[:, None], np.where((count > 0)[:, None], inner[first], 0)])


def uneven(array: Any) -> tuple[NDArray[np.bool_], NDArray[np.bool_], Any]:
    """Of arrays of arrays: which have parts of different lengths, which have parts without elements, and the array
    without those parts."""
    rows, parts, _ = positions(array)
    own = shape(parts)
    none = own[:, 0] == 0
    first = np.zeros(len(array), np.int64)
    first[rows[::-1]] = np.arange(len(rows))[::-1]
    differ, empty = np.zeros(len(array), np.bool_), np.zeros(len(array), np.bool_)
    differ[rows[(own != own[first[rows]]).any(axis=1)]] = True
    empty[rows[none]] = True
    if none.any():
        array = lists_of(rows[~none], parts.filter(pa.array(~none)), len(array), ~valid(array), array.type)
    return differ, empty, array


def _shaped(expr: Call) -> Kernel:
    how = expr.args[1].value if isinstance(expr.args[1], Literal) else None

    @on_arrays
    def run(array: Any, _: Any) -> Any:
        differ, empty, whole = uneven(array)
        if how == "agg" and empty.any():
            rows, parts, _ = positions(array)
            null = np.zeros(len(array), np.bool_)
            null[rows[mask_of(parts.is_null())]] = True
            if null.any():
                raise Failed("cannot accumulate null arrays", null)
            raise Failed("cannot accumulate empty arrays", empty)
        if how != "fill" and differ.any():
            raise Failed(_MESSAGES[str(how)], differ)
        return whole

    return run


def _with_part(name: str) -> Callable[[Call], Kernel]:
    """`whole || part`: a part without elements adds nothing."""

    def build(expr: Call) -> Kernel:
        type = arrow_type(expr.type)
        add = ARRAYS[name](expr)

        @on_arrays
        def run(whole: Any, part: Any) -> Any:
            some, empty = lengths_of(part) > 0, lengths_of(whole) == 0
            if (bad := some & empty).any():
                raise Failed(f"an array that is joined with nothing has one dimension less than {expr.type}", bad,
                             strict=False)
            given = (part, whole) if name == "array_prepend" else (whole, part)
            made = add(*given)
            nothing = pa.array([[]], type)
            chosen = np.where(some, 0, np.where(valid(whole) | ~valid(part), 1, 2))
            every = pa.concat_arrays([made, whole.cast(type), nothing])
            n = len(whole)
            return every.take(pa.array(np.where(chosen == 2, 2 * n, chosen * n + np.arange(n))))

        return run

    return build


@on_arrays
def _flat(array: Any) -> Any:
    """The elements of all dimensions of each array."""
    counts = np.prod(shape(array), axis=1)
    values = array
    while pt.is_list(values.type):
        values = values.flatten()
    rows = np.repeat(np.arange(len(array)), counts)
    return lists_of(rows, values, len(array), ~valid(array), pa.list_(values.type))


def _in_shape(expr: Call) -> Kernel:
    """The elements of the first array in the shape of the second, which has as many."""
    type = arrow_type(expr.type)

    @on_arrays
    def run(elements: Any, array: Any) -> Any:
        return _shaped_as(array, elements.flatten(), type)

    return run


def _shaped_as(array: Any, values: Any, type: Any) -> Any:
    if not pt.is_list(type):
        return values
    rows, parts, _ = positions(array)
    return lists_of(rows, _shaped_as(parts, values, type.value_type), len(array), ~valid(array), type)


def sliced(expr: Call) -> Kernel:
    """`a[1:2][1:1]`: bounds of one dimension after the other."""
    type = arrow_type(expr.type)

    @on_arrays
    def run(array: Any, *bounds: Any) -> Any:
        null = ~valid(array)
        for bound in bounds:
            null = null | ~valid(bound)
        known = [np.where(null, 0, raw(bound)).astype(np.int64) for bound in bounds]
        return _slice(array, known, null).cast(type)

    return run


def _slice(array: Any, bounds: list[_Ints], null: NDArray[np.bool_]) -> Any:
    rows, values, at = positions(array)
    kept = (at >= bounds[0][rows]) & (at <= bounds[1][rows]) & ~null[rows]
    rows, values = rows[kept], values.filter(pa.array(kept))
    if bounds[2:]:
        values = _slice(values, [bound[rows] for bound in bounds[2:]], ~valid(values))
        some = lengths_of(values) > 0
        rows, values = rows[some], values.filter(pa.array(some))
    return lists_of(rows, values, len(array), null, array.type)


def _bound(lower: bool) -> Callable[[Call], Kernel]:
    @on_arrays
    def run(array: Any, dimension: Any) -> Any:
        lengths = shape(array)
        asked = np.where(valid(dimension), raw(dimension), 0).astype(np.int64)
        there = (asked >= 1) & (asked <= lengths.shape[1]) & (lengths[:, 0] > 0)
        found = lengths[np.arange(len(array)), np.where(there, asked - 1, 0)]
        return pa.array(np.where(lower, 1, found).astype(np.int32), mask=~there)

    return lambda _: run


def _ndims(_: Call) -> Kernel:
    @on_arrays
    def run(array: Any) -> Any:
        lengths = shape(array)
        return pa.array(np.full(len(array), lengths.shape[1], np.int32), mask=lengths[:, 0] == 0)

    return run


def _dims(_: Call) -> Kernel:
    @on_arrays
    def run(array: Any) -> Any:
        lengths = shape(array)
        texts = [pc.binary_join_element_wise("[1:", pa.array(one, mask=lengths[:, 0] == 0).cast(pa.string()), "]", "")
                 for one in lengths.T]  # fmt: skip
        return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "")

    return run


def _cardinality(_: Call) -> Kernel:
    @on_arrays
    def run(array: Any) -> Any:
        return pa.array(np.prod(shape(array), axis=1).astype(np.int32), mask=~valid(array))

    return run


NESTED_ARRAYS: dict[str, Callable[[Call], Kernel]] = {
    "array shape": _shaped,
    "append part": _with_part("array_append"),
    "prepend part": _with_part("array_prepend"),
    "flat array": lambda _: _flat,
    "in shape": _in_shape,
    "slice": sliced,
    "array_length": _bound(False),
    "array_upper": _bound(False),
    "array_lower": _bound(True),
    "array_ndims": _ndims,
    "array_dims": _dims,
    "cardinality": _cardinality,
}

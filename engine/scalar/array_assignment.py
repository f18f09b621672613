"""Kernels that assign to elements and slices of arrays: `a[2] = 5`, `a[2:3] = ARRAY[5, 6]`.

An element is a slice of one. What is new gets the elements of the old array at the same subscripts, NULL where the old
array has none, and the elements of the source, in their order, in the slice.

PostgreSQL's arrays begin at any subscript. These begin at 1, so an assignment that would make another begin fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.bounds import check, sizes
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.nested_arrays import shape
from halfjoin.engine.scalar.values import Kernel, on_arrays, raw, valid
from halfjoin.engine.updates.updates import ARRAY_BYTES, TOO_LONG
from halfjoin.errors import DataError
from halfjoin.sql.expr import Call, Literal

_Ints = NDArray[np.int64]
_BEGIN = "arrays begin at subscript 1 here"


def _with_element(expr: Call) -> Kernel:
    """`(array, value, subscripts)`: the array with the value at the subscripts, one for each dimension."""
    type = arrow_type(expr.type)

    @on_arrays
    def run(array: Any, value: Any, *subscripts: Any) -> Any:
        at = _numbers(subscripts)
        old = shape(array)
        none = old[:, 0] == 0
        if len(subscripts) > 1:
            _fail(((at < 1) | (at > old)).any(axis=1) & ~none, "array subscript out of range")
        _begins_at_one(at, none)
        new = np.maximum(old, at)
        ones = np.arange(len(array))
        return _put(array, old, new, at, at, value, ones, type)

    return run


def _with_slice(expr: Call) -> Kernel:
    """`(array, source, which, bounds)`: the array with the source's elements in the slice. `which`: `1` for each bound
    that is written, `0` for one that is the array's own."""
    type, which = arrow_type(expr.type), expr.args[2]
    assert isinstance(which, Literal)
    written = np.array([sign == "1" for sign in str(which.value)])

    @on_arrays
    def run(array: Any, source: Any, _: Any, *bounds: Any) -> Any:
        n, old = len(array), shape(array)
        given = _numbers(bounds)
        first, last = given[:, ::2], given[:, 1::2]
        some, none = valid(source), old[:, 0] == 0
        own = ~none[:, None]
        first = np.where(~written[::2] & own, 1, first)
        last = np.where(~written[1::2] & own, old[:, : last.shape[1]], last)
        missing = old.shape[1] - first.shape[1]
        if not written.all():
            _fail(none & some, "array slice subscript must provide both boundaries")
        if missing:
            _fail(none & some, "assignment to an array without elements must have all dimensions of its "
                                "type: they are those of its values here")
            first = np.hstack([first, np.ones((n, missing), np.int64)])
            last = np.hstack([last, old[:, -missing:]])
        _fail((last < first).any(axis=1) & ~none & some, "upper bound cannot be less than lower bound")
        _fail((last - first < -1).any(axis=1) & none & some, "array size exceeds the maximum allowed")
        if old.shape[1] > 1:
            _fail(((first < 1) | (last > old)).any(axis=1) & ~none & some, "array subscript out of range")
        span = np.where(some[:, None], last - first + 1, 0)
        length = np.prod(span.astype(np.float64), axis=1)  # no overflow
        counts = np.prod(shape(source), axis=1)
        _fail((length > counts) & some, "source array too small")
        nothing = none & (length == 0)
        _begins_at_one(np.where((some & ~nothing)[:, None], first, 1), none)
        new = np.where(some[:, None], np.where(nothing[:, None], 0, np.maximum(old, last)), old)
        last = np.where(some[:, None], last, 0)
        return _put(array, old, new, first, last, _flat(source), np.cumsum(counts) - counts, type)

    return run


def _numbers(subscripts: Sequence[Any]) -> _Ints:
    """The subscripts of each row (a column each)."""
    null = np.array([~valid(one) for one in subscripts]).any(axis=0)
    _fail(null, "array subscript in assignment must not be null")
    return np.stack([raw(one).astype(np.int64) for one in subscripts], axis=1)


def _fail(bad: Any, reason: str) -> None:
    if bad.any():
        raise Failed(reason, bad, strict=False)


def _begins_at_one(first: _Ints, none: Any) -> None:
    _fail((first < 1).any(axis=1), f"assignment to an array below its first element is not supported: {_BEGIN}")
    _fail((first != 1).any(axis=1) & none,
          f"assignment to an array without elements must begin at its first: {_BEGIN}")  # fmt: skip


def _flat(array: Any) -> Any:
    while pt.is_list(array.type):
        array = array.flatten()
    return array


def _put(array: Any, old: _Ints, new: _Ints, first: _Ints, last: _Ints, source: Any, starts: _Ints, type: Any) -> Any:
    """Arrays of the shapes `new`: the source's elements, each row's from its place in `starts` on, between the
    subscripts `first` and `last`, and elsewhere those of arrays of the shapes `old`."""
    counts, before = np.prod(new, axis=1), np.prod(old, axis=1)
    check(counts, len(array), strict=False)  # before it is made: an element takes a byte or more
    rows = np.repeat(np.arange(len(new)), counts)
    left = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
    values = _flat(array)
    if int(sizes(values).sum() + sizes(source).sum()) > ARRAY_BYTES:
        raise DataError(TOO_LONG)
    kept, put = (np.cumsum(before) - before)[rows], starts[rows] + len(values)
    there, inside = np.ones(len(rows), np.bool_), np.ones(len(rows), np.bool_)
    in_old, in_slice, step = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64), counts.copy()
    for d in range(new.shape[1]):
        step = step // np.maximum(new[:, d], 1)
        at, left = np.divmod(left, step[rows])
        there &= at < old[rows, d]
        inside &= (at + 1 >= first[rows, d]) & (at + 1 <= last[rows, d])
        in_old = in_old * old[rows, d] + at
        in_slice = in_slice * (last - first + 1)[rows, d] + at + 1 - first[rows, d]
    chosen = np.where(inside, put + in_slice, np.where(there, kept + in_old, 0))
    both = pa.concat_arrays([values, source.cast(values.type)])
    made = _shaped(new, both.take(pa.array(chosen, mask=~(inside | there))), type)
    check(sizes(made), len(array), strict=False)
    return made


def _shaped(shapes: _Ints, values: Any, type: Any) -> Any:
    """Arrays of these shapes, of all their elements in order."""
    for d in reversed(range(shapes.shape[1])):
        lengths = np.repeat(shapes[:, d], np.prod(shapes[:, :d], axis=1))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        values = pa.ListArray.from_arrays(pa.array(offsets), values)
    return values.cast(type)


ARRAY_ASSIGNMENT: dict[str, Callable[[Call], Kernel]] = {"with element": _with_element, "with slice": _with_slice}

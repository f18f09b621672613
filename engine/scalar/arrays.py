"""Kernels of arrays. Arrow's kernels take only constant indexes, so these kernels work on the lists' offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.bounds import joined
from halfjoin.engine.scalar.values import Kernel, call, on_arrays, raw, valid
from halfjoin.sql.expr import Call

_lengths = call("list_value_length")


def _array(expr: Call) -> Kernel:
    return joined(list_of(len(expr.args), arrow_type(expr.type)), strict=False)


def list_of(width: int, type: Any) -> Kernel:
    """A kernel that makes, row by row, a list of its `width` arguments."""

    @on_arrays
    def run(*items: Any) -> Any:
        n = len(items[0])
        order = np.arange(n * width).reshape(width, n).T.ravel()
        offsets = np.arange(0, n * width + 1, width, dtype=np.int32)
        values = pa.concat_arrays(items).take(pa.array(order))
        return pa.ListArray.from_arrays(pa.array(offsets), values).cast(type)

    return run


def _element(_: Call) -> Kernel:
    @on_arrays
    def run(array: Any, index: Any) -> Any:
        return element_at(array, np.where(valid(index), raw(index), 0).astype(np.int64))

    return run


def element_at(array: Any, at: NDArray[np.int64]) -> Any:
    """The element of each list at a position, which counts from 1. NULL if the position is outside the list."""
    length = np.where(valid(array), raw(_lengths(array)), 0)
    start = raw(array.offsets)[: len(array)].astype(np.int64)
    inside = (at >= 1) & (at <= length)
    return array.values.take(pa.array(np.where(inside, start + at - 1, 0), mask=~inside))


def elements(array: Any) -> tuple[Any, Any]:
    """The row number of each element, and the elements in order."""
    lengths = np.where(valid(array), raw(_lengths(array)), 0)
    return np.repeat(np.arange(len(array)), lengths), array.flatten()


def _lists(first: bool, second: bool) -> Callable[[Call], Kernel]:
    """Concatenate two lists. `first` and `second` tell which argument is a single element. A NULL list adds nothing."""

    def build(expr: Call) -> Kernel:
        return joined(kernel(expr), strict=False)

    def kernel(expr: Call) -> Kernel:
        type = arrow_type(expr.type)

        @on_arrays
        def run(a: Any, b: Any) -> Any:
            n = len(a)
            (rows_a, values_a) = (np.arange(n), a) if first else elements(a)
            (rows_b, values_b) = (np.arange(n), b) if second else elements(b)
            rows = np.concatenate([rows_a, rows_b])
            order = np.argsort(rows, kind="stable")
            offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))]).astype(np.int32)
            values = pa.concat_arrays([values_a, values_b]).take(pa.array(order))
            null = np.zeros(n, np.bool_) if first or second else ~valid(a) & ~valid(b)
            mask = pa.array(null) if null.any() else None
            return pa.ListArray.from_arrays(pa.array(offsets), values, mask=mask).cast(type)

        return run

    return build


ARRAYS: dict[str, Callable[[Call], Kernel]] = {
    "array": _array,
    "[]": _element,
    "array_append": _lists(False, True),
    "array_prepend": _lists(True, False),
    "array_cat": _lists(False, False),
}

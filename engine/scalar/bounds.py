"""Bounds the length of results: computes it from the lengths of the arguments, before the kernel makes the result.

A result longer than `VALUE_BYTES` is an error of its row. If all results together do not fit into one array, no single
row is at fault. That is a `DataError`: the view fails (`engine.batch.stage`), or the query does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import Datum, Kernel, broadcast, count
from halfjoin.engine.updates.updates import ARRAY_BYTES, TOO_LONG
from halfjoin.errors import DataError
from halfjoin.sql.types import VALUE_BYTES

Sizes = NDArray[np.int64]

LONG = f"the result would be longer than {VALUE_BYTES:,} bytes"


def bounded(kernel: Kernel, size: Callable[..., Sizes], *, strict: bool = True) -> Kernel:
    """Check a kernel's results before it runs: row by row they have at most `size(*data)` bytes.

    `size` also takes scalars, and is never negative. `strict` has the meaning that it has in `Failed`.
    """

    @wraps(kernel)
    def run(*data: Datum) -> Datum:
        check(size(*data), count(*data), strict=strict)
        return kernel(*data)

    return run


def joined(kernel: Kernel, *, strict: bool = True, times: int = 1) -> Kernel:
    """`bounded` for a kernel whose results contain each argument once, and the first argument `times` times."""

    def size(*data: Datum) -> Sizes:
        total: Sizes = sizes(data[0]) * times
        for datum in data[1:]:
            total = total + sizes(datum)
        return total

    checked = bounded(kernel, size, strict=strict)

    @wraps(kernel)
    def run(*data: Datum) -> Datum:
        n = count(*data)
        small = times * sum(_held(datum, n) for datum in data) <= VALUE_BYTES
        return kernel(*data) if small else checked(*data)

    return run


def check(size: Sizes, n: int, *, strict: bool = True) -> None:
    """Refuse results of `n` rows that are too long.

    Raises:
        Failed: a result is longer than `VALUE_BYTES`.
        DataError: all results together do not fit into one array.
    """
    over = size > VALUE_BYTES
    if over.any():
        raise Failed(LONG, over, strict=strict)
    if int(size.sum()) * (n if len(size) == 1 else 1) > ARRAY_BYTES:
        raise DataError(TOO_LONG)


def sizes(datum: Datum) -> Sizes:
    """The bytes of each value. A NULL text, bytea or array has 0. A scalar gives one number."""
    array = broadcast(datum, 1)
    if pt.is_list(array.type):
        ends = np.concatenate([[0], np.cumsum(sizes(array.values))])
        offsets = array.offsets.to_numpy()
        found: Sizes = ends[offsets[1:]] - ends[offsets[:-1]]
        return np.where(array.is_valid().to_numpy(zero_copy_only=False), found, 0)
    if pt.is_struct(array.type):
        whole: Sizes = np.ones(len(array), np.int64)
        for member in array.flatten():
            whole = whole + sizes(member)
        return whole
    if pt.is_string(array.type) or pt.is_binary(array.type):
        return lengths(pc.binary_length(array))
    return np.full(len(array), max(1, array.type.bit_width // 8) if not pt.is_null(array.type) else 1, np.int64)


def lengths(datum: Datum) -> Sizes:
    """Integers as numpy, with 0 for NULL. A scalar gives one number."""
    array: Any = pc.fill_null(broadcast(datum, 1), 0)
    return np.asarray(array.to_numpy(zero_copy_only=False), np.int64)


def _held(datum: Datum, n: int) -> int:
    """The bytes of a datum as an array of `n` rows."""
    return n * int(sizes(datum)[0]) if isinstance(datum, pa.Scalar) else int(datum.nbytes)

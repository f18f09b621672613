"""Bounds on values: how long a result will be, from the lengths of the arguments, before anything of it is made.

A result longer than `VALUE_BYTES` is an error of its row. Results that are too long together for one array are nobody's
in particular: a `DataError`, by which the view fails (`engine.batch.stage`), or the query does.
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
    """A kernel whose results have at most `size(*data)` bytes, row by row; `strict` as of `Failed`.

    `size` may be asked of scalars alone, and is no less than 0.
    """

    @wraps(kernel)
    def run(*data: Datum) -> Datum:
        check(size(*data), count(*data), strict=strict)
        return kernel(*data)

    return run


def joined(kernel: Kernel, *, strict: bool = True, times: int = 1) -> Kernel:
    """A kernel whose results hold each of the arguments, the first one so many `times`."""

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
    """Refuse what is too long, of `n` rows.

    Raises:
        Failed: some results are.
        DataError: all together are.
    """
    over = size > VALUE_BYTES
    if over.any():
        raise Failed(LONG, over, strict=strict)
    if int(size.sum()) * (n if len(size) == 1 else 1) > ARRAY_BYTES:
        raise DataError(TOO_LONG)


def sizes(datum: Datum) -> Sizes:
    """The bytes of each value of a text, bytea or array, 0 for NULL; one number for a scalar."""
    array = broadcast(datum, 1)
    if pt.is_list(array.type):
        ends = np.concatenate([[0], np.cumsum(sizes(array.values))])
        offsets = array.offsets.to_numpy()
        found: Sizes = ends[offsets[1:]] - ends[offsets[:-1]]
        return np.where(array.is_valid().to_numpy(zero_copy_only=False), found, 0)
    if pt.is_string(array.type) or pt.is_binary(array.type):
        return lengths(pc.binary_length(array))
    return np.full(len(array), max(1, array.type.bit_width // 8) if not pt.is_null(array.type) else 1, np.int64)


def lengths(datum: Datum) -> Sizes:
    """Integers, 0 for NULL; one number for a scalar."""
    array: Any = pc.fill_null(broadcast(datum, 1), 0)
    return np.asarray(array.to_numpy(zero_copy_only=False), np.int64)


def _held(datum: Datum, n: int) -> int:
    """Bytes of a datum as an array of `n` rows."""
    return n * int(sizes(datum)[0]) if isinstance(datum, pa.Scalar) else int(datum.nbytes)

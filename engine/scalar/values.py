"""The helpers that kernels share: they convert Arrow arrays and scalars to numpy values and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.updates import ARRAY_BYTES, TOO_LONG
from halfjoin.errors import DataError

Datum: TypeAlias = Any  # a pyarrow Array, or a Scalar for the same value in every row
Kernel: TypeAlias = Callable[..., Datum]  # Datum, ... -> Datum; raises Failed

_DTYPES = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_FEW = 1000  # rows; Arrow unpacks so few bits in less time than NumPy, and many in ten times as long


def broadcast(datum: Datum, n: int) -> Any:
    """The datum as an array of `n` rows.

    Raises:
        DataError: the copies of a constant text or bytea do not fit into one array. (Arrow's repeat does not check.)
    """
    if not isinstance(datum, pa.Scalar):
        return datum
    text = isinstance(datum, (pa.StringScalar, pa.BinaryScalar)) and datum.is_valid
    if text and datum.as_buffer().size * n > ARRAY_BYTES:
        raise DataError(TOO_LONG)
    return pa.repeat(datum, n)


def count(*data: Datum) -> int:
    """The number of rows. 1 if all data are scalars."""
    return next((len(datum) for datum in data if not isinstance(datum, pa.Scalar)), 1)


def on_arrays(kernel: Kernel) -> Kernel:
    """Make a kernel of arrays also take scalars. If all arguments are scalars, so is the result."""

    @wraps(kernel)
    def run(*data: Datum) -> Datum:
        scalars = [datum for datum in data if isinstance(datum, pa.Scalar)]
        if not scalars:
            return kernel(*data)
        n = count(*data)
        result = kernel(*(broadcast(datum, n) for datum in data))
        return result[0] if len(scalars) == len(data) else result

    return run


def raw(array: Any) -> NDArray[Any]:
    """The values of a fixed-width array as integers or floats of its width, without a copy. A NULL is arbitrary."""
    type = array.type
    if not len(array):  # it may have no buffer
        return np.empty(0, np.int64)
    dtype: Any = _DTYPES[type.bit_width]
    if pa.types.is_floating(type):
        dtype = np.float32 if type.bit_width == 32 else np.float64
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]


def valid(array: Any) -> NDArray[np.bool_]:
    """The mask of the rows that are not NULL."""
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    return mask_of(array.is_valid())


def mask_of(datum: Datum) -> NDArray[np.bool_]:
    """A boolean array (or a scalar: one row) as numpy. NULL becomes false."""
    if isinstance(datum, pa.Scalar):
        return np.array([datum.as_py() is True])
    if datum.null_count:
        datum = datum.fill_null(False)
    if len(datum) <= _FEW:
        return np.asarray(datum.to_numpy(zero_copy_only=False), np.bool_)
    first, skipped = divmod(datum.offset, 8)
    unpacked = np.unpackbits(
        np.frombuffer(datum.buffers()[1], np.uint8, offset=first), count=skipped + len(datum), bitorder="little"
    )
    return unpacked[skipped:].view(np.bool_)


def any_true(datum: Datum) -> bool:
    """Whether a boolean datum is true anywhere."""
    return datum.as_py() is True if isinstance(datum, pa.Scalar) else datum.true_count > 0


def from_numpy(values: NDArray[Any], type: Any, null: NDArray[np.bool_] | None = None) -> Any:
    """An array of `type` from values of its width. It is NULL where `null` is true."""
    array = pa.array(values, mask=null if null is not None and null.any() else None)
    return array if array.type == type else array.view(type)


def fail_where(bad: Datum, message: str, *, strict: bool = True) -> None:
    """Raise Failed for the rows where `bad` is true, if there are any. `strict` has the meaning of that of Failed."""
    if any_true(bad):
        raise Failed(message, mask_of(bad), strict=strict)


def call(name: str, options: Any = None) -> Kernel:
    """A kernel that calls an Arrow compute function. The function is looked up once."""
    function = pc.get_function(name)
    if options is None:
        return lambda *data: function.call(data)
    return lambda *data: function.call(data, options)

"""Intervals as three numbers: months, days, and the rest in microseconds; and the struct of them that files hold.

Neither Delta nor Parquet has a type for months, days and microseconds: Parquet's INTERVAL has milliseconds, and Delta
has none at all. A struct of the three numbers is exact, and every reader of Delta shows it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.updates.structs import with_members

IN_FILES = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("microseconds", pa.int64())])
DAY = 86_400_000_000  # microseconds
_LAYOUT = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])

Fields = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def fields(array: Any) -> Fields:
    """Months, days and microseconds of an interval array. A NULL has arbitrary numbers."""
    months, days, nanos = parts(array)
    return months, days, nanos // 1000


def parts(array: Any) -> Fields:
    """Months, days and nanoseconds, which Arrow has. A NULL has arbitrary numbers."""
    if not len(array) or array.buffers()[1] is None:
        empty = np.zeros(len(array), np.int64)
        return empty, empty, empty
    found = np.frombuffer(array.buffers()[1], _LAYOUT)[array.offset : array.offset + len(array)]
    return found["months"].astype(np.int64), found["days"].astype(np.int64), found["nanos"]


def intervals(months: Any, days: Any, micros: Any, null: NDArray[np.bool_] | None = None) -> Any:
    """An interval array from its numbers. It is NULL where `null` is true."""
    n = max(np.size(months), np.size(days), np.size(micros))
    made = np.zeros(n, _LAYOUT)
    made["months"], made["days"], made["nanos"] = months, days, np.asarray(micros, np.int64) * 1000
    bitmap = None
    if null is not None and null.any():
        bitmap = pa.array(~null).buffers()[1]
    return pa.Array.from_buffers(pa.month_day_nano_interval(), n, [bitmap, pa.py_buffer(made)])


def to_struct(array: Any) -> Any:
    """Intervals in the form that files have. A NULL has NULLs in all three numbers."""
    null = array.is_null().to_numpy(zero_copy_only=False)
    columns = [pa.array(part.astype(kind), mask=null if null.any() else None)
               for part, kind in zip(fields(array), (np.int32, np.int32, np.int64), strict=True)]  # fmt: skip
    return pa.StructArray.from_arrays(columns, fields=list(IN_FILES), mask=pa.array(null) if null.any() else None)


def of_struct(array: Any) -> Any:
    """Intervals from the form that files have."""
    null = array.is_null().to_numpy(zero_copy_only=False)
    months, days, micros = (part.fill_null(0).to_numpy(zero_copy_only=False) for part in array.flatten())
    return intervals(months, days, micros, null)


def changed(array: Any, kind: Any) -> Any:
    """An array, which may be of lists or rows, with structs in place of intervals or the other way round, as its type
    says."""
    t = pa.types
    if array.type == kind:
        return array
    if t.is_interval(array.type) and t.is_struct(kind):
        return to_struct(array)
    if t.is_struct(array.type) and t.is_interval(kind):
        return of_struct(array)
    if t.is_struct(array.type) and t.is_struct(kind):
        return with_members(array, kind, changed)
    if t.is_list(array.type) and t.is_list(kind) and t.is_nested(kind.value_type) | (
            has_intervals(array.type) != has_intervals(kind)):
        lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        values = changed(array.flatten(), kind.value_type)
        return pa.ListArray.from_arrays(offsets, values, mask=array.is_null() if array.null_count else None)
    return array.cast(kind)


def has_intervals(kind: Any) -> bool:
    """Whether the type is an interval, in memory, or has one inside."""
    if pa.types.is_struct(kind):
        return any(has_intervals(field.type) for field in kind)
    return has_intervals(kind.value_type) if pa.types.is_list(kind) else bool(pa.types.is_interval(kind))

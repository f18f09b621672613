"""Converts intervals to their three numbers and back: months, days, and the rest in microseconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.scalar.values import Datum, broadcast, count, from_numpy, valid

_LAYOUT = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])
DAY = 86_400_000_000  # microseconds

Fields = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def fields(array: Any) -> Fields:
    """Months, days and microseconds of an interval array. A NULL has arbitrary numbers."""
    if not len(array):
        empty = np.empty(0, np.int64)
        return empty, empty, empty
    parts = np.frombuffer(array.buffers()[1], _LAYOUT)[array.offset : array.offset + len(array)]
    return parts["months"].astype(np.int64), parts["days"].astype(np.int64), parts["nanos"] // 1000


def intervals(months: Any, days: Any, micros: Any, null: NDArray[np.bool_] | None = None) -> Any:
    """An interval array from its numbers. It is NULL where `null` is true."""
    n = max(np.size(months), np.size(days), np.size(micros))
    parts = np.zeros(n, _LAYOUT)
    parts["months"], parts["days"], parts["nanos"] = months, days, np.asarray(micros, np.int64) * 1000
    bitmap = None
    if null is not None and null.any():
        bitmap = pa.array(~null).buffers()[1]
    return pa.Array.from_buffers(pa.month_day_nano_interval(), n, [bitmap, pa.py_buffer(parts)])


def compare_intervals(operator: str, a: Datum, b: Datum) -> Datum:
    """Compare intervals as time spans: a month has 30 days, and a day has 24 hours."""
    n = count(a, b)
    (left, right) = (broadcast(a, n), broadcast(b, n))
    sign = _sign(fields(left), fields(right))
    result = {
        "=": sign == 0, "<>": sign != 0, "<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0,
    }[operator]  # fmt: skip
    array = from_numpy(result, pa.bool_(), ~(valid(left) & valid(right)))
    return array[0] if isinstance(a, pa.Scalar) and isinstance(b, pa.Scalar) else array


def _sign(a: Fields, b: Fields) -> NDArray[np.int64]:
    days_a, rest_a = _span(a)
    days_b, rest_b = _span(b)
    sign: NDArray[np.int64] = np.where(days_a != days_b, np.sign(days_a - days_b), np.sign(rest_a - rest_b))
    return sign


def _span(parts: Fields) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    months, days, micros = parts
    return months * 30 + days + micros // DAY, micros % DAY

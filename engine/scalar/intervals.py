"""Compares intervals by their length: a month has 30 days, and a day has 24 hours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from halfjoin.engine.scalar.values import Datum, broadcast, count, from_numpy, on_arrays, valid
from halfjoin.engine.updates.intervals import DAY, Fields, fields

_DAY = pa.scalar(DAY, pa.decimal128(11, 0))


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


@on_arrays
def length(a: Any) -> Any:
    """The length of intervals in microseconds, as a decimal of 22 digits: months and days do not fit into 64 bits."""
    months, days, micros = fields(a)
    whole = pa.array(months * 30 + days, mask=~valid(a)).cast(pa.decimal128(19, 0))
    return pc.add(pc.multiply(whole, _DAY), pa.array(micros).cast(pa.decimal128(19, 0))).cast(pa.decimal128(22, 0))

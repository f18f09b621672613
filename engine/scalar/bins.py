"""Kernels of date_bin: the start of the bin that a moment is in. Bins of one length take one pass over a column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.each import Bad, each, python_values
from halfjoin.engine.scalar.values import Datum, Kernel, broadcast, from_numpy, raw, valid
from halfjoin.engine.updates.intervals import DAY
from halfjoin.sql.expr import Call

_LONG = 1 << 56  # microseconds, 2,283 years: no sum of a moment and a shorter bin leaves 64 bits


def date_bin(expr: Call) -> Kernel:
    """The kernel for the types of a call."""
    one_by_one = each(_date_bin, arrow_type(expr.type))

    def run(stride: Datum, moment: Datum, origin: Datum) -> Datum:
        bins = None if isinstance(moment, pa.Scalar) else _constant(stride, origin)
        return one_by_one(stride, moment, origin) if bins is None else _binned(moment, *bins)

    return run


def _constant(stride: Datum, origin: Datum) -> tuple[int, int] | None:
    """The length of all bins and the start of one, in microseconds; None if rows differ, or one of the two is wrong."""
    if not (isinstance(stride, pa.Scalar) and isinstance(origin, pa.Scalar) and stride.is_valid and origin.is_valid):
        return None
    (parts,), (start,) = (python_values(broadcast(one, 1)) for one in (stride, origin))
    size = parts[1] * DAY + parts[2]
    return (size, start) if not parts[0] and 0 < size < _LONG and abs(start) < _LONG else None


def _binned(moments: Any, size: int, start: int) -> Any:
    there = valid(moments)
    since = np.where(there, raw(moments), start) - start
    return from_numpy(since - since % size + start, moments.type, ~there)


def _date_bin(stride: tuple[int, int, int], moment: int, origin: int) -> int:
    months, days, micros = stride
    if months:
        raise Bad("timestamps cannot be binned into intervals containing months or years")
    size = days * DAY + micros
    if not -(1 << 63) <= size < 1 << 63:
        raise Bad("interval out of range")
    if size <= 0:
        raise Bad("stride must be greater than zero")
    if not -(1 << 63) <= moment - origin < 1 << 63:
        raise Bad("interval out of range")
    return moment - (moment - origin) % size

"""Rounds to the digits of the second that a type has, `timestamp(3)`, and cuts intervals to fields, `interval DAY`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import Kernel, from_numpy, on_arrays, raw, valid
from halfjoin.engine.updates.intervals import DAY, fields, intervals
from halfjoin.sql.expr import Call, Literal
from halfjoin.sql.types import SECOND_DIGITS, SECONDS, Kind, SqlType

_YEAR_2000 = 946_684_800_000_000
_UNITS = {"day": DAY, "hour": 3_600_000_000, "minute": 60_000_000}


def rounds(type: SqlType) -> bool:
    """Whether the type has fewer digits of the second than values may have."""
    return type.kind in SECONDS and type.precision is not None


def to_digits(type: SqlType) -> Kernel:
    """The kernel that rounds to the type's digits of the second.

    A half goes away from zero, or for a timestamp away from the year 2000.
    """
    assert type.precision is not None
    kind, unit = type.kind, 10 ** (SECOND_DIGITS - type.precision)
    since = _YEAR_2000 if kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ) else 0

    @on_arrays
    def run(a: Any) -> Any:
        null = ~valid(a)
        if kind is Kind.INTERVAL:
            months, days, micros = fields(a)
            return intervals(months, days, _rounded(micros, unit), null)
        values = np.where(null, since, raw(a))
        found = since + _rounded(values - since, unit)
        if kind is Kind.TIME and (found >= DAY).any():
            raise Failed("a time of day ends before 24:00", found >= DAY)
        return from_numpy(found, a.type, null)

    return run


def _rounded(micros: NDArray[np.int64], unit: int) -> NDArray[np.int64]:
    size: NDArray[np.int64] = (np.abs(micros) + unit // 2) // unit * unit
    return np.where(micros < 0, -size, size)


def _cut(expr: Call) -> Kernel:
    """Drop what is smaller than a field."""
    literal = expr.args[1]
    assert isinstance(literal, Literal)
    last: Any = literal.value

    @on_arrays
    def run(a: Any, _: Any) -> Any:
        months, days, micros = fields(a)
        if last == "year":
            months = months - np.fmod(months, 12)
        if last in ("year", "month"):
            days = np.zeros_like(days)
            micros = np.zeros_like(micros)
        elif last == "day":
            micros = np.zeros_like(micros)
        else:
            micros = micros - np.fmod(micros, _UNITS[last])
        return intervals(months, days, micros, ~valid(a))

    return run


PRECISION: dict[str, Callable[[Call], Kernel]] = {"cut interval": _cut}

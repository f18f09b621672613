"""Kernels of + - * / on dates, times and intervals.

Months are added first and the day is clamped to the last day of the month; then days are added; then microseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.repeated import once
from halfjoin.engine.scalar.values import Kernel, from_numpy, on_arrays, raw, valid
from halfjoin.engine.updates.intervals import DAY, fields, intervals
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.calendar import FIRST_DAY, LAST_DATE, LAST_DAY
from halfjoin.sql.types import Kind

_MANY = 1 << 12  # rows; fewer are computed as fast as days
_NANO_LIMIT = 9_223_372_036_854_775  # the most microseconds: an interval has 64-bit nanoseconds


def moment_arithmetic(expr: Call) -> Kernel:
    """The kernel of a call on dates, times and intervals, by the kinds of the arguments."""
    left, right = expr.args[0].type.kind, expr.args[-1].type.kind
    sign = -1 if expr.function == "-" else 1
    if expr.function in ("*", "/"):
        first = left is Kind.INTERVAL
        return on_arrays(lambda a, b: scaled(*((a, b) if first else (b, a)), expr.function))
    if expr.function == "neg":
        return on_arrays(lambda a: combine(intervals(np.zeros(len(a)), 0, 0), a, -1))
    order = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TIME, Kind.INTERVAL, Kind.INTEGER)
    if expr.function == "+" and order.index(left) > order.index(right):
        inner = moment_arithmetic(Call("+", (expr.args[1], expr.args[0]), expr.type))
        return lambda a, b: inner(b, a)
    match left, right:
        case Kind.DATE, Kind.INTEGER:
            return on_arrays(lambda a, b: _days(a, b, sign))
        case Kind.DATE, Kind.DATE:
            return on_arrays(lambda a, b: from_numpy(raw(a) - raw(b), pa.int32(), _null(a, b)))
        case (Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ), (Kind.INTERVAL | Kind.TIME):
            type = pa.timestamp("us", "UTC") if left is Kind.TIMESTAMPTZ else pa.timestamp("us")
            return once(on_arrays(lambda a, b: _shift(a, b, sign, type)))
        case (Kind.TIMESTAMP | Kind.TIMESTAMPTZ), _:
            return on_arrays(_between)
        case Kind.TIME, Kind.TIME:
            return on_arrays(lambda a, b: intervals(0, 0, raw(a) - raw(b), _null(a, b)))
        case Kind.TIME, _:
            return on_arrays(lambda a, b: from_numpy((raw(a) + sign * fields(b)[2]) % DAY, a.type, _null(a, b)))
        case _:
            return on_arrays(lambda a, b: combine(a, b, sign))


def _null(*arrays: Any) -> NDArray[np.bool_]:
    null: NDArray[np.bool_] = ~np.logical_and.reduce([valid(array) for array in arrays])
    return null


def _days(a: Any, b: Any, sign: int) -> Any:
    result, null = raw(a).astype(np.int64) + sign * raw(b).astype(np.int64), _null(a, b)
    _fail(~null & ((result < FIRST_DAY) | (result > LAST_DATE)), "date out of range")
    return from_numpy(result.astype(np.int32), pa.date32(), null)


def _shift(a: Any, b: Any, sign: int, type: Any) -> Any:
    """A date or timestamp plus or minus an interval or a time of day."""
    null = _null(a, b)
    if pa.types.is_date(a.type):
        days, clock = raw(a).astype(np.int64), np.zeros(len(a), np.int64)
    else:
        days, clock = np.divmod(raw(a), DAY)
    zeros = np.zeros(len(b), np.int64)
    months, more, micros = (zeros, zeros, raw(b)) if pa.types.is_time(b.type) else fields(b)
    if null.any():  # a NULL has arbitrary bits
        days, clock = np.where(null, 0, days), np.where(null, 0, clock)
        months, more, micros = (np.where(null, 0, part) for part in (months, more, micros))
    spill, rest = np.divmod(clock + sign * micros, DAY)
    moved = add_months(days, sign * months)
    after = moved + sign * more
    days = after + spill
    for step in (moved, after, days):  # PostgreSQL adds the months first, then the days
        _fail((step < FIRST_DAY) | (step > LAST_DAY), "timestamp out of range")
    return from_numpy(days * DAY + rest, type, null)


def each_of_few(days: NDArray[Any]) -> NDArray[np.int64] | None:
    """The days from the least to the greatest, ascending, if there are many rows and the days are few; None if not."""
    if len(days) < _MANY:
        return None
    least, most = int(days.min()), int(days.max())
    return np.arange(least, most + 1) if 4 * (most - least) <= len(days) else None


def add_months(days: NDArray[np.int64], months: NDArray[np.int64]) -> NDArray[np.int64]:
    """Days since 1970, moved by whole months and clamped to the last day of the month."""
    if not months.any():
        return days
    each = each_of_few(days)
    if each is not None and bool((months == months[0]).all()):
        found: NDArray[np.int64] = add_months(each, np.full(len(each), months[0]))[days - each[0]]
        return found
    month = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    day_of_month = days - first_days(month)
    start, end = first_days(month + months), first_days(month + months + 1)
    moved = np.minimum(start + day_of_month, end - 1)
    return np.where(months == 0, days, moved)


def first_days(months: NDArray[np.int64]) -> NDArray[np.int64]:
    """The first day, since 1970, of each month since January 1970."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _between(a: Any, b: Any) -> Any:
    """The days between two timestamps, and the rest, as intervals."""
    null = _null(a, b)
    days_a, clock_a = np.divmod(np.where(null, 0, raw(a)), DAY)
    days_b, clock_b = np.divmod(np.where(null, 0, raw(b)), DAY)
    days, rest = days_a - days_b, clock_a - clock_b  # give days and rest the same sign
    days, rest = np.where((days > 0) & (rest < 0), days - 1, days), np.where((days > 0) & (rest < 0), rest + DAY, rest)
    days, rest = np.where((days < 0) & (rest > 0), days + 1, days), np.where((days < 0) & (rest > 0), rest - DAY, rest)
    return intervals(0, days, rest, null)


def combine(a: Any, b: Any, sign: int) -> Any:
    """Add or subtract two intervals, field by field."""
    null = _null(a, b)
    parts = [np.where(null, 0, x + sign * y) for x, y in zip(fields(a), fields(b), strict=True)]
    return checked(parts[0], parts[1], parts[2], null)


def scaled(a: Any, b: Any, operator: str) -> Any:
    """Multiply or divide intervals by numbers. Fractions of months go to the days, fractions of days to the rest."""
    null = _null(a, b)
    factor = np.where(null, 1.0, raw(b))
    if operator == "/":
        _fail(factor == 0, "division by zero")
    months, days, micros = (np.where(null, 0, part).astype(np.float64) for part in fields(a))
    by: Callable[[Any], Any] = (lambda x: x / factor) if operator == "/" else (lambda x: x * factor)
    _fail(np.isnan(factor), "interval out of range")
    with np.errstate(over="ignore", invalid="ignore"):
        exact_months, exact_days, exact_micros = by(months), by(days), by(micros)
    _fail(~(np.abs(exact_months) < 2**31 + 1) | ~(np.abs(exact_days) < 2**31 + 1), "interval out of range")
    whole_months, whole_days = np.trunc(exact_months), np.trunc(exact_days)
    from_months = _to_micros((exact_months - whole_months) * 30)
    seconds = _to_micros((exact_days - whole_days + from_months - np.trunc(from_months)) * 86_400)
    over = np.trunc(seconds / 86_400)
    whole_days, seconds = whole_days + np.trunc(from_months) + over, seconds - over * 86_400
    rest = np.rint(exact_micros + seconds * 1e6)
    _fail(~(np.abs(rest) <= _NANO_LIMIT), "interval out of range")
    return checked(whole_months.astype(np.int64), whole_days.astype(np.int64), rest, null)


def _to_micros(number: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round to six decimals, which removes the rounding errors of the division."""
    rounded: NDArray[np.float64] = np.rint(number * 1e6) / 1e6
    return rounded


def checked(months: Any, days: Any, micros: Any, null: NDArray[np.bool_]) -> Any:
    """The interval of these fields. Rows with a field out of range fail."""
    limit = 1 << 31
    bad = np.abs(micros) > _NANO_LIMIT
    for part in (months, days):
        bad |= (part < -limit) | (part >= limit)
    _fail(bad, "interval out of range")
    return intervals(months, days, micros, null)


def _fail(bad: NDArray[np.bool_], message: str) -> None:
    if bad.any():
        raise Failed(message, bad)

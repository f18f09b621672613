"""Kernels of date_trunc, extract, make_date and to_timestamp."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.date_input import DATE_INPUT, to_timestamp
from halfjoin.engine.scalar.decimals import of_integers
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.moments import each_of_few, first_days
from halfjoin.engine.scalar.values import Kernel, call, from_numpy, on_arrays, raw, valid
from halfjoin.engine.updates.intervals import DAY, Fields, fields, intervals
from halfjoin.sql.expr import Call, Literal
from halfjoin.sql.functions.calendar import FIRST_DAY, LAST_DAY
from halfjoin.sql.types import Kind

_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000
_FLOORS = {"microseconds": "microsecond", "milliseconds": "millisecond"}
_YEARS = {"decade": 10, "century": 100, "millennium": 1000}
_CLOCK = ("hour", "minute", "second", "milliseconds", "microseconds")
_OF_DAYS = frozenset(("day", "week", "month", "quarter", "year", *_YEARS))  # units that no clock shows
_YEAR_2000 = 946_684_800.0  # in seconds since 1970
_Numbers = NDArray[np.int64]


def _unit(expr: Call) -> str:
    literal = expr.args[0]
    assert isinstance(literal, Literal)
    return str(literal.value)


def _date_trunc(expr: Call) -> Kernel:
    unit, type = _unit(expr), arrow_type(expr.type)
    if expr.type.kind is Kind.INTERVAL:
        return lambda _, a: _trunc_interval(a, unit)
    cut: Kernel
    if unit in _YEARS:
        cut = partial(_trunc_years, unit=unit, type=type)
    elif unit in ("month", "quarter", "year"):
        cut = partial(_trunc_months, count=_MONTHS[unit], type=type)
    else:
        cut = call("floor_temporal", pc.RoundTemporalOptions(1, _FLOORS.get(unit, unit)))
    cut = _by_day(cut) if unit in _OF_DAYS else cut
    return lambda _, a: cut(a)


def _by_day(kernel: Kernel) -> Kernel:
    """The same kernel of dates or timestamps, whose value depends on the day alone. If there are many rows of few days,
    it is computed for each day."""

    @on_arrays
    def run(a: Any) -> Any:
        days = raw(a) if pa.types.is_date(a.type) else raw(a) // DAY
        each = each_of_few(days)
        if each is None:
            return kernel(a)
        values = each.astype(np.int32) if pa.types.is_date(a.type) else each * DAY
        try:
            found = kernel(pa.array(values).view(a.type))
        except Failed:  # of a day that perhaps no row has
            return kernel(a)
        return found.take(pa.array(days - each[0], mask=~valid(a) if a.null_count else None))

    return run


_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000}
_MICROS = {"day": DAY, "hour": _HOUR, "minute": _MINUTE, "second": _SECOND, "milliseconds": 1000, "microseconds": 1}


def _trunc_interval(datum: Any, unit: str) -> Any:
    """Drop what is smaller than the unit, towards zero: months, days and time are apart."""

    @on_arrays
    def run(a: Any) -> Any:
        months, days, micros = fields(a)
        if unit in _MONTHS:
            months, days, micros = months - np.fmod(months, _MONTHS[unit]), np.zeros_like(days), np.zeros_like(micros)
        elif unit == "day":
            micros = np.zeros_like(micros)
        else:
            micros = micros - np.fmod(micros, _MICROS[unit])
        return intervals(months, days, micros, ~valid(a))

    return run(datum)


def _trunc_years(a: Any, unit: str, type: Any) -> Any:
    """Truncate to decades, which begin with a year ending in 0, or to centuries or millennia (a year ending in 1)."""
    years = raw(a).astype("datetime64[us]").astype("datetime64[Y]").astype(np.int64) + 1970
    shift = 0 if unit == "decade" else 1
    start = (years - shift) // _YEARS[unit] * _YEARS[unit] + shift
    micros = (start - 1970).astype("datetime64[Y]").astype("datetime64[us]").astype(np.int64)
    return _in_calendar(micros, type, ~valid(a))


def _trunc_months(a: Any, count: int, type: Any) -> Any:
    """Truncate to months, quarters or years. Arrow's years have 16 bits: 200000 would be 3392."""
    months = raw(a).astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
    micros = (months // count * count).astype("datetime64[M]").astype("datetime64[us]").astype(np.int64)
    return _in_calendar(micros, type, ~valid(a))


def _in_calendar(micros: _Numbers, type: Any, null: NDArray[np.bool_]) -> Any:
    """Moments, none of them before the first day."""
    if (bad := (micros < FIRST_DAY * DAY) & ~null).any():
        raise Failed("timestamp out of range", bad)
    return from_numpy(micros, type, null)


def _extract(expr: Call) -> Kernel:
    """Extract a field as a whole number of units of the result's last decimal. date_part gives a double."""
    unit, value, result = _unit(expr), expr.args[1].type.kind, arrow_type(expr.type)
    in_decimal = of_integers(pa.int64(), pa.decimal128(19, 0))

    @on_arrays
    def run(a: Any) -> Any:
        if value is Kind.INTERVAL:
            numbers = _of_interval(unit, *fields(a))
        elif value is Kind.TIME:
            numbers = _of_clock(unit, raw(a))
        else:
            given = raw(a).astype(np.int64)
            numbers = _of_day(unit, given) if value is Kind.DATE else _of_moment(unit, given)
        if expr.type.kind is Kind.DOUBLE:
            return pa.array(_in_double(unit, numbers, fields(a) if value is Kind.INTERVAL else None), mask=~valid(a))
        if value is Kind.INTERVAL and unit == "epoch":
            whole = _micros(numbers, fields(a)[2], ~valid(a))
        else:
            whole = in_decimal(from_numpy(numbers, pa.int64(), ~valid(a)))
        scaled = pa.Array.from_buffers(pa.decimal128(result.precision, result.scale), len(a), whole.buffers())
        return scaled

    of_moments = value in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ) and unit not in ("epoch", *_CLOCK)
    field = _by_day(run) if value is Kind.DATE or of_moments else run
    return lambda _, a: field(a)


def _micros(seconds: _Numbers, micros: _Numbers, null: Any) -> Any:
    """The microseconds of intervals, which may need more than 64 bits."""
    whole = pa.array(seconds, mask=null).cast(pa.decimal128(19, 0))
    million = pa.scalar(Decimal(_SECOND), pa.decimal128(7, 0))
    return pc.add(pc.multiply(whole, million), pa.array(micros, mask=null).cast(pa.decimal128(19, 0)))


def _in_double(unit: str, numbers: _Numbers, interval: Fields | None) -> NDArray[np.float64]:
    """The field as a double, rounded like PostgreSQL's date_part, which adds up seconds, fractions, years and days."""
    seconds = np.sign(numbers) * (np.abs(numbers) // _SECOND)
    fraction = numbers - seconds * _SECOND
    found: NDArray[np.float64] = numbers.astype(np.float64)
    if unit == "epoch" and interval is not None:
        months, days, micros = interval
        years = np.sign(months) * (np.abs(months) // 12)
        found = micros / 1e6 + years * 31_557_600.0 + (months - years * 12) * 2_592_000.0 + days * 86_400.0
    elif unit == "epoch":
        found /= 1e6
    elif unit == "second":
        found = seconds + fraction / 1e6
    elif unit == "milliseconds":
        found = seconds * 1000.0 + fraction / 1000.0
    return found


def _of_clock(unit: str, micros: _Numbers) -> _Numbers:
    """The field of a time of day in microseconds."""
    match unit:
        case "hour":
            return micros // _HOUR
        case "minute":
            return micros // _MINUTE % 60
        case "epoch":
            return micros
        case _:  # second, milliseconds and microseconds: all are microseconds within the minute
            return micros % _MINUTE


def _of_moment(unit: str, micros: _Numbers) -> _Numbers:
    if unit == "epoch":
        return micros
    if unit.startswith("timezone"):
        return np.zeros(len(micros), np.int64)
    if unit in _CLOCK:
        return _of_clock(unit, micros % DAY)
    return _of_day(unit, micros // DAY)


def _of_day(unit: str, days: _Numbers) -> _Numbers:
    """A field of days since 1970. (Dates go on where microseconds would not fit into 64 bits.)"""
    if unit == "epoch":
        return days * 86_400
    if unit == "julian":
        return days + 2_440_588
    date = days.astype("datetime64[D]")
    month = date.astype("datetime64[M]").astype(np.int64)
    year = month // 12 + 1970
    match unit:
        case "year":
            return np.where(year <= 0, year - 1, year)
        case "month":
            return month % 12 + 1
        case "quarter":
            return month % 12 // 3 + 1
        case "day":
            return days - date.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + 1
        case "doy":
            return days - date.astype("datetime64[Y]").astype("datetime64[D]").astype(np.int64) + 1
        case "dow":
            return (days + 4) % 7
        case "isodow":
            return (days + 3) % 7 + 1
        case "week" | "isoyear":
            return _iso_week(days, unit)
        case "decade":
            return year // 10
        case _:
            size = _YEARS[unit]
            return np.where(year > 0, (year + size - 1) // size, -((size - year) // size))


def _iso_week(days: _Numbers, unit: str) -> _Numbers:
    """The ISO week or the ISO year. A week belongs to the year of its Thursday."""
    thursday = days - (days + 3) % 7 + 3
    year = thursday.astype("datetime64[D]").astype("datetime64[Y]")
    if unit == "isoyear":
        number = year.astype(np.int64) + 1970
        return np.where(number <= 0, number - 1, number)
    return (thursday - year.astype("datetime64[D]").astype(np.int64)) // 7 + 1


def _of_interval(unit: str, months: _Numbers, days: _Numbers, micros: _Numbers) -> _Numbers:
    """The field of an interval. Fields keep their sign and are truncated towards zero."""
    sign: _Numbers = np.sign(micros)
    if unit in _CLOCK:
        field: _Numbers = sign * _of_clock(unit, np.abs(micros))
        return field
    years: _Numbers = np.sign(months) * (np.abs(months) // 12)
    left: _Numbers = months - years * 12
    seconds: _Numbers = years * 31_557_600 + left * 2_592_000 + days * 86_400  # a year has 365.25 days, a month 30
    match unit:
        case "day":
            return days
        case "month":
            return left
        case "quarter":
            return np.trunc(left / 3).astype(np.int64) + 1
        case "year":
            return years
        case "epoch":  # without the microseconds
            return seconds
        case _:
            return np.trunc(years / _YEARS[unit]).astype(np.int64)


def _make_date(_: Call) -> Kernel:
    @on_arrays
    def run(years: Any, months: Any, days: Any) -> Any:
        null = ~(valid(years) & valid(months) & valid(days))
        y, m, d = (np.where(null, 1, raw(part)).astype(np.int64) for part in (years, months, days))
        bad = (y == 0) | (y < -4713) | (y > 5_874_897) | (m < 1) | (m > 12)
        month = np.where(bad, 0, (y + (y < 0) - 1970) * 12 + m - 1)  # 1 BC comes before 1 AD
        start = first_days(month)
        bad |= (d < 1) | (d > first_days(month + 1) - start)
        bad &= ~null
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            same = bad & (y == y[row]) & (m == m[row]) & (d == d[row])
            raise Failed(f"date field value out of range: {y[row]}-{m[row]:02}-{d[row]:02}", same)
        return from_numpy((start + d - 1).astype(np.int32), pa.date32(), null)

    return run


def _to_timestamp(expr: Call) -> Kernel:
    type = arrow_type(expr.type)
    if len(expr.args) == 2:
        return to_timestamp(expr)

    @on_arrays
    def run(a: Any) -> Any:
        null = ~valid(a)
        seconds = np.where(null, 0.0, raw(a))
        nan = np.isnan(seconds)
        if nan.any():
            raise Failed("timestamp cannot be NaN", nan)
        bad = ~((seconds >= -210_866_803_200.0) & (seconds < (LAST_DAY + 1) * 86_400.0))
        if bad.any():
            raise Failed("timestamp out of range", bad)
        micros = np.rint((seconds - _YEAR_2000) * 1e6)  # round relative to 2000, as PostgreSQL does
        return from_numpy(micros.astype(np.int64) + int(_YEAR_2000) * _SECOND, type, null)

    return run


DATES: dict[str, Callable[[Call], Kernel]] = {
    "date_trunc": _date_trunc,
    "extract": _extract,
    **DATE_INPUT,
    "make_date": _make_date,
    "to_timestamp": _to_timestamp,
}

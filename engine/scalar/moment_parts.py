"""Kernels that make dates, times and intervals from their parts, and compare them by the calendar."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.bins import date_bin
from halfjoin.engine.scalar.each import Bad, each, of_each
from halfjoin.engine.scalar.time_zones import timezone, utc_of
from halfjoin.engine.scalar.values import Kernel
from halfjoin.engine.updates.intervals import DAY
from halfjoin.sql.expr import Call
from halfjoin.sql.functions.calendar import civil, days_of, holds_moment, month_length

Interval = tuple[int, int, int]  # months, days, microseconds
_MICROS = pa.month_day_nano_interval()
_HOUR, _MINUTE, _SECOND = 3_600_000_000, 60_000_000, 1_000_000
_LEAST, _MOST = -4713, 294_276  # years of timestamps
_OFFSET = re.compile(r"([+-])([0-9]*)(?::([0-9]*)(?::([0-9]*))?)?")  # what is left out is 0


def _age(later: int, earlier: int) -> Interval:
    """The difference of the fields: a negative field borrows from the next, days from the month of the earlier time."""
    swapped = later < earlier
    if swapped:
        later, earlier = earlier, later
    (days1, clock1), (days2, clock2) = divmod(later, DAY), divmod(earlier, DAY)
    (year1, month1, day1), (year2, month2, day2) = civil(days1), civil(days2)
    micros, days, months = clock1 - clock2, day1 - day2, (year1 - year2) * 12 + month1 - month2
    if micros < 0:
        micros, days = micros + DAY, days - 1
    while days < 0:
        days, months = days + month_length(year2, month2), months - 1
    return (-months, -days, -micros) if swapped else (months, days, micros)


def _whole(number: int, unit: int) -> tuple[int, int]:
    """The whole units of a number, and the rest, both with its sign."""
    units = abs(number) // unit * (1 if number >= 0 else -1)
    return units, number - units * unit


def _justify_hours(interval: Interval) -> Interval:
    months, days, micros = interval
    more, micros = _whole(micros, DAY)
    return _fit(months, *_one_sign(days + more, micros, DAY))


def _justify_days(interval: Interval) -> Interval:
    months, days, micros = interval
    more, days = _whole(days, 30)
    return _fit(*_one_sign(months + more, days, 30), micros)


def _justify_interval(interval: Interval) -> Interval:
    months, days, micros = interval
    more, micros = _whole(micros, DAY)
    more_months, days = _whole(days + more, 30)
    months += more_months
    if months > 0 and (days < 0 or (days == 0 and micros < 0)):
        months, days = months - 1, days + 30
    elif months < 0 and (days > 0 or (days == 0 and micros > 0)):
        months, days = months + 1, days - 30
    return _fit(months, *_one_sign(days, micros, DAY))


def _one_sign(large: int, small: int, unit: int) -> tuple[int, int]:
    """A large and a small part, of which none is above zero if the other is below."""
    if large > 0 > small:
        return large - 1, small + unit
    if large < 0 < small:
        return large + 1, small - unit
    return large, small


def _fit(months: int, days: int, micros: int) -> Interval:
    if not all(-(1 << 31) <= part < 1 << 31 for part in (months, days)) or abs(micros) > 9_223_372_036_854_775:
        raise Bad("interval out of range")
    return months, days, micros


def _clock(hour: int, minute: int, second: float) -> int:
    """Microseconds since midnight."""
    micros = 0 if math.isnan(second) else round(min(max(second, -1.0), 100.0) * _SECOND)
    whole = hour == 24 and minute == 0 and micros == 0
    if math.isnan(second) or not (0 <= hour < 24 or whole) or not 0 <= minute < 60 or not 0 <= micros <= 60 * _SECOND:
        raise Bad(f"time field value out of range: {hour}:{minute:02}:{second:02g}")
    return hour * _HOUR + minute * _MINUTE + micros


def _make_time(hour: int, minute: int, second: float) -> int:
    micros = _clock(hour, minute, second)
    if micros >= DAY:
        raise Bad("a time of 24:00:00 is not supported")
    return micros


def _make_timestamp(year: int, month: int, day: int, hour: int, minute: int, second: float) -> int:
    number = year + (year < 0)  # there is no year 0
    known = year != 0 and _LEAST <= number <= _MOST and 1 <= month <= 12
    if not known or not 1 <= day <= month_length(number, month):
        raise Bad(f"date field value out of range: {year}-{month:02}-{day:02}")
    micros = days_of(number, month, day) * DAY + _clock(hour, minute, second)
    if not holds_moment(micros):
        raise Bad("timestamp out of range")
    return micros


def _make_timestamptz(year: int, month: int, day: int, hour: int, minute: int, second: float, zone: str = "UTC") -> int:
    local = _make_timestamp(year, month, day, hour, minute, second)
    offset = _offset(zone)
    return utc_of(zone, local) if offset is None else local - offset * _SECOND


def _offset(zone: str) -> int | None:
    """The seconds that a zone such as +05:30 or -0530 is ahead of UTC; None for a name. Only here + means east."""
    if zone[:1].isdigit():
        raise Bad(f'invalid input syntax for type numeric time zone: "{zone}"')
    found = _OFFSET.fullmatch(zone)
    if found is None:
        return None
    hours, minutes, seconds = (int(found[part] or 0) for part in (2, 3, 4))
    if found[3] is None and len(found[2]) > 2:
        hours, minutes = divmod(hours, 100)
    if hours > 15 or minutes > 59 or seconds > 59:
        raise Bad(f'numeric time zone "{zone}" out of range')
    size = (hours * 60 + minutes) * 60 + seconds
    return -size if found[1] == "-" else size


def _make_interval(
    years: int, months: int, weeks: int, days: int, hours: int, minutes: int, seconds: float
) -> Interval:
    if not math.isfinite(seconds) or abs(seconds) > 1e13:
        raise Bad("interval out of range")
    micros = (hours * 3600 + minutes * 60) * _SECOND + round(seconds * _SECOND)
    return _fit(years * 12 + months, weeks * 7 + days, micros)


def _isfinite(_: Call) -> Kernel:
    """True: no date or time is infinite."""
    return lambda a: pc.if_else(pc.is_valid(a), True, pa.scalar(None, pa.bool_()))


def _typed(compute: Callable[..., Any]) -> Callable[[Call], Kernel]:
    return lambda expr: each(compute, arrow_type(expr.type))


MOMENT_PARTS: dict[str, Callable[[Call], Kernel]] = {
    "age": of_each(_age, _MICROS),
    "justify_hours": of_each(_justify_hours, _MICROS),
    "justify_days": of_each(_justify_days, _MICROS),
    "justify_interval": of_each(_justify_interval, _MICROS),
    "date_bin": date_bin,
    "make_time": _typed(_make_time),
    "make_timestamp": _typed(_make_timestamp),
    "make_timestamptz": _typed(_make_timestamptz),
    "make_interval": of_each(_make_interval, _MICROS),
    "isfinite": _isfinite,
    "timezone": timezone,
}

"""Days and moments of PostgreSQL's whole calendar, from 4714 BC. Python's own dates have the years 1 to 9999.

The Gregorian calendar repeats after 400 years of 146,097 days. So what Python knows of the years in its range
it knows of all years. Year 0 is 1 BC, and years before it are negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from halfjoin.sql.types import Kind

DAY_MICROS = 86_400_000_000
CYCLE = 146_097  # days
FIRST_DAY = -2_440_588  # 4714-11-24 BC, Julian day 0, in days since 1970
LAST_DATE = 2_145_042_905  # 5874897-12-31
LAST_DAY = 106_751_990  # of timestamps: 294247-01-09, the last whole day of int64 microseconds
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EPOCH = datetime(1970, 1, 1)
_EPOCH_ORDINAL = _EPOCH.toordinal()
_FIRST, _LAST = (day.toordinal() - _EPOCH_ORDINAL for day in (date.min, date.max))


@dataclass(frozen=True, slots=True)
class Far:
    """The value of a constant that Python has no date for: days since 1970, or microseconds since 1970 of a timestamp.

    >>> far_date(days_of(-43, 3, 15))
    Far(count=-735160)
    """

    count: int


def civil(days: int) -> tuple[int, int, int]:
    """Year (0 is 1 BC), month and day of a number of days since 1970."""
    cycles, day = divmod(days + 719_468, CYCLE)  # cycles of 400 years from 1 March of year 0
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day += 1 - (153 * month + 2) // 5
    month += 3 if month < 10 else -9
    return year + cycles * 400 + (month <= 2), month, day


def days_of(year: int, month: int, day: int) -> int:
    """The days since 1970 of a date. A day beyond the month's end runs into the next month."""
    year -= month <= 2
    cycles, year = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return cycles * CYCLE + year * 365 + year // 4 - year // 100 + day_of_year - 719_468


def month_length(year: int, month: int) -> int:
    """The number of days of a month."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else _MONTH_DAYS[month - 1]


def holds_moment(micros: int) -> bool:
    """Whether a timestamp can be so many microseconds after 1970."""
    return FIRST_DAY <= micros // DAY_MICROS <= LAST_DAY


def far_date(days: int) -> date | Far:
    """A date as the value of a constant."""
    return date.fromordinal(days + _EPOCH_ORDINAL) if _FIRST <= days <= _LAST else Far(days)


def far_moment(micros: int, *, zoned: bool) -> datetime | Far:
    """A timestamp, or with `zoned` a timestamptz, as the value of a constant."""
    if not _FIRST <= micros // DAY_MICROS <= _LAST:
        return Far(micros)
    return (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=UTC if zoned else None)


def like(micros: int) -> tuple[datetime, int]:
    """A moment that Python has, with the same month, day and clock, and the microseconds to add to get the real one.

    It is some days away from the ends of Python's years, so that a time zone can be applied to it.
    """
    days = micros // DAY_MICROS
    cycles = min((days - _FIRST - 2) // CYCLE, 0) or max(-((_LAST - 2 - days) // CYCLE), 0)
    shift = cycles * CYCLE * DAY_MICROS
    return _EPOCH + timedelta(microseconds=micros - shift), shift


def shown(far: Far, kind: Kind) -> str:
    """The text as PostgreSQL prints it."""
    days, micros = (far.count, 0) if kind is Kind.DATE else divmod(far.count, DAY_MICROS)
    year, month, day = civil(days)
    text = f"{year if year > 0 else 1 - year:04}-{month:02}-{day:02}"
    if kind is not Kind.DATE:
        clock = (_EPOCH + timedelta(microseconds=micros)).time().isoformat()
        text += " " + (clock.rstrip("0") if "." in clock else clock)
        text += "+00" if kind is Kind.TIMESTAMPTZ else ""
    return text + ("" if year > 0 else " BC")

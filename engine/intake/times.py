"""Converts times to int64. Users may also give datetimes, dates and the text of SQL timestamps.

A datetime or text without a zone is in UTC, like SQL's timestamps. It is never in the zone of the machine.
"""

from __future__ import annotations

import time as clock
from datetime import UTC, date, datetime
from operator import index
from typing import TypeAlias, cast

from halfjoin.engine.scalar import compile
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM
from halfjoin.errors import InvalidTime
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions import render
from halfjoin.sql.types import BIGINT

Time: TypeAlias = int | datetime | date | str


def to_time(value: Time) -> int:
    """A time as int64. A number stays as it is; any other value becomes milliseconds since 1970 in UTC.

    Raises:
        InvalidTime: the value is not a time, or the number is out of range.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise _no_time(value, "give a number or a timestamp like '2024-01-31 10:00'") from None
    if isinstance(value, datetime):
        if value != value:  # pandas' NaT
            raise _no_time(value, "give a whole number or a timestamp")
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        delta = aware - datetime(1970, 1, 1, tzinfo=UTC)
        return (delta.days * 86_400_000) + (delta.seconds * 1000) + delta.microseconds // 1000
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days * 86_400_000
    try:
        number = index(value)
    except TypeError:
        raise _no_time(value, "give a whole number or a timestamp") from None
    if isinstance(value, bool) or not MINIMUM <= number < MAXIMUM:
        raise _no_time(value, "give a number between -2**63 and 2**63 - 2")
    return number


def _no_time(value: object, remedy: str) -> InvalidTime:
    return InvalidTime(f"{value!r} is not a time", remedy=remedy, time=value)


def time_of(expr: Expr | None) -> int | None:
    """The time of the expression in AS OF or UP TO; None if there is no expression."""
    if expr is None:
        return None
    if isinstance(expr, Literal) and expr.type == BIGINT:
        return to_time(cast("Time", expr.value))
    try:
        value: Time = compile(expr).evaluate({}, 1).values[0].as_py()
    except OverflowError:
        raise _no_time(render(expr), "give a time before the year 10000") from None
    return to_time(value)


def now() -> int:
    """The present time in milliseconds since 1970."""
    return clock.time_ns() // 1_000_000

"""Times: int64 everywhere inside; at the face also datetimes, dates and the text of SQL timestamps.

A datetime or text without a zone is UTC, as SQL's timestamps are; it is never the zone of the machine.
"""

from __future__ import annotations

import time as clock
from datetime import UTC, date, datetime
from typing import TypeAlias

from halfjoin.engine.scalar import compile
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM
from halfjoin.errors import InvalidTime
from halfjoin.sql.expr import Expr

Time: TypeAlias = int | datetime | date | str


def to_time(value: Time) -> int:
    """A time as int64: a number as it is, everything else as milliseconds since 1970 (UTC where no zone is given).

    Raises:
        InvalidTime: it is neither a number nor a time.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise _no_time(value, "give a number or a timestamp like '2024-01-31 10:00'") from None
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        delta = aware - datetime(1970, 1, 1, tzinfo=UTC)
        return (delta.days * 86_400_000) + (delta.seconds * 1000) + delta.microseconds // 1000
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days * 86_400_000
    try:
        number = value.__index__()
    except AttributeError:
        raise _no_time(value, "give a whole number or a timestamp") from None
    if isinstance(value, bool) or not MINIMUM <= number < MAXIMUM:
        raise _no_time(value, "give a number between -2**63 and 2**63 - 2")
    return number


def _no_time(value: object, remedy: str) -> InvalidTime:
    return InvalidTime(f"{value!r} is not a time", remedy=remedy, time=value)


def time_of(expr: Expr | None) -> int | None:
    """The time in AS OF or UP TO, None where it is left out."""
    if expr is None:
        return None
    value: Time = compile(expr).evaluate({}, 1).values[0].as_py()
    return to_time(value)


def now() -> int:
    """The present in milliseconds since 1970."""
    return clock.time_ns() // 1_000_000

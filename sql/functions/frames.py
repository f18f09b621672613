"""Frames of windows: which ones have a meaning, and the casts of their offsets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Literal, columns_of
from halfjoin.sql.functions.casting import coerce
from halfjoin.sql.functions.coercion import MOMENTS, NUMBERS
from halfjoin.sql.functions.order import ordered_value
from halfjoin.sql.relation import Bound, Frame, SortKey
from halfjoin.sql.types import BIGINT, DOUBLE, FLOATS, INTEGERS, INTERVAL, Kind, SqlType

_DAY = 86_400_000_000  # microseconds


def resolve_frame(frame: Frame, order: Sequence[SortKey]) -> Frame:
    """The frame with its offsets cast: to bigint for ROWS and GROUPS, for RANGE to what the sort key can be moved by.

    Raises:
        UnsupportedSQL: the frame has no meaning, or an offset is not a constant, is negative or has a wrong type.
    """
    _check_ends(frame)
    if frame.unit == "groups" and not order:
        raise UnsupportedSQL("GROUPS mode requires an ORDER BY clause", wrong=True)
    offsets = [bound.offset for bound in (frame.start, frame.end) if bound.offset is not None]
    if frame.unit == "range" and offsets and len(order) != 1:
        raise UnsupportedSQL("RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column", wrong=True)
    return replace(frame, start=_bound("starting", frame.start, frame, order),
                   end=_bound("ending", frame.end, frame, order))  # fmt: skip


def _check_ends(frame: Frame) -> None:
    """PostgreSQL's rules for the ends: the start does not come after the end."""
    start, end = frame.start, frame.end
    wrong = None
    if start == Bound("following"):
        wrong = "frame start cannot be UNBOUNDED FOLLOWING"
    elif end == Bound("preceding"):
        wrong = "frame end cannot be UNBOUNDED PRECEDING"
    elif start.kind == "current row" and end.kind == "preceding":
        wrong = "frame starting from current row cannot have preceding rows"
    elif start.kind == "following" and end.kind != "following":
        wrong = "frame starting from following row cannot have preceding rows"
    if wrong is not None:
        raise UnsupportedSQL(wrong, wrong=True, code="42P20")


def _bound(which: str, bound: Bound, frame: Frame, order: Sequence[SortKey]) -> Bound:
    """The bound with its offset cast and checked."""
    offset = bound.offset
    if offset is None:
        return bound
    unit = frame.unit.upper()
    if columns_of(offset):
        raise UnsupportedSQL(f"argument of {unit} must not contain variables", wrong=True)
    type = _of_range(offset.type, ordered_value(order[0].expr).type) if frame.unit == "range" else BIGINT
    if type is BIGINT and offset.type.kind not in (*INTEGERS, Kind.UNKNOWN):
        raise UnsupportedSQL(f"argument of {unit} must be type bigint, not type {offset.type}", wrong=True)
    typed = coerce(offset, type)
    if isinstance(typed, Literal):
        if typed.value is None:
            raise UnsupportedSQL(f"frame {which} offset must not be null", wrong=True)
        if is_negative(typed.value, of_clock=frame.unit == "range" and order[0].expr.type.kind is Kind.TIME):
            raise UnsupportedSQL(negative(which, frame.unit), wrong=True)
    return replace(bound, offset=typed)


def _of_range(offset: SqlType, key: SqlType) -> SqlType:
    """The type of the offset for a sort key of RANGE."""
    number = offset.kind is Kind.UNKNOWN or offset.kind in NUMBERS
    span = offset.kind in (Kind.UNKNOWN, Kind.INTERVAL)
    if key.kind in INTEGERS:
        wanted, fits = BIGINT, offset.kind is Kind.UNKNOWN or offset.kind in INTEGERS
    elif key.kind in FLOATS:
        wanted, fits = DOUBLE, number
    elif key.kind is Kind.NUMERIC:
        wanted, fits = SqlType(Kind.NUMERIC), number and offset.kind not in FLOATS
    elif key.kind in (*MOMENTS, Kind.TIME, Kind.INTERVAL):
        wanted, fits = INTERVAL, span
    else:
        raise UnsupportedSQL(f"RANGE with offset PRECEDING/FOLLOWING is not supported for column type {key}",
                             remedy="use ROWS or GROUPS", wrong=True)
    if not fits:
        raise UnsupportedSQL(f"RANGE with offset PRECEDING/FOLLOWING is not supported for column type {key} and "
                             f"offset type {offset}", remedy="cast the offset value to an appropriate type",
                             wrong=True)  # fmt: skip
    return wanted


def negative(which: str, unit: str) -> str:
    """The error for a negative offset; `which` is `starting` or `ending`."""
    if unit == "range":
        return "invalid preceding or following size in window function"
    return f"frame {which} offset must not be negative"


def is_negative(value: object, *, of_clock: bool = False) -> bool:
    """Whether an offset is below zero, or NaN. A month of an interval counts 30 days; a time of day has neither."""
    match value:
        case (int(), int(), int() as micros) if of_clock:
            return micros < 0
        case (int() as months, int() as days, int() as micros):
            return (months * 30 + days) * _DAY + micros < 0
        case float():
            return math.isnan(value) or value < 0
        case int() | Decimal():
            return value < 0
    raise AssertionError(f"not an offset: {value!r}")

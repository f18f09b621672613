"""The values of calls of constants: comparisons, sums of numbers, and dates and timestamps that are moved.

What could fail stays as it is, and fails for each row that asks for it. So do values beyond the years that Python has,
and those that are not known yet (`sql.unseen`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any

from halfjoin.sql.expr import FALSE, TRUE, Call, Expr, Literal
from halfjoin.sql.functions.calendar import month_length
from halfjoin.sql.types import BOOLEAN, DATE, STRINGS, WORKING_DIGITS, Kind
from halfjoin.sql.unseen import is_unseen

_BITS = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64}
_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_INTEGERS: dict[str, Callable[[Any, Any], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_EXACT = Context(prec=2 * WORKING_DIGITS)
_NUMERICS: dict[str, Callable[[Any, Any], Decimal]] = {
    "+": _EXACT.add, "-": _EXACT.subtract, "*": _EXACT.multiply,
}  # fmt: skip


def computed(call: Call, left: Literal, right: Literal) -> Expr:
    """The value of a call of two constants, or the call itself."""
    kind = left.type.kind
    if left.type == right.type and call.function in _COMPARISONS:
        return _compared(call, left.value, right.value) if kind in (*_BITS, *STRINGS, Kind.BOOLEAN) else call
    if is_unseen(left.value) or is_unseen(right.value) or left.value is None or right.value is None:
        return call
    if call.function == "+" and kind in (Kind.INTERVAL, Kind.INTEGER) and right.type.kind in _MOMENTS:
        left, right = right, left
    value: object = None
    if left.type.kind in _MOMENTS and call.function in ("+", "-"):
        value = _moved(left.value, right.value, 1 if call.function == "+" else -1)
    elif kind is right.type.kind is Kind.NUMERIC and call.function in _NUMERICS:
        value = _fitting(_NUMERICS[call.function](left.value, right.value), call.type.precision, call.type.scale)
    elif left.type == right.type and kind is call.type.kind and kind in _BITS and call.function in _INTEGERS:
        value = _within(_INTEGERS[call.function](left.value, right.value), _BITS[kind])
    return call if value is None else Literal(value, call.type)


def day_of(literal: Literal) -> Literal | None:
    """The date at whose beginning a timestamp is."""
    value = literal.value
    if is_unseen(value) or not isinstance(value, datetime) or value.time() != time():
        return None
    return Literal(value.date(), DATE)


def _compared(call: Call, left: object, right: object) -> Expr:
    if left is None or right is None:
        return Literal(None, BOOLEAN)
    return TRUE if _COMPARISONS[call.function](left, right) else FALSE


def _within(value: int, bits: int) -> int | None:
    return value if -1 << bits - 1 <= value < 1 << bits - 1 else None


def _moved(moment: object, by: object, sign: int) -> object:
    """A date or timestamp plus or minus days or an interval: months are added first, then days, then microseconds."""
    if not isinstance(moment, date):
        return None
    try:
        if isinstance(by, int):
            return moment + timedelta(days=sign * by)
        if isinstance(by, tuple):
            months, days, micros = by
            year, month = divmod(12 * moment.year + moment.month - 1 + sign * months, 12)
            first = moment.replace(year, month + 1, min(moment.day, month_length(year, month + 1)))
            start = first if isinstance(first, datetime) else datetime.combine(first, time())
            return start + timedelta(days=sign * days) + timedelta(microseconds=sign * micros)
    except (ValueError, OverflowError):  # not a year of Python's
        pass
    return None


def _fitting(value: Decimal, precision: int | None, scale: int | None) -> Decimal | None:
    """A numeric with the decimals of its type, if it fits."""
    if precision is None or scale is None or value.copy_abs() >= Decimal(10) ** (precision - scale):
        return None
    found = value.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    return found if found == value else None

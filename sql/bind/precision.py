"""Binds what follows `interval`: the fields and digits of `interval DAY TO SECOND(2)`.

Intervals are cut to the fields. The type of the result does not tell of them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.bind.context import Context
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.text_input_intervals import Interval, interval_of
from halfjoin.sql.types import INTERVAL, SECOND_DIGITS, TEXT, UNKNOWN, Kind, SqlType

_FIELDS = ("year", "month", "day", "hour", "minute", "second")
_QUALIFIER = re.compile(r"(\w+)(?: TO (\w+))?(?:\((\d+)\))?")
_CUT = {"hour": 3_600_000_000, "minute": 60_000_000}  # microseconds


class Precision(NamedTuple):
    """`digits`: of the second, None: all. `first`, `last`: the fields of an interval, if they are given."""

    digits: int | None = None
    first: str = ""
    last: str = ""


def precision_of(node: exp.DataType) -> Precision | None:
    """The fields after `interval`; None if there are none, or for another type."""
    unit = node.this.args.get("unit") if isinstance(node.this, exp.Interval) else None
    if unit is None:
        return None
    if isinstance(unit, exp.IntervalSpan):
        return Precision(None, unit.this.name.lower(), unit.expression.name.lower())
    return Precision(None, unit.name.lower(), unit.name.lower())


def interval(context: Context, node: exp.Interval) -> Expr:
    """The constant of `INTERVAL 'text' fields`."""
    text, unit = node.this.name, node.args.get("unit")
    if unit is None:
        return functions.cast(Literal(text, UNKNOWN), INTERVAL, explicit=True)
    match = _QUALIFIER.fullmatch(unit.name)
    if match is None:  # only digits
        found = Precision(min(int(unit.name.strip("()")), SECOND_DIGITS))
    else:
        digits = None if match[3] is None else min(int(match[3]), SECOND_DIGITS)
        found = Precision(digits, match[1].lower(), (match[2] or match[1]).lower())
    if found.first and not _is_range(found):
        raise context.wrong(node, f"INTERVAL has no fields {unit.name}")
    return modified(Literal(text, UNKNOWN), found)


def _is_range(found: Precision) -> bool:
    """Whether the first field comes before the last, and both are of years or both of days."""
    first, last = _FIELDS.index(found.first), _FIELDS.index(found.last)
    return first <= last and (first < 2) == (last < 2)


def modified(expr: Expr, precision: Precision) -> Expr:
    """The value as an interval with these digits and fields."""
    first, last, digits = precision.first, precision.last, precision.digits
    if last and isinstance(expr, Literal) and expr.type.kind is Kind.UNKNOWN and isinstance(expr.value, str):
        found = interval_of(expr.value, last, of_minutes=(first, last) == ("minute", "second"))
        value: Expr = functions.cast(expr, INTERVAL, explicit=True) if found is None else Literal(found, INTERVAL)
    else:
        value = functions.cast(expr, INTERVAL, explicit=True)
    if isinstance(value, Literal) and isinstance(value.value, tuple):
        value = Literal(_of_constant(value.value, last), INTERVAL)
    elif last and last != "second":
        value = Call("cut interval", (value, Literal(last, TEXT)), INTERVAL)
    if digits is not None and digits < SECOND_DIGITS:
        value = functions.cast(value, SqlType(Kind.INTERVAL, digits), explicit=True)
    return value


def _of_constant(value: Interval, last: str) -> Interval:
    """As the function "cut interval"."""
    months, days, micros = value
    sign, size = (-1 if micros < 0 else 1), abs(micros)
    if last == "year":
        months -= (abs(months) % 12) * (-1 if months < 0 else 1)
    if last in ("year", "month"):
        days = 0
    size -= size % _CUT.get(last, 1) if last not in ("year", "month", "day") else size
    return months, days, sign * size

"""Constant times and durations of statements: AS OF, UP TO, SET TIME, RETAIN HISTORY FOR."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.errors import HalfjoinError, UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.parse.locate import refuse
from halfjoin.sql.parse.type_names import sql_type
from halfjoin.sql.types import BIGINT, INTERVAL, TIMESTAMP, UNKNOWN, Kind, SqlType

TIME = "write a number, or a timestamp like '2024-01-31 10:00'"
DURATION = "write a number or an interval like '1 hour'"
TIME_KINDS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def constant_time(node: exp.Expr, sql: str) -> Expr:
    """A time, written as a number of time units or as the text of a date or timestamp; a Literal of that type."""
    node = node.unnest()
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return Literal(int(node.name), BIGINT)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and node.this.name.isdigit():
        return Literal(-int(node.this.name), BIGINT)
    type = TIMESTAMP
    if isinstance(node, exp.Cast):
        type, node = sql_type(node.to, sql), node.this
    if isinstance(node, exp.Literal) and node.is_string and type.kind in TIME_KINDS:
        return _read(node, type, sql, TIME)
    raise refuse(node, sql, "a time must be a constant", TIME)


def duration(value: int | str) -> int:
    """A length of history in time units: a number, or a text as after RETAIN HISTORY FOR (units: milliseconds).

    Raises:
        HalfjoinError: `value` is neither, or is negative.
    """
    refused = HalfjoinError(f"retain={value!r} is not a length of history",
                            remedy="give a whole number of time units, or a text "
                            "such as '30 days'")  # fmt: skip
    if isinstance(value, str):
        try:
            return constant_duration(exp.Literal.string(value), value)
        except UnsupportedSQL:
            raise refused from None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise refused
    return value


def constant_duration(node: exp.Expr, sql: str) -> int:
    """A duration in time units: a number, or the text of an interval, which is converted to milliseconds."""
    node = node.unnest()
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return int(node.name)
    if isinstance(node, exp.Interval):
        node = node.this
    if isinstance(node, exp.Literal) and node.is_string:
        interval = _read(node, INTERVAL, sql, DURATION)
        if isinstance(interval, Literal) and isinstance(interval.value, tuple):
            months, days, microseconds = interval.value
            total = days * 86_400_000 + microseconds // 1000
            if not months and total >= 0:
                return int(total)
            raise refuse(node, sql, "a duration is in days or less, and not negative", "write it in days")
    raise refuse(node, sql, "a duration must be a constant", DURATION)


def _read(node: exp.Expr, type: SqlType, sql: str, instead: str) -> Expr:
    try:
        return functions.cast(Literal(node.name, UNKNOWN), type, explicit=True)
    except UnsupportedSQL as error:
        raise refuse(node, sql, error.reason, instead) from None

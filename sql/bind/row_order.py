"""How rows compare: member by member, or in the order of records and of sort keys."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.functions import records
from halfjoin.sql.relation import SortKey
from halfjoin.sql.types import FLOATS, INTEGERS, UNKNOWN, Kind, SqlType

_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_SOME = {  # a value of each type, as text
    **dict.fromkeys((*INTEGERS, *FLOATS, Kind.NUMERIC, Kind.INTERVAL), "0"),
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.BYTEA), ""),
    **dict.fromkeys(_MOMENTS, "2000-01-01"),
    Kind.TIME: "00:00", Kind.JSONB: "null", Kind.BOOLEAN: "false", Kind.UUID: "00000000-0000-0000-0000-000000000000",
}  # fmt: skip


def compared(name: str, left: Sequence[Expr], right: Sequence[Expr]) -> Expr:
    """`(a, b) < (c, d)`: the first pair that differs decides; a NULL before that pair makes the result NULL."""
    if len(left) == 1:
        return functions.resolve(name, (left[0], right[0]))
    if name in ("=", "<>", "is not distinct from", "is distinct from"):
        pairs = tuple(functions.resolve(name, pair) for pair in zip(left, right, strict=True))
        return functions.resolve("and" if name in ("=", "is not distinct from") else "or", pairs)
    strict = functions.resolve(name[0], (left[0], right[0]))
    equal = functions.resolve("=", (left[0], right[0]))
    return functions.resolve("or", (strict, functions.resolve("and", (equal, compared(name, left[1:], right[1:])))))


def of_records(name: str, left: Sequence[Expr], right: Sequence[Expr]) -> Expr:
    """A comparison of two records: NULLs are equal, and greater than other values."""
    return records.of_records(functions.resolve, name, left, right)


def before(keys: Sequence[tuple[SortKey, Expr]]) -> Expr:
    """Whether a row comes before another in an order, whose keys are over the one beside values of the other."""
    return records.before(functions.resolve, keys)


def never_null(value: Expr) -> tuple[Expr, Expr]:
    """Two values that are never NULL, and equal where the value is: count(DISTINCT x) leaves NULLs out."""
    null = functions.resolve("is null", (value,))
    return null, functions.resolve("coalesce", (value, _some(value.type)))


def _some(type: SqlType) -> Expr:
    if type.kind is Kind.ENUM:
        return functions.cast(Literal(type.labels[0], UNKNOWN), type)
    if type.kind not in _SOME:
        raise UnsupportedSQL(f"distinct rows with a value of type {type} cannot be counted",
                             remedy="take its text: x::text")
    return functions.cast(Literal(_SOME[type.kind], UNKNOWN), type)

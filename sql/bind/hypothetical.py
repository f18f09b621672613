"""Hypothetical-set aggregates: `rank(5) WITHIN GROUP (ORDER BY x)`, the rank that a row would have in a group.

They are counts. The rank is one more than the rows before the row, the dense rank one more than the distinct values
before it. So they add up, and follow the change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import FALSE, TRUE, Column, Expr, Literal, conjunction
from halfjoin.sql.functions import cast, resolve, unify
from halfjoin.sql.functions.aggregates import resolve_aggregate
from halfjoin.sql.relation import AggregateCall, SortKey
from halfjoin.sql.types import BIGINT, DOUBLE, INTEGERS, UNKNOWN, Kind, SqlType

HYPOTHETICAL = frozenset(("rank", "dense_rank", "percent_rank", "cume_dist"))
Result = Callable[[Sequence[Column]], Expr]
_ONE = Literal(1, BIGINT)
_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_SOME = {  # a value of each type, as text
    **dict.fromkeys((*INTEGERS, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE, Kind.INTERVAL), "0"),
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR, Kind.CHAR, Kind.BYTEA), ""),
    **dict.fromkeys(_MOMENTS, "2000-01-01"),
    Kind.TIME: "00:00", Kind.BOOLEAN: "false", Kind.UUID: "00000000-0000-0000-0000-000000000000",
}  # fmt: skip


def hypothetical(name: str, row: Sequence[Expr], order: Sequence[SortKey],
                 condition: Expr | None) -> tuple[tuple[AggregateCall, ...], Result]:  # fmt: skip
    """The counts that a hypothetical-set aggregate needs, and its value over them.

    `row`: a value for each key of the order. `condition`: FILTER's.

    Raises:
        UnsupportedSQL: there are more or fewer values than keys, or their types do not fit.
    """
    if len(row) != len(order):
        raise UnsupportedSQL(f"{name} takes as many arguments as WITHIN GROUP (ORDER BY ...) has keys", wrong=True,
                             remedy=f"write {name}(5) WITHIN GROUP (ORDER BY x)")  # fmt: skip
    typed = [unify((key.expr, value)) for key, value in zip(order, row, strict=True)]
    keys = [(SortKey(key, one.descending, one.nulls_first), value)
            for (key, value), one in zip(typed, order, strict=True)]  # fmt: skip
    before = _before(keys)
    given = [] if condition is None else [condition]
    rows = _count((), [*given, before])
    match name:
        case "rank":
            return (rows,), lambda counts: _plus_one(counts[0])
        case "dense_rank":
            values = tuple(part for key, _ in keys for part in _never_null(key.expr))
            return (_count(values, [*given, before]),), lambda counts: _plus_one(counts[0])
        case "percent_rank":
            every = _count((), given)
            return (rows, every), lambda counts: resolve(
                "case", (resolve("=", (counts[1], Literal(0, BIGINT))), Literal(0.0, DOUBLE), _quotient(*counts)))
        case _:
            same = [resolve("is not distinct from", (key.expr, value)) for key, value in keys]
            upto = _count((), [*given, resolve("or", (before, conjunction(tuple(same))))])
            return (upto, _count((), given)), lambda counts: _quotient(*map(_plus_one, counts))


def _before(keys: Sequence[tuple[SortKey, Expr]]) -> Expr:
    """Whether a row comes before the hypothetical one: at the first key that differs."""
    (key, value), *rest = keys
    strict = resolve("case", (
        resolve("is null", (key.expr,)),
        resolve("is not null", (value,)) if key.nulls_first else FALSE,
        resolve("is null", (value,)), FALSE if key.nulls_first else TRUE,
        resolve(">" if key.descending else "<", (key.expr, value))))  # fmt: skip
    if not rest:
        return strict
    same = resolve("is not distinct from", (key.expr, value))
    return resolve("or", (strict, resolve("and", (same, _before(rest)))))


def _count(values: tuple[Expr, ...], conditions: Sequence[Expr]) -> AggregateCall:
    """The count of the rows for which the conditions are true, or of their distinct values."""
    typed = resolve_aggregate("count", (), condition=resolve("and", tuple(conditions)) if conditions else None)
    return AggregateCall("count", values, BIGINT, bool(values), typed.condition)


def _never_null(value: Expr) -> tuple[Expr, Expr]:
    """Two values that are never NULL, and equal where the value is: count(DISTINCT x) leaves NULLs out."""
    return resolve("is null", (value,)), resolve("coalesce", (value, _some(value.type)))


def _some(type: SqlType) -> Expr:
    if type.kind not in _SOME:
        raise UnsupportedSQL(f"dense_rank over {type} is not supported", remedy="order by its text: ORDER BY x::text")
    return cast(Literal(_SOME[type.kind], UNKNOWN), type)


def _plus_one(count: Expr) -> Expr:
    return resolve("+", (count, _ONE))


def _quotient(first: Expr, second: Expr) -> Expr:
    return resolve("/", (cast(first, DOUBLE), cast(second, DOUBLE)))

"""Hypothetical-set aggregates: `rank(5) WITHIN GROUP (ORDER BY x)`, the rank that a row would have in a group.

They are counts. The rank is one more than the rows before the row, the dense rank one more than the distinct values
before it. So they add up, and follow the change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.bind.row_order import before, never_null
from halfjoin.sql.expr import Column, Expr, Literal, conjunction
from halfjoin.sql.functions import cast, resolve, unify
from halfjoin.sql.functions.aggregates import resolve_aggregate
from halfjoin.sql.relation import AggregateCall, SortKey
from halfjoin.sql.types import BIGINT, DOUBLE

HYPOTHETICAL = frozenset(("rank", "dense_rank", "percent_rank", "cume_dist"))
Result = Callable[[Sequence[Column]], Expr]
_ONE = Literal(1, BIGINT)


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
    ahead = before(keys)
    given = [] if condition is None else [condition]
    rows = _count((), [*given, ahead])
    match name:
        case "rank":
            return (rows,), lambda counts: _plus_one(counts[0])
        case "dense_rank":
            values = tuple(part for key, _ in keys for part in never_null(key.expr))
            return (_count(values, [*given, ahead]),), lambda counts: _plus_one(counts[0])
        case "percent_rank":
            every = _count((), given)
            return (rows, every), lambda counts: resolve(
                "case", (resolve("=", (counts[1], Literal(0, BIGINT))), Literal(0.0, DOUBLE), _quotient(*counts)))
        case _:
            same = [resolve("is not distinct from", (key.expr, value)) for key, value in keys]
            upto = _count((), [*given, resolve("or", (ahead, conjunction(tuple(same))))])
            return (upto, _count((), given)), lambda counts: _quotient(*map(_plus_one, counts))


def _count(values: tuple[Expr, ...], conditions: Sequence[Expr]) -> AggregateCall:
    """The count of the rows for which the conditions are true, or of their distinct values."""
    typed = resolve_aggregate("count", (), condition=resolve("and", tuple(conditions)) if conditions else None)
    return AggregateCall("count", values, BIGINT, bool(values), typed.condition)


def _plus_one(count: Expr) -> Expr:
    return resolve("+", (count, _ONE))


def _quotient(first: Expr, second: Expr) -> Expr:
    return resolve("/", (cast(first, DOUBLE), cast(second, DOUBLE)))

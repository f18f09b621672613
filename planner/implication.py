"""Whether one condition on a row implies another: `x > 7` implies `x > 5`, and `x = 6` implies it too.

Only comparisons of the same expression with constants of the same kind are looked at, where constants have the order
that the engine gives them. Texts, `real` (whose constants are rounded) and NULL are left out.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from operator import eq, ge, gt, le, lt
from typing import Any, NamedTuple

from halfjoin.sql.expr import FLIPPED, Call, Expr, Literal
from halfjoin.sql.kept import kept_if_small
from halfjoin.sql.types import Kind

_COMPARED = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_ORDERED = {Kind.SMALLINT: int, Kind.INTEGER: int, Kind.BIGINT: int, Kind.NUMERIC: Decimal, Kind.DOUBLE: float,
            Kind.DATE: date, Kind.TIMESTAMP: datetime, Kind.TIMESTAMPTZ: datetime}  # fmt: skip


class Comparison(NamedTuple):
    """A column or expression beside a constant."""

    subject: Expr
    op: str
    value: Any
    kind: Kind


@kept_if_small(4096)  # each lookup in an index asks
def all_implied(conditions: frozenset[Expr], by: frozenset[Expr]) -> bool:
    """Whether every row that meets all of `by` meets all these conditions."""
    return all(any(implies(one, condition) for one in by) for condition in conditions)


def implies(one: Expr, other: Expr) -> bool:
    """Whether `other` is true for every row for which `one` is. False also if that is not known.

    >>> from halfjoin.sql.expr import Column
    >>> from halfjoin.sql.types import BIGINT, BOOLEAN
    >>> def x(op, value):
    ...     return Call(op, (Column("x", BIGINT), Literal(value, BIGINT)), BOOLEAN)
    >>> implies(x(">", 7), x(">", 5)), implies(x(">", 5), x(">=", 5)), implies(x("=", 6), x(">", 5))
    (True, True, True)
    >>> implies(x(">", 5), x(">", 7)), implies(x(">=", 5), x(">", 5)), implies(x(">", 7), x("<", 9))
    (False, False, False)
    """
    return one == other or is_narrower(comparison(one), comparison(other))


def is_narrower(narrow: Comparison | None, wide: Comparison | None) -> bool:
    """Whether the second comparison is true wherever the first is. None: it is no comparison."""
    if narrow is None or wide is None or narrow.kind is not wide.kind or narrow.subject != wide.subject:
        return False
    if narrow.op == "=":
        return bool(_COMPARED[wide.op](narrow.value, wide.value))
    if narrow.op[0] != wide.op[0]:
        return False
    if narrow.value == wide.value:
        return narrow.op in ("<", ">") or wide.op in ("<=", ">=")
    return bool(_COMPARED[wide.op](narrow.value, wide.value))


def comparison(expr: Expr) -> Comparison | None:
    """A comparison with a constant, which is moved to the right. None: the expression is something else."""
    match expr:
        case Call(op, (subject, Literal(value, type_))) if op in _COMPARED:
            pass
        case Call(op, (Literal(value, type_), subject)) if op in _COMPARED:
            op = FLIPPED[op]
        case _:
            return None
    # NULL has another class, and so have dates beyond Python's and values that are not known yet. NaN is no number.
    known = type(value) is _ORDERED.get(type_.kind) and value == value
    return Comparison(subject, op, value, type_.kind) if known else None

"""Makes expressions that tell where other expressions fail, and do not fail themselves."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.sql.expr import Call, Expr
from halfjoin.sql.functions.fallible import fallible
from halfjoin.sql.functions.resolve import resolve
from halfjoin.sql.types import BOOLEAN

_FAILS = "value fails"


def value_or_null(expr: Expr) -> Expr:
    """The value, or NULL for a row for which the expression fails."""
    return Call("value or null", (expr,), expr.type) if fallible(expr) else expr


def fails(exprs: Sequence[Expr]) -> Expr:
    """Whether at least one of the expressions fails for a row."""
    each = [Call(_FAILS, (expr,), BOOLEAN) for expr in exprs]
    return each[0] if len(each) == 1 else resolve("or", each)


def is_failing(expr: Expr) -> bool:
    """Whether an expression is made by `fails`."""
    if isinstance(expr, Call) and expr.function == "or":
        return all(map(is_failing, expr.args))
    return isinstance(expr, Call) and expr.function == _FAILS


def reads_tried(expr: Expr) -> bool:
    """Whether an expression is made by `value_or_null`."""
    return isinstance(expr, Call) and expr.function == "value or null"

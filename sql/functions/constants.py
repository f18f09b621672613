"""Arithmetic of numeric constants, so that `1.0 / 3` has the decimals that PostgreSQL gives this one quotient.

A column of quotients has the most decimals that any of its rows needs. A constant is one row, and its type says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.decimal_places import of_quotient
from halfjoin.sql.types import STORED_DIGITS, Kind, numeric

_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
_OPERATORS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": _EXACT.add, "-": _EXACT.subtract, "*": _EXACT.multiply}  # fmt: skip


def constants(args: Sequence[Expr]) -> tuple[Decimal, ...] | None:
    """The values of arguments that are all constants, with the decimals of their types; None if one is not, or is NULL.

    A type is made by it, so a query with an unseen value is made anew for each value.
    """
    found = []
    for arg in args:
        if not isinstance(arg, Literal) or arg.type.kind is not Kind.NUMERIC:
            return None
        if not isinstance(arg.value, int | Decimal):
            return None
        found.append(Decimal(arg.value).quantize(Decimal(1).scaleb(-(arg.type.scale or 0)), context=_EXACT))
    return tuple(found)


def folded(call: Call) -> Expr:
    """The value of a sum, difference, product or quotient of numeric constants; another call itself."""
    values = constants(call.args) if call.function in ("+", "-", "*", "/") and len(call.args) == 2 else None
    if values is None or call.type.kind is not Kind.NUMERIC:
        return call
    if call.function != "/":
        value = _OPERATORS[call.function](*values)
    elif values[1]:
        value = _EXACT.divide(*values)
        value = value.quantize(Decimal(1).scaleb(-of_quotient(*values)), context=_EXACT)
    else:
        return call
    scale = -int(value.as_tuple().exponent)
    digits = max(value.adjusted() + 1, 0) + scale if value else max(scale, 1)
    if digits > STORED_DIGITS:
        return call
    return Literal(value if value else value.copy_abs(), numeric(digits, scale))

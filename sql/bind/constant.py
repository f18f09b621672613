"""Computes constant numbers, where SQL takes a constant: LIMIT 2 * 5, ROWS 1 + 1 PRECEDING."""

from __future__ import annotations

from decimal import Decimal

from halfjoin.sql import functions
from halfjoin.sql.expr import Call, Cast, Expr, Literal
from halfjoin.sql.types import INTEGERS, Kind


def constant(value: Expr) -> Expr:
    """The value of arithmetic on numbers; anything else stays."""
    match value:
        case Cast(arg=arg, type=type):
            inner = constant(arg)
            return functions.cast(inner, type, explicit=True) if isinstance(inner, Literal) else value
        case Call(function="+" | "-" | "*" | "neg" as name, args=args, type=type):
            parts = [part.value for part in map(constant, args) if isinstance(part, Literal)]
            numbers = [part for part in parts if isinstance(part, int | Decimal)]
            if len(numbers) == len(args) and type.kind in (*INTEGERS, Kind.NUMERIC):
                first, last = numbers[0], numbers[-1]
                made = {"+": first + last, "-": first - last, "*": first * last, "neg": -first}[name]
                return Literal(made, type)
    return value

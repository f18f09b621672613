"""Decides whether evaluating an expression can fail for some row of well-typed values."""

from __future__ import annotations

from halfjoin.sql.expr import Call, Cast, Expr, Literal, children, columns_of
from halfjoin.sql.functions.coercion import INTEGER_DIGITS, MOMENTS, digits, same_values
from halfjoin.sql.functions.growth import may_grow
from halfjoin.sql.functions.record_values import COLUMN, MEMBER, ROW, THERE
from halfjoin.sql.functions.resolve import overload_of
from halfjoin.sql.functions.table import ENTRIES
from halfjoin.sql.kept import kept_if_small
from halfjoin.sql.types import FLOATS, INTEGERS, STRINGS, Kind, SqlType

# Calls that tell whether an argument fails, and do not fail for it (`failing`).
_CAUGHT = frozenset(("value or null", "value fails"))

# Operators that give NULL for a NULL.
_STRICT = frozenset(("=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "^"))

_OF_ROWS = frozenset((ROW, MEMBER, THERE, COLUMN))  # what a query has of rows before `apart` takes them apart


def always_null(call: Call) -> bool:
    """Whether a call is NULL whatever the row is: an operand is NULL, as in `1 / x < NULL`.

    As in PostgreSQL, the other operand is not evaluated then, so it cannot fail. A constant one fails all the same.
    """
    rest = [arg for arg in call.args if not (isinstance(arg, Literal) and arg.value is None)]
    return call.function in _STRICT and len(rest) < len(call.args) and any(map(columns_of, rest))


@kept_if_small(65536)
def fallible(expr: Expr) -> bool:
    """Whether some part of the expression may fail: by overflow, division by zero, a narrowing cast, ..."""
    if isinstance(expr, Call) and (expr.function in _CAUGHT or always_null(expr)):
        return False
    parts = [child for child in children(expr) if isinstance(child, Call | Cast)]  # a list may have many constants
    return _fails_itself(expr) or any(map(fallible, parts))


def _fails_itself(expr: Expr) -> bool:
    match expr:
        case Cast(arg=arg, type=type):
            return cast_fallible(arg.type, type)
        case Call(function=name, args=args):
            if may_grow(expr):
                return True
            if name in _OF_ROWS:
                return False
            function = ENTRIES[name]
            if function.special is not None:
                return any(overload.fallible for overload in function.overloads)
            overload = overload_of(expr)
            return overload is None or (overload.fallible and not (function.safe and function.safe(args)))
        case _:
            return False


def cast_fallible(source: SqlType, target: SqlType) -> bool:
    """Whether the cast fails for some value of `source`."""
    a, b = source.kind, target.kind
    if b is Kind.ARRAY:
        return source.element is None or target.element is None or cast_fallible(source.element, target.element)
    if a is Kind.RECORD and b is a:
        return any(cast_fallible(one, other) for (_, one), (_, other) in zip(source.fields, target.fields, strict=True))
    if b is Kind.TIME and target.precision is not None and not same_values(source, target):
        return True  # it may round up to 24:00
    if b in STRINGS or (a is b and b is not Kind.NUMERIC):
        return False
    if (a, b) == (Kind.JSONB, Kind.JSON):
        return False
    if a in (*STRINGS, Kind.JSON, Kind.JSONB):
        return True
    if a in INTEGERS and b in INTEGERS:
        return INTEGERS.index(a) > INTEGERS.index(b)
    if a is Kind.NUMERIC and b in INTEGERS:
        before, after = digits(source)
        return before + (after > 0) >= INTEGER_DIGITS[b]
    if a in (*INTEGERS, Kind.NUMERIC) and b is Kind.NUMERIC:
        (before, after), (room, scale) = digits(source), digits(target)
        return before + (after > scale) > room  # rounding up may carry into one more digit
    if a in (*INTEGERS, Kind.NUMERIC) and b in FLOATS:
        return b is Kind.REAL and digits(source)[0] > 38
    if a in FLOATS:
        return b is not Kind.DOUBLE
    if a is Kind.DATE:
        return b is not a  # there are later dates than timestamps
    return not (a in MOMENTS and b in (*MOMENTS, Kind.TIME)) and (a, b) not in _ALWAYS


_ALWAYS = {
    (Kind.INTEGER, Kind.BOOLEAN), (Kind.BOOLEAN, Kind.INTEGER), (Kind.TIME, Kind.INTERVAL), (Kind.INTERVAL, Kind.TIME),
}  # fmt: skip

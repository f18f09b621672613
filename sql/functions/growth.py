"""Bounds on the length of values. Functions that join, pad or replace can return more bytes than they get.

A call that may exceed `VALUE_BYTES` for some row may fail; the evaluator checks the lengths of its arguments before it
builds a value (`engine.scalar.bounds`).
"""

from __future__ import annotations

import math

from halfjoin.sql.expr import Call, Cast, Expr, Literal
from halfjoin.sql.kept import kept_if_small
from halfjoin.sql.types import STRINGS, VALUE_BYTES, Kind, SqlType

_PRINTED = 100  # a bound on the bytes of a value of a fixed-width type, and of its text
_CHARACTER = 4  # the most bytes of one character
_JOINED = frozenset({"||", "concat", "concat_ws", "array", "array_append", "array_prepend", "array_cat",
                     "append part", "prepend part"})
_FILLED = frozenset({"lpad", "rpad"})
_COPIED = frozenset({"array_to_string", "repeat"})
_REPLACED = frozenset({"replace", "regexp_replace"})
_CUT = frozenset({"left", "right"})


def may_grow(expr: Call) -> bool:
    """Whether the call itself may build a value longer than `VALUE_BYTES`."""
    return expr.function in _JOINED | _FILLED | _REPLACED | _COPIED and most_bytes(expr) > VALUE_BYTES


@kept_if_small(65536)
def most_bytes(expr: Expr) -> float:
    """An upper bound on the bytes of the expression's values; infinity if no bound is known."""
    match expr:
        case Literal(value=str() as text):
            return len(text.encode(errors="replace"))
        case Literal(value=bytes() as data):
            return len(data)
        case Cast(arg=arg, type=type) if arg.type.kind in STRINGS and type.kind in STRINGS:
            return min(most_bytes(arg), _of_type(type))
        case Cast(arg=arg, type=type) if type.kind in STRINGS and arg.type.kind not in (Kind.JSON, Kind.JSONB):
            return min(2 * most_bytes(arg) + 2, _of_type(type))  # bytes in hexadecimal digits
        case Call(function=name, args=args):
            return min(_of_type(expr.type), _made(name, args))
        case _:
            return _of_type(expr.type)


def _made(name: str, args: tuple[Expr, ...]) -> float:
    if name in _JOINED:
        return _added_up(args) + (len(args) * most_bytes(args[0]) if name == "concat_ws" else 0)
    if name in _FILLED | _CUT and isinstance(args[1], Literal) and isinstance(args[1].value, int):
        length = args[1].value
        return _CHARACTER * length if length >= 0 else most_bytes(args[0])
    if name in ("coalesce", "case", "nullif", "greatest", "least"):
        return max(map(most_bytes, args))
    return math.inf


def _added_up(args: tuple[Expr, ...]) -> float:
    """The sum of the bounds. The last come first: all before them in a long chain are the first argument."""
    total: float = 0
    for arg in reversed(args):
        if total == math.inf:
            break
        total += most_bytes(arg)
    return total


def _of_type(type: SqlType) -> float:
    if type.kind in (Kind.VARCHAR, Kind.CHAR) and type.precision is not None:
        return _CHARACTER * type.precision
    if type.kind in (*STRINGS, Kind.BYTEA, Kind.ARRAY, Kind.RECORD, Kind.JSON, Kind.JSONB, Kind.UNKNOWN):
        return math.inf
    return _PRINTED

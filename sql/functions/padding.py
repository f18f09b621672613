"""The blanks at the end of a char(n), which are not stored."""

from __future__ import annotations

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.types import INTEGER, TEXT, Kind, SqlType, parts_of


def padded(expr: Expr) -> Expr:
    """A char(n) as text with its padding of blanks. Values are stored without it, and few functions count it.

    Raises:
        UnsupportedSQL: it is of chars of several lengths, or holds such chars, so nobody knows its blanks.
    """
    if isinstance(expr, Literal) and expr.value is None:
        return expr
    if _has_any_length(expr.type):
        raise UnsupportedSQL("a char without a length, where trailing blanks count",
                             remedy="cast it to text, or to char(n)")
    if expr.type.kind is not Kind.CHAR:
        return expr
    length = expr.type.precision
    assert length is not None
    if isinstance(expr, Literal):
        return Literal(str(expr.value).ljust(length), TEXT)
    return Call("rpad", (expr, Literal(length, INTEGER)), TEXT)


def _has_any_length(type: SqlType) -> bool:
    if type.kind is Kind.CHAR:
        return type.precision is None
    return any(map(_has_any_length, parts_of(type)))

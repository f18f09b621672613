"""The blanks at the end of a char(n), which are not stored."""

from __future__ import annotations

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.types import INTEGER, TEXT, Kind


def padded(expr: Expr) -> Expr:
    """A char(n) as text with its padding of blanks. Values are stored without it, and few functions count it."""
    if expr.type.kind is not Kind.CHAR or (isinstance(expr, Literal) and expr.value is None):
        return expr
    length = expr.type.precision
    if length is None:
        raise UnsupportedSQL("a char without a length, where trailing blanks count",
                             remedy="cast it to text, or to char(n)")
    if isinstance(expr, Literal):
        return Literal(str(expr.value).ljust(length), TEXT)
    return Call("rpad", (expr, Literal(length, INTEGER)), TEXT)

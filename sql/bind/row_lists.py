"""`(a, b) IN ((1, 'x'), (2, 'y'), ...)` of many rows is `(a, b) IN (VALUES ...)`.

Each row of a table would be compared with each of the list, and the results of all comparisons would be in memory at
once. Rows of VALUES are looked up, or joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.sql.bind.quantified import has_subquery
from halfjoin.sql.bind.row_values import members_of
from halfjoin.sql.types import INTEGERS, Kind

if TYPE_CHECKING:
    from halfjoin.sql.bind.scalar import Scalars

MANY = 64  # rows; so few are compared as fast
_NAMES = {Kind.TEXT: "text", Kind.VARCHAR: "text", Kind.DATE: "date", Kind.UUID: "uuid", Kind.NUMERIC: "numeric",
          Kind.TIMESTAMP: "timestamp", Kind.TIMESTAMPTZ: "timestamptz", **{kind: kind.value for kind in INTEGERS}}


def without_lists(node: exp.Expr, scalars: Scalars) -> exp.Expr:
    """A condition, or the same with VALUES if it is a long list of rows of constants.

    A text in quotes means what the column beside it is, so its type is written. Lists with NULLs stay.
    """
    left = members_of(node.this) if isinstance(node, exp.In) else None
    if left is None or len(node.expressions) <= MANY or has_subquery(node):
        return node
    rows = [members_of(row) or [] for row in node.expressions]
    if not all(len(row) == len(left) and all(map(_is_constant, row)) for row in rows):
        return node
    names = [_NAMES.get(scalars.value(member).type.kind) for member in left]
    untyped = [any(value.is_string for value in column) for column in zip(*rows, strict=True)]
    if any(one and name is None for one, name in zip(untyped, names, strict=True)):
        return node
    values = [exp.Tuple(expressions=list(map(_typed, row, names))) for row in rows]
    return exp.In(this=node.this, expressions=[exp.Values(expressions=values)])


def _typed(value: exp.Expr, name: str | None) -> exp.Expr:
    if name is None or not value.is_string:
        return value.copy()
    return exp.Cast(this=value.copy(), to=exp.DataType.build(name, dialect="postgres"))


def _is_constant(node: exp.Expr) -> bool:
    return isinstance(node.this if isinstance(node, exp.Neg) else node, exp.Literal)

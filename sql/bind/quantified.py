"""The syntax of subqueries in expressions: EXISTS, IN, ANY, ALL, ARRAY, scalar ones, comparisons of a row with one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from halfjoin.sql.bind import temporal as bind_temporal
from halfjoin.sql.bind.scalar import members_of
from halfjoin.sql.expr import Expr

OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True)
class Quantified:
    """`x < ANY (query)`, or ALL if `every`. `members`: x, or the members of a row. IN is `= ANY`."""

    members: list[exp.Expr]
    operator: str
    every: bool
    query: exp.Expr


@dataclass(frozen=True)
class RowComparison:
    """`(a, b) < (query)`."""

    members: list[exp.Expr]
    operator: str
    query: exp.Expr


def has_subquery(node: exp.Expr) -> bool:
    """Whether an expression contains a subquery."""
    return node.find(exp.Query) is not None


def quantified(node: exp.Expr) -> Quantified | None:
    """`x IN (query)`, `x < ANY (query)` or `x <> ALL (query)`; None for another node."""
    if isinstance(node, exp.In):
        query = node.args.get("query")
        return None if query is None else Quantified(members_of(node.this) or [node.this], "=", False, query)
    operator = bind_temporal.COMPARISONS.get(type(node))
    right = node.args.get("expression")
    if operator is None or right is None:
        return None
    every = isinstance(right, exp.All) or right.name.lower() == "all"
    if isinstance(right, exp.Anonymous) and right.name.lower() in ("all", "some") and right.expressions:
        right = right.expressions[0]
    elif isinstance(right, (exp.Any, exp.All)):
        right = right.this
    else:
        return None
    if not isinstance(right.unnest(), exp.Query):
        return None
    return Quantified(members_of(node.this) or [node.this], operator, every, right)


def row_comparison(node: exp.Expr) -> RowComparison | None:
    """`(a, b) = (query)`; None for another node."""
    operator = bind_temporal.COMPARISONS.get(type(node))
    if operator is None or not isinstance(node.expression, exp.Query):
        return None
    members = members_of(node.this)
    return None if members is None else RowComparison(members, operator, node.expression)


def listed(node: exp.Expr) -> exp.Query | None:
    """The query of `ARRAY(query)`; None for another node."""
    if not isinstance(node, exp.Array) and not (isinstance(node, exp.Anonymous) and node.name.lower() == "array"):
        return None
    query = node.expressions[0] if len(node.expressions) == 1 else None
    return query if isinstance(query, exp.Query) else None


def outermost(node: exp.Expr, bound: Mapping[int, Expr]) -> Iterator[exp.Expr]:
    """The nodes that turn a subquery into a value, operands first; not those inside other subqueries, nor those that
    are bound."""
    if id(node) in bound:
        return
    asked = quantified(node) or row_comparison(node)
    if asked is not None:
        for member in asked.members:
            yield from outermost(member, bound)
        yield node
    elif isinstance(node, (exp.Query, exp.Exists)) or listed(node) is not None:
        yield node
    else:
        for child in node.iter_expressions():
            yield from outermost(child, bound)

"""The syntax of subqueries in expressions: EXISTS, IN, ANY, ALL, ARRAY, scalar ones, comparisons of a row with one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from halfjoin.sql.bind import temporal as bind_temporal
from halfjoin.sql.bind.row_values import members_of
from halfjoin.sql.expr import Expr

QUERIES = (exp.Query, exp.Values)
OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


@dataclass(frozen=True)
class Quantified:
    """`x < ANY (query)`, or ALL if `every`. `members`: x, or the members of a row. IN is `= ANY`.

    `records`: NULLs are equal (see `records`).
    """

    members: list[exp.Expr]
    operator: str
    every: bool
    query: exp.Expr
    records: bool = False


@dataclass(frozen=True)
class RowComparison:
    """`(a, b) < (query)`."""

    members: list[exp.Expr]
    operator: str
    query: exp.Expr


def has_subquery(node: exp.Expr) -> bool:
    """Whether an expression contains a subquery."""
    return node.find(*QUERIES) is not None


def exists(node: exp.Expr) -> exp.Expr | None:
    """The query of EXISTS; None for another node."""
    if isinstance(node, exp.Exists):
        found: exp.Expr = node.this
        return found
    return _argument(node) if isinstance(node, exp.Anonymous) and node.name.lower() == "exists" else None


def array_of(node: exp.Expr) -> exp.Expr | None:
    """The query of ARRAY(query); None for another node. `ARRAY[(query)]` has one element, the value of the query."""
    return _argument(node) if isinstance(node, exp.Anonymous) and node.name.lower() == "array" else None


def _argument(node: exp.Expr) -> exp.Expr | None:
    """The query that is the only argument of a call."""
    found = node.expressions[0] if len(node.expressions) == 1 else None
    return found if isinstance(found, QUERIES) else None


def quantified(node: exp.Expr) -> Quantified | None:
    """`x IN (query)`, `x < ANY (query)` or `x <> ALL (query)`; None for another node."""
    if isinstance(node, exp.In):
        query = node.args.get("query")
        if query is None and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Values):
            query = node.expressions[0]
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
    if not isinstance(right.unnest(), QUERIES):
        return None
    return Quantified(members_of(node.this) or [node.this], operator, every, right)


def row_comparison(node: exp.Expr) -> RowComparison | None:
    """`(a, b) = (query)`; None for another node."""
    operator = bind_temporal.COMPARISONS.get(type(node))
    if operator is None or not isinstance(node.expression, exp.Query):
        return None
    members = members_of(node.this)
    return None if members is None else RowComparison(members, operator, node.expression)


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
    elif isinstance(node, QUERIES) or exists(node) is not None or array_of(node) is not None:
        yield node
    else:
        for child in node.iter_expressions():
            yield from outermost(child, bound)

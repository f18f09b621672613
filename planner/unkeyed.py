"""Finds the outer joins that another input of a join can be looked up by only if their rows are kept.

In `a LEFT JOIN b ON b.k = a.k, c WHERE coalesce(b.x, 0) = c.x` a default row of b has a partner in c. So the condition
is no equality of the join's inputs, and a change of c would meet every row of a. With the outer join as a node, the
condition is an equality of two columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from halfjoin.planner.nulls import rejects
from halfjoin.sql.expr import Call, Expr, columns_of, conjuncts
from halfjoin.sql.functions.fallible import fallible
from halfjoin.sql.relation import Filter, Join, Outer, Project, Relation, Semi, TableFunction
from halfjoin.sql.types import looks_vary


def unkeyed(relation: Filter) -> frozenset[int]:
    """The inputs of the join below the filters that are better kept, by their numbers; none if there is no join."""
    predicates: list[Expr] = []
    below: Relation = relation
    while isinstance(below, Filter):
        predicates += conjuncts(below.predicate)
        below = below.input
    if not isinstance(below, Join):
        return frozenset()
    inside = [{column.name for column in item.columns} for item in below.inputs]
    padded = [_padded(item) for item in below.inputs]
    nulls = {name for names in padded for name in names if not any(rejects(one, {name}) for one in predicates)}
    links = [link for predicate in predicates if columns_of(predicate) & nulls for link in _links(predicate, inside)]
    others = (predicate for predicate in predicates if not columns_of(predicate) & nulls)
    plain = {frozenset(pair) for predicate in others for pair, _ in _links(predicate, inside)}
    linked = {number for pair in plain for number in pair}
    return frozenset(
        left for (left, right), expr in links
        if columns_of(expr) & padded[left] and frozenset((left, right)) not in plain
        and (right not in linked or left not in linked) and not fallible(expr)
    )  # fmt: skip


def _links(predicate: Expr, inside: Sequence[set[str]]) -> Iterator[tuple[tuple[int, int], Expr]]:
    """The inputs that an equality connects, with the side that reads the first of them."""
    if not (isinstance(predicate, Call) and predicate.function == "=") or looks_vary(predicate.args[0].type):
        return
    for one, other in (predicate.args, predicate.args[::-1]):
        left, right = (_only(expr, inside) for expr in (one, other))
        if left is not None and right is not None and left != right:
            yield (left, right), one


def _only(expr: Expr, inside: Sequence[set[str]]) -> int | None:
    """The only input that an expression reads."""
    read = columns_of(expr)
    return next((number for number, names in enumerate(inside) if read and read <= names), None)


def _padded(relation: Relation) -> set[str]:
    """The columns that read a side of an outer join that may be missing."""
    match relation:
        case Outer(left, right, full=full):
            names = {column.name for column in (relation.columns if full else right.columns)}
            return names | _padded(left)
        case Filter(input) | Semi(input) | TableFunction(input):
            return _padded(input)
        case Join(inputs):
            return set[str]().union(*map(_padded, inputs))
        case Project(input, items):
            below = _padded(input)
            return {column.name for column, expr in items if columns_of(expr) & below}
        case _:
            return set()

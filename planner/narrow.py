"""Leaves out the columns of looked-up sides that nothing reads, since a side that becomes a node keeps its columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from halfjoin.sql.bind.reading import expressions
from halfjoin.sql.expr import columns_of
from halfjoin.sql.relation import Aggregate, Filter, Join, Outer, Project, Relation, Semi, TableFunction, with_inputs


def narrowed(relation: Relation, wanted: frozenset[str] | None = None) -> Relation:
    """The relation with the columns `wanted`, and perhaps others; None: all of them, in their order.

    The columns of a top-k and of a window all count, since they order rows that tie.
    """
    whole = wanted is None
    wanted = frozenset(column.name for column in relation.columns) if wanted is None else wanted
    read = wanted.union(*map(columns_of, expressions(relation)))
    match relation:
        case Outer(left, right):
            return replace(relation, left=narrowed(left, read), right=_only(narrowed(right, read), read))
        case Semi(input, other):
            return replace(relation, input=narrowed(input, read), other=_only(narrowed(other, read), read))
        case Join() | Filter() | TableFunction():
            return with_inputs(relation, lambda below: narrowed(below, read))
        case Project(input, items):
            if not whole:
                items = tuple(item for item in items if item[0].name in wanted) or items[:1]
            inside = frozenset[str]().union(*(columns_of(expr) for _, expr in items))
            return Project(narrowed(input, inside), items)
        case Aggregate():
            inside = frozenset[str]().union(*map(columns_of, expressions(relation)))
            return with_inputs(relation, lambda below: narrowed(below, inside))
        case _:
            return with_inputs(relation, narrowed)


def _only(relation: Relation, names: Iterable[str]) -> Relation:
    """The relation with only these columns, or one column if it has none of them."""
    kept = tuple((column, column) for column in relation.columns if column.name in names)
    if len(kept) == len(relation.columns):
        return relation
    return Project(relation, kept or tuple((column, column) for column in relation.columns[:1]))

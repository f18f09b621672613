"""Joins a subquery to its domain: the distinct values of the outer columns that it reads.

This serves a subquery that reads outer columns otherwise than in equalities with its own, such as `b.y < a.y`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from halfjoin.sql import functions
from halfjoin.sql.bind.correlation import Inner, filtered, is_single, needs_domain, over_nothing, projected
from halfjoin.sql.bind.reading import changed, outer_columns
from halfjoin.sql.expr import Column, columns_of, conjunction, conjuncts, is_temporal, substitute
from halfjoin.sql.functions import fallible
from halfjoin.sql.relation import (
    Aggregate,
    Filter,
    Join,
    Outer,
    Project,
    Relation,
    Semi,
    TableFunction,
    TopK,
    UnionAll,
    Values,
    Window,
    with_inputs,
)


def in_domain(relation: Relation, domain: Relation, outer: Mapping[str, Column]) -> Inner:
    """The subquery, joined to the distinct values of the outer columns that it reads. `outer` has the domain's column
    for each of them.

    Raises:
        UnsupportedSQL: two parts of a join read them, or the right side of an outer or semi-join does.
    """
    if is_single(relation):
        match relation:
            case Filter(input, predicate):
                return filtered(in_domain(input, domain, outer), predicate)
            case Project(input, items):
                return projected(in_domain(input, domain, outer), items)
    inside = _renamed(relation, outer)
    on = tuple(
        functions.resolve("is not distinct from", (Column(name, column.type), column)) for name, column in outer.items()
    )
    found = Inner(_with_domain(inside, domain), on)
    if isinstance(relation, Aggregate) and not relation.keys:
        return replace(found, single=True, meanings=over_nothing(relation))
    return found


def _renamed(relation: Relation, names: Mapping[str, Column]) -> Relation:
    """The relation with these columns in place of others."""
    own = changed(relation, lambda expr: substitute(expr, names))
    return with_inputs(own, lambda below: _renamed(below, names))


def _with_domain(relation: Relation, domain: Relation) -> Relation:
    """The rows of a subquery beside the row of the domain that they are for. It reads the domain's columns as outer
    ones.
    """
    names = {column.name for column in domain.columns}
    own = tuple((column, column) for column in domain.columns)

    def reads(one: Relation) -> bool:
        return bool(outer_columns(one).keys() & names)

    if not reads(relation):
        return Join((domain, relation))
    match relation:
        case Join(inputs) if sum(map(reads, inputs)) == 1:
            return Join(tuple(_with_domain(item, domain) if reads(item) else item for item in inputs))
        case UnionAll(inputs, columns):
            arms = (_with_domain(item, domain) for item in inputs)
            shown = tuple(
                Project(arm, (*own, *zip(columns, item.columns, strict=True)))
                for arm, item in zip(arms, inputs, strict=True)
            )
            return UnionAll(shown, (*domain.columns, *columns))
        case Project(input, items):
            return Project(_with_domain(input, domain), (*own, *items))
        case Aggregate(input, keys):
            return replace(relation, input=_with_domain(input, domain), keys=(*own, *keys))
        case TopK(input, partition) | Window(input, partition):
            return replace(relation, input=_with_domain(input, domain), partition=(*domain.columns, *partition))
        case Filter(input) | TableFunction(input):
            return replace(relation, input=_with_domain(input, domain))
        case Outer(left, right, full=False) if not reads(right):
            return replace(relation, left=_with_domain(left, domain))
        case Semi(input, other) if not reads(other):
            return replace(relation, input=_with_domain(input, domain))
        case Values(columns=columns, rows=rows) if len(rows) == 1:
            return Project(domain, (*own, *zip(columns, rows[0], strict=True)))
    raise needs_domain()
def supplier(relation: Relation, names: set[str]) -> Relation:
    """The least part of a relation that gives all of these columns, with the conditions on it alone."""
    match relation:
        case Filter(input, predicate):
            below = supplier(input, names)
            there = {column.name for column in below.columns}
            safe = tuple(part for part in conjuncts(predicate) if columns_of(part) <= there
                         and not fallible(part) and not is_temporal(part))  # fmt: skip
            return Filter(below, conjunction(safe)) if safe else below
        case Join(inputs):
            needed = tuple(item for item in inputs if _has(item, names))
            return supplier(needed[0], names) if len(needed) == 1 else relation
        case Outer(input, full=False) | Semi(input) | TableFunction(input) | Window(input):
            inside = {column.name for column in input.columns}
            return supplier(input, names) if names <= inside else relation
        case _:
            return relation


def _has(relation: Relation, names: set[str]) -> bool:
    return any(column.name in names for column in relation.columns)

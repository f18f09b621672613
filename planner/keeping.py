"""Whether a part of a view can be a node that keeps its rows, and why not."""

from __future__ import annotations

from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.fallibility import step_fallible
from halfjoin.planner.linear import Explode
from halfjoin.planner.rules.fit_outputs import stored
from halfjoin.sql.expr import Column, is_temporal
from halfjoin.sql.functions import fallible
from halfjoin.sql.relation import (
    Filter,
    Outer,
    Project,
    Relation,
    Semi,
    TableFunction,
    Values,
    every_part,
)


def cannot_be_kept(side: Relation) -> UnsupportedSQL:
    """Why a looked-up side cannot be a node."""
    held = "a side of an outer or semi-join that has joins, groups or mz_now() of its own is kept"
    for column in side.columns:
        name = column.name.rpartition(".")[2]
        if stored(column) != column.type:
            return UnsupportedSQL(f"column {name} has more than 38 digits: {held}, and no collection can hold them",
                                  remedy=f"round it: round({name}, 10), or cast it to numeric(38, 10)")  # fmt: skip
    return UnsupportedSQL(f"mz_now() is used outside WHERE: {held}", remedy="write mz_now() in WHERE")


def may_be_kept(relation: Relation, failing: bool = False) -> bool:
    """Whether a node can keep the rows: mz_now() is only in filters, the columns have types that can be stored, and
    unless `failing`, nothing in the rows may fail."""
    columns: tuple[Column, ...] = relation.columns
    if not columns or any(stored(c) != c.type for c in columns):
        return False
    return all(not _moves(part) and (failing or not _may_fail(part)) for part in every_part(relation))


def _moves(relation: Relation) -> bool:
    """Whether a part has mz_now() where it is no filter."""
    match relation:
        case Project(_, items):
            return any(is_temporal(expr) for _, expr in items)
        case TableFunction(args=args):
            return any(map(is_temporal, args))
        case _:
            return False


def _may_fail(relation: Relation) -> bool:
    match relation:
        case Filter(_, predicate):
            return fallible(predicate)
        case Project(_, items):
            return any(fallible(expr) for _, expr in items)
        case Outer(_, _, on) | Semi(_, _, on):
            return fallible(on)
        case Values(_, _, rows):
            return any(fallible(cell) for row in rows for cell in row)
        case TableFunction(_, function, alias, args, outputs, ordinality, calls):
            return step_fallible(Explode(function, alias, args, outputs, ordinality, calls))
        case _:
            return False

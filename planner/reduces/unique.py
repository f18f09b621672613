"""Leaves out a DISTINCT over rows of which no two are equal: there is nothing to count.

A PRIMARY KEY tells rows apart, and so do the keys of a GROUP BY. So `SELECT DISTINCT` that shows a whole key, and
`count(DISTINCT x)` of groups in which the key tells values apart, need no counts of their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from halfjoin.planner.facts import Facts
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions.aggregates import adds_up
from halfjoin.sql.relation import Aggregate, Filter, Join, Project, Relation, Scan, Semi, TopK, Window


def without_counts(relation: Aggregate, facts: Facts) -> Aggregate | Project:
    """The aggregate, without each DISTINCT that meets no equal rows."""
    keys = [expr for _, expr in relation.keys]
    if not relation.calls:
        return Project(relation.input, relation.keys) if _told_apart(relation.input, keys, facts) else relation
    calls = tuple(
        (column, replace(call, distinct=False)
         if call.distinct and adds_up(call) and _told_apart(relation.input, (*keys, *call.args), facts) else call)
        for column, call in relation.calls)  # fmt: skip
    return relation if calls == relation.calls else replace(relation, calls=calls)


def identified(relation: Relation, names: Sequence[str], facts: Facts) -> bool:
    """Whether no two rows of a relation are equal in some of its columns (NULL equals NULL)."""
    match relation:
        case Filter(input) | Window(input):
            return identified(input, names, facts)
        case TopK(input, partition, _, limit=1, with_ties=False):
            one = all(isinstance(expr, Column) and expr.name in names for expr in partition)
            return one or identified(input, names, facts)
        case Project(input, items):
            shown = [expr.name for column, expr in items if column.name in names and isinstance(expr, Column)]
            return identified(input, shown, facts)
        case Join(inputs):
            return all(identified(one, [name for name in names if name in {c.name for c in one.columns}], facts)
                       for one in inputs)  # fmt: skip
        case _:
            return _told_apart(relation, [column for column in relation.columns if column.name in names], facts)


def _told_apart(relation: Relation, exprs: Sequence[Expr], facts: Facts) -> bool:
    """Whether no two rows of a relation are equal in these expressions."""
    names = {expr.name for expr in exprs if isinstance(expr, Column)}
    match relation:
        case Scan(collection, alias):
            return any(names >= {f"{alias}.{name}" for name in key} for key in facts.unique_keys(collection))
        case Filter(input) | Semi(input) | Window(input) | TopK(input):
            return _told_apart(input, exprs, facts)
        case Project(input, items):
            return _told_apart(input, [expr for column, expr in items if column.name in names], facts)
        case Aggregate(_, keys):
            return names >= {column.name for column, _ in keys}
        case _:
            return False

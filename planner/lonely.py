"""A LEFT JOIN of which only the rows without a partner are shown is an anti-join.

`a LEFT JOIN b ON b.k = a.k AND b.day > a.day WHERE b.k IS NULL` is how many write NOT EXISTS: where there is a partner,
`b.k` is not NULL. An anti-join asks whether there is a partner, and makes no row for each of them.
"""

from __future__ import annotations

from dataclasses import replace

from halfjoin.planner.nulls import rejects
from halfjoin.sql.expr import Call, Column, Expr, Literal, conjunction, conjuncts
from halfjoin.sql.functions.chance import draws
from halfjoin.sql.relation import Filter, Join, Outer, Project, Relation, Semi, with_inputs


def with_anti_joins(relation: Relation) -> Relation:
    """The same rows, with an anti-join for each outer join that shows only rows without a partner."""
    relation = with_inputs(relation, with_anti_joins)
    if not isinstance(relation, Filter):
        return relation
    input, left = relation.input, list[Expr]()
    for condition in conjuncts(relation.predicate):
        match condition:
            case Call("is null", (Column(name),)) if (made := _lonely(input, name)) is not None:
                input = made
            case _:
                left.append(condition)
    if input is relation.input:
        return relation
    return Filter(input, conjunction(tuple(left))) if left else input


def _lonely(relation: Relation, name: str) -> Relation | None:
    """The rows in which a column is NULL, if these are the rows without a partner in an outer join below; else None."""
    match relation:
        case Outer(left, right, on, full=False):
            column = next((column for column in right.columns if column.name == name), None)
            if column is None:
                below = _lonely(left, name)
                return None if below is None else replace(relation, left=below)
            if draws(on) or (column.nullable and not rejects(on, {name})):
                return None
            theirs = {column.name for column in right.columns}
            return Project(Semi(left, right, on, anti=True), tuple(
                (column, Literal(None, column.type) if column.name in theirs else column)
                for column in relation.columns))  # fmt: skip
        case Filter(input):
            below = _lonely(input, name)
            return None if below is None else replace(relation, input=below)
        case Join(inputs):
            made = [_lonely(one, name) if any(column.name == name for column in one.columns) else None
                    for one in inputs]  # fmt: skip
            if not any(made):
                return None
            return Join(tuple(one if found is None else found for one, found in zip(inputs, made, strict=True)))
        case Project(input, items):
            expr = next(expr for column, expr in items if column.name == name)
            below = _lonely(input, expr.name) if isinstance(expr, Column) else None
            return None if below is None else replace(relation, input=below)
        case _:
            return None

"""Inside a loop, DISTINCT, min and max are the first row of each group.

As aggregates they would keep a count with each group. In a loop the count of a group differs from round to round, even
where the answer does not, and each such difference is a row to keep, and one to change when the group is touched. The
first row differs only where the answer does.
"""

from __future__ import annotations

from dataclasses import replace

from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions.aggregates import filtered
from halfjoin.sql.relation import Aggregate, Fed, Loop, Project, Relation, SortKey, TopK, every_part, with_inputs

_FIRST = ("min", "max", "any_value")


def firsts(relation: Relation, aliases: Aliases) -> Relation:
    """The relation with first rows in place of such aggregates, where they may read a binding."""
    relation = with_inputs(relation, lambda below: firsts(below, aliases))
    if not isinstance(relation, Aggregate) or not any(isinstance(p, (Fed, Loop)) for p in every_part(relation.input)):
        return relation
    found = _first(relation)
    if found is None:
        return relation
    values, order = found
    alias = f"={aliases.fresh('first')}"  # no user can write this name
    made = tuple(Column(f"{alias}.column{number}", value.type) for number, value in enumerate(values, 1))
    keys = made[: len(relation.keys)]
    sorting = tuple(replace(order, expr=column) for column in made[len(keys):]) if order is not None else ()
    first = TopK(Project(relation.input, tuple(zip(made, values, strict=True))), keys, sorting, 1)
    return Project(first, tuple(zip(relation.columns, made, strict=True)))


def _first(relation: Aggregate) -> tuple[list[Expr], SortKey | None] | None:
    """The columns of an aggregate's result, over its input, and the order in which its rows are the first; None if it
    is something else. Without keys there is a group even of no rows, which has no first one."""
    keys = [expr for _, expr in relation.keys]
    if not keys:
        return None
    if not relation.calls:
        return keys, None
    (_, call), *more = relation.calls
    if more or call.function not in _FIRST or call.order:
        return None
    (value,) = filtered(call)
    if value.type != call.type:
        return None
    return [*keys, value], SortKey(value, descending=call.function == "max")

"""MERGE as a relation: each row of the source beside the row of the table that it matches, and what to do with it."""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.bind.apart import at_rest
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.fleeting import fleeting_in
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import Scope
from halfjoin.sql.bind.subqueries import with_values
from halfjoin.sql.bind.target import (
    BoundChange,
    Returning,
    Target,
    assigned,
    carried,
    context_of,
    default,
    given,
    items_of,
    named,
    numbering,
    outputs,
    refuse_now,
    target_of,
)
from halfjoin.sql.expr import TRUE, Column, Expr, Literal
from halfjoin.sql.functions.clock import at_one_moment
from halfjoin.sql.relation import Outer, Project, Relation
from halfjoin.sql.statements import Merge, When
from halfjoin.sql.types import BOOLEAN, INTEGER

if TYPE_CHECKING:
    from halfjoin.sql.schema import Schema


@at_one_moment
def bind_merge(statement: Merge, schema: Schema, sql: str) -> BoundChange:
    """Source rows with the old and new versions of the table's rows, and the number of the clause that applies."""
    context = context_of(statement, schema, sql)
    target = target_of(statement, context)
    refuse_now([statement.source, statement.on], context)
    source, items = items_of(statement.source, (), context)
    there = Column(f"{context.aliases.fresh('there')}.there", BOOLEAN)
    marked = Project(target.rows, (*((c, c) for c in target.rows.columns), (there, TRUE)))
    with context.at(statement.source):
        scope = Scope.of(target.item).beside(items)
    scalars = Scalars(context, (scope,))
    marked_rows, scalars = with_values(marked, scalars, [statement.on])
    by_source = any(when.by_source for when in statement.whens)
    here = Column(f"{context.aliases.fresh('here')}.here", BOOLEAN)
    placed = Project(source, (*((c, c) for c in source.columns), (here, TRUE))) if by_source else source
    joined = Outer(placed, marked_rows, scalars.condition(statement.on), by_source)

    written = [_values(when, target, context) for when in statement.whens]
    numbered = [{name: sequence for name, node in values.items() if (sequence := numbering(node)) is not None}
                for values in written]  # fmt: skip
    clauses = [{name: exp.Null() if name in numbers else node for name, node in values.items()}
               for values, numbers in zip(written, numbered, strict=True)]  # fmt: skip
    rows: Relation = joined
    found = dict[int, Expr]()
    for seen, whens in (  # a row that is missing has no columns: a name means one of the row that is there
        (scope, [when.matched for when in statement.whens]),
        (items, [not when.matched and not when.by_source for when in statement.whens]),
        (Scope.of(target.item), [when.by_source for when in statement.whens]),
    ):
        nodes = [node for when, values in compress(zip(statement.whens, clauses, strict=True), whens)
                 for node in (*([] if when.condition is None else [when.condition]), *values.values())]  # fmt: skip
        if nodes:
            selected = outputs(nodes, None, rows, seen, context, "MERGE")
            rows = selected.input
            found |= {id(node): value for node, value in zip(nodes, selected.values, strict=True)}

    missing = functions.resolve("is null", (there,))
    present = functions.resolve("is not null", (there,))
    alone = functions.resolve("is null", (here,))
    if by_source:
        present = functions.resolve("and", (present, functions.resolve("is not null", (here,))))
    action: list[Expr] = []
    for number, when in enumerate(statement.whens, 1):
        applies = present if when.matched else alone if when.by_source else missing
        if when.condition is not None:
            with context.at(when.condition):
                condition = functions.cast(found[id(when.condition)], BOOLEAN)
            applies = functions.resolve("and", (applies, condition))
        action += [applies, Literal(number, INTEGER)]
    chosen = functions.resolve("case", (*action, Literal(0, INTEGER)))
    aliases = context.aliases
    old, new = named(target.columns, aliases.fresh("old")), named(target.columns, aliases.fresh("new"))
    acts = Column(f"{aliases.fresh('action')}.action", INTEGER)
    changed = []
    for column, place in zip(target.columns, target.rows.columns, strict=True):
        cases: list[Expr] = []
        for number, values in enumerate(clauses, 1):
            if column.name in values:
                node = values[column.name]
                with context.at(node):
                    value = assigned(found[id(node)], column.type, context)
                cases += [functions.resolve("=", (chosen, Literal(number, INTEGER))), value]
        changed.append(functions.resolve("case", (*cases, place)) if cases else place)
    names = {column.name for column in source.columns} if statement.returning else set()
    kept = tuple(column for column in rows.columns if column.name in names)
    made = (*zip(old, target.rows.columns, strict=True), *zip(new, changed, strict=True), (acts, chosen),
            *carried(kept))  # fmt: skip
    returning = Returning(statement.returning, target, context, items, first=True) if statement.returning else None
    return BoundChange(target, at_rest(Project(rows, made), context), old, new, kept, action=acts,
                       kinds=tuple(when.kind for when in statement.whens),
                       clauses=tuple(tuple(numbers.items()) for numbers in numbered), returning=returning,
                       fleeting=fleeting_in(context))  # fmt: skip


def _values(when: When, target: Target, context: Context) -> dict[str, exp.Expr]:
    """The new values of a clause by column: of INSERT for every column, of UPDATE for those that it names."""
    if when.kind == "update":
        if len({name for name, _ in when.assignments}) < len(when.assignments):
            raise context.wrong(when.assignments[0][1], "a column is assigned twice")
        return {name: given(target, name, node, context) for name, node in when.assignments}
    if when.kind != "insert":
        return {}
    every = {column.name: default(target, column.name, context) for column in target.columns}
    if when.values is None:
        return every
    names = when.columns or tuple(every)
    if len(names) < len(when.values) or (when.columns and len(names) > len(when.values)):
        raise context.wrong(when.values[0], f"INSERT has {len(when.values)} values for {len(names)} columns")
    values = dict(zip(names, when.values, strict=False))
    if len(values) < len(when.values):
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise context.wrong(when.values[0], f"column {twice} is named twice").with_(code="42701")
    return {**every, **{name: given(target, name, node, context, when.overriding) for name, node in values.items()}}

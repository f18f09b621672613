"""ON CONFLICT: the keys that it asks about, and what DO UPDATE makes of the rows whose key is there."""

from __future__ import annotations

from sqlglot import exp

from halfjoin.sql.bind.apart import at_rest
from halfjoin.sql.bind.fleeting import fleeting_in
from halfjoin.sql.bind.scope import FromItem, Scope
from halfjoin.sql.bind.target import BoundChange, assigned, carried, context_of, given, named, outputs, target_of
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions.clock import at_one_moment
from halfjoin.sql.relation import Project, Scan
from halfjoin.sql.schema import Schema
from halfjoin.sql.statements import Insert
from halfjoin.sql.types import BIGINT


def conflict_keys(statement: Insert, schema: Schema, sql: str) -> list[tuple[str, ...]]:
    """The keys of the table that ON CONFLICT names: all of them if it names none."""
    conflict, context, keys = statement.conflict, context_of(statement, schema, sql), schema.keys(statement.table)
    assert conflict is not None
    target = target_of(statement, context)
    if conflict.constraint is not None:
        if conflict.constraint not in keys:
            raise context.wrong(None, f"constraint {conflict.constraint} of table {statement.table} does not exist")
        return [keys[conflict.constraint]]
    if conflict.columns is None:
        return list(keys.values())
    for name in conflict.columns:
        given(target, name, exp.var("DEFAULT"), context)
    if conflict.predicate is not None:  # it must have names that there are
        outputs([], conflict.predicate, target.rows, Scope.of(target.item), context, "ON CONFLICT")
    found = [key for key in keys.values() if set(key) == set(conflict.columns)]
    if not found:
        raise context.wrong(None, "there is no unique constraint matching the ON CONFLICT specification",
                            f"keys: {', '.join('(' + ', '.join(key) + ')' for key in keys.values()) or 'none'}")
    return found[:1]


@at_one_moment
def bind_do_update(statement: Insert, schema: Schema, sql: str, collection: str) -> BoundChange:
    """What DO UPDATE makes of the rows of a collection: those of the table in its first columns, then those that were
    to be inserted, then their numbers, the only column of `others`. All columns are named by their positions."""
    conflict, context = statement.conflict, context_of(statement, schema, sql)
    assert conflict is not None and conflict.assignments is not None
    target = target_of(statement, context)
    alias = context.aliases.fresh("conflict")
    types = [column.type for column in target.columns]
    columns = tuple(Column(f"{alias}.{n}", type) for n, type in enumerate([*types, *types, BIGINT]))
    there, excluded, number = columns[:len(types)], columns[len(types):-1], columns[-1]
    item = target.placed(excluded)
    scope = Scope.of(target.placed(there)).beside(Scope.of(FromItem("excluded", item.columns)))
    nodes = [given(target, name, node, context) for name, node in conflict.assignments]
    selected = outputs(nodes, conflict.where, Scan(collection, alias, columns), scope, context, "ON CONFLICT")
    values: dict[str, Expr] = {}
    for (name, node), value in zip(conflict.assignments, selected.values, strict=True):
        with context.at(node):
            if name in values:
                raise context.wrong(node, f"column {name} is assigned twice")
            values[name] = assigned(value, next(c.type for c in target.columns if c.name == name), context)
    aliases = context.aliases
    old, new = named(target.columns, aliases.fresh("old")), named(target.columns, aliases.fresh("new"))
    changed = [values.get(column.name, place) for column, place in zip(target.columns, there, strict=True)]
    items = (*zip(old, there, strict=True), *zip(new, changed, strict=True), *carried([number]))
    return BoundChange(target, at_rest(Project(selected.input, items), context), old, new, (number,),
                       fleeting=fleeting_in(context))  # fmt: skip

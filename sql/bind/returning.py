"""RETURNING: expressions over the rows that a statement has changed."""

from __future__ import annotations

from dataclasses import dataclass

from halfjoin.sql.bind.scope import Scope
from halfjoin.sql.bind.selected import column_for, known
from halfjoin.sql.bind.target import BoundChange, outputs
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import Project, Relation, Scan
from halfjoin.sql.types import BIGINT


@dataclass(frozen=True)
class BoundReturning:
    """The rows of RETURNING. The relation's last column is the row's number, the others have `names`."""

    relation: Relation
    names: tuple[str, ...]


def bind_returning(change: BoundChange, collection: str) -> BoundReturning:
    """RETURNING over a collection with the changed rows: the columns of the table, those of `change.others`, and the
    row's number, all named by their positions."""
    returning = change.returning
    assert returning is not None
    context, target = returning.context, returning.target
    alias = context.aliases.fresh("returned")
    types = [column.type for column in (*target.columns, *change.others)]
    columns = tuple(Column(f"{alias}.{n}", type) for n, type in enumerate([*types, BIGINT]))
    width = len(target.columns)
    others = {column.name: place for column, place in zip(change.others, columns[width:-1], strict=True)}
    scope = Scope.of(target.placed(columns[:width])).beside(returning.others.mapped(others))
    selected = outputs(returning.nodes, None, Scan(collection, alias, columns), scope, context, "RETURNING")
    values = [known(value) for value in selected.values]
    alias = context.aliases.fresh("output")
    items = tuple((column_for(f"{alias}.{n}", value), value) for n, value in enumerate(values))
    return BoundReturning(Project(selected.input, (*items, (columns[-1], columns[-1]))), tuple(selected.names))

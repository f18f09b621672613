"""RETURNING: expressions over the rows that a statement has changed."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from halfjoin.sql.bind.apart import at_rest
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
    own, more = Scope.of(target.placed(columns[:width])), returning.others.mapped(others)
    scope = more.beside(own) if returning.first else own.beside(more)
    nodes = [_acted(node, returning.action) for node in returning.nodes] if returning.first else returning.nodes
    selected = outputs(nodes, None, Scan(collection, alias, columns), scope, context, "RETURNING")
    values = [known(value) for value in selected.values]
    alias = context.aliases.fresh("output")
    items = tuple((column_for(f"{alias}.{n}", value), value) for n, value in enumerate(values))
    made = Project(selected.input, (*items, (columns[-1], columns[-1])))
    return BoundReturning(at_rest(made, context), tuple(selected.names))


def _acted(node: exp.Expr, action: str) -> exp.Expr:
    """The expression with the action in the place of merge_action()."""

    def value(one: exp.Expr) -> exp.Expr:
        if isinstance(one, exp.Anonymous) and one.name.lower() == "merge_action" and not one.expressions:
            return exp.cast(exp.Literal.string(action), "text")
        return one

    made = node.copy().transform(value)
    called = isinstance(node, exp.Anonymous) and made is not node and isinstance(made, exp.Cast)
    return exp.alias_(made, "merge_action") if called else made

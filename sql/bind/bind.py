"""The binder's entry points: from a parsed statement to bound relations and expressions over a schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.sql.bind.apart import at_rest
from halfjoin.sql.bind.constraints import check_alone
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.first_rows import first_rows
from halfjoin.sql.bind.output_names import UNNAMED, output_name
from halfjoin.sql.bind.reg_types import shown
from halfjoin.sql.bind.row_parts import over_columns
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import FromItem, Scope
from halfjoin.sql.bind.select import project, select
from halfjoin.sql.bind.sequences import CALLS
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions import length_of
from halfjoin.sql.functions.clock import at_one_moment, moment
from halfjoin.sql.functions.record_values import is_record
from halfjoin.sql.parse.locate import refuse
from halfjoin.sql.relation import Relation
from halfjoin.sql.system import plain
from halfjoin.sql.types import Kind, has_rows

if TYPE_CHECKING:
    from halfjoin.sql.schema import Schema

RESERVED = ("__time", "__diff")


def bind(query: exp.Query, schema: Schema, sql: str, notices: list[str] | None = None) -> Relation:
    """The relation of a view's query; its columns have the bare output names. `sql` is the text of the query.

    `notices` gets what the author of the query should know, such as that a view has no order. UnsupportedSQL and
    UnknownName name the place in `sql`.
    """
    return _bound(query, Context(schema, sql, notices=[] if notices is None else notices), "a view")


@at_one_moment
def bind_columns(query: exp.Query, schema: Schema, sql: str) -> tuple[Column, ...]:
    """The columns of a table that holds the rows of a query, which may ask what a view must not: the clock, chance, a
    sequence, PostgreSQL's catalog. No number of a sequence is given out."""
    query = query.copy()
    for item in query.selects:
        if isinstance(item, exp.Anonymous) and item.name.lower() in CALLS:
            item.replace(exp.alias_(item.copy(), output_name(item), quoted=True))
    for call in list(query.find_all(exp.Anonymous)):
        if call.name.lower() in CALLS:
            call.replace(exp.cast(exp.Literal.number(0), "bigint"))
    system = schema.system()
    context = Context(schema, sql, now=moment(), ordered=True, system=system)
    made = _bound(query, context, "a table")
    types = (column.type if system is None else shown(column, system).type for column in made.columns)
    return tuple(Column(column.name, plain(type)) for column, type in zip(made.columns, types, strict=True))


def _bound(query: exp.Query, context: Context, what: str) -> Relation:
    selected = select(query, context)
    for name, value in selected.items:
        if is_record(value) and not value.type.fields:
            raise context.refuse(query, f"the column {name} of {what} would hold rows without columns", "leave it out")
    made: Relation = project(selected, lambda name: name)
    bound = first_rows(at_rest(made, context))
    names = [column.name for column in bound.columns]
    if not names:
        raise context.refuse(query, f"{what} needs at least one column", "select a constant: SELECT 1 AS one FROM t")
    for column in bound.columns:
        if names.count(column.name) > 1:
            shown = "an unnamed column" if column.name == UNNAMED else f"column {column.name}"
            raise context.refuse(_second(query, column.name), f"{shown} appears twice in the output",
                                 "give each an alias: expression AS name").with_(code="42701")
        if column.name.lower() in RESERVED:
            raise context.refuse(query, f"{column.name} is the name of an update's own column", "give it another alias")
    return bound


def _second(query: exp.Query, name: str) -> exp.Expr:
    """The second expression of that name in the SELECT list, or the query if `*` supplies the column."""
    named = [node for node in query.selects if not node.is_star and output_name(node) == name]
    return named[1] if len(named) > 1 else query


def bind_scalar(node: exp.Expr, columns: Sequence[Column], schema: Schema, sql: str,
                table: str = "") -> Expr:
    """Bind an expression over columns, such as a WHERE; `table` may qualify the columns' names."""
    source = FromItem(table.rpartition(".")[2], tuple((column.name, column) for column in columns))
    context = Context(schema, sql)
    bound = Scalars(context, (Scope.of(source),)).value(node)
    return over_columns(bound, columns) if context.records or any(map(is_record, columns)) else bound


def bind_keys(nodes: Sequence[exp.Expr], columns: Sequence[Column], schema: Schema, sql: str, table: str) -> list[Expr]:
    """Bind the keys of an index over the columns of `table`. The key of an interval is its length."""
    for node in nodes:
        check_alone(node, sql, "an index")
    keys = [bind_scalar(node, columns, schema, sql, table) for node in nodes]
    for node, key in zip(nodes, keys, strict=True):
        if has_rows(key.type):
            raise refuse(node, sql, "an index of rows is not supported",
                         "name their fields: CREATE INDEX ON t (((r).a))")
    return [length_of(key) if key.type.kind is Kind.INTERVAL else key for key in keys]

"""INSERT, DELETE and UPDATE as relations: the rows to add and the rows to remove, under the table's column names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.errors import UnknownName
from halfjoin.sql import functions
from halfjoin.sql.bind.context import Context, moment
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import FromItem, Scope
from halfjoin.sql.bind.select import project, select
from halfjoin.sql.bind.temporal import is_now
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.relation import Filter, Project, Relation, Scan, Values
from halfjoin.sql.statements import Delete, Insert, Update

if TYPE_CHECKING:
    from halfjoin.sql.schema import Schema


def bind_insert(statement: Insert, schema: Schema, sql: str) -> Relation:
    """The new rows: all columns of the table, in order and with exactly its types; missing columns are NULL."""
    context = Context(schema, sql, now=moment(), in_change=True)
    columns = _columns(statement.table, context)
    targets = _targets(statement, columns, context)
    some = not statement.columns  # without a column list, the values may fill the first columns only
    rows = (_typed_values(statement.query, targets, some, context)
            or _typed_query(statement.query, targets, some, context))
    given = {column.name: source for column, source in zip(targets, rows.columns, strict=False)}
    items = tuple((column, given.get(column.name, Literal(None, column.type))) for column in columns)
    return Project(rows, items)


def bind_delete(statement: Delete, schema: Schema, sql: str) -> Relation:
    """The rows to delete."""
    context = Context(schema, sql, now=moment(), in_change=True)
    rows, _, columns = _old_rows(statement, context)
    return Project(rows, tuple(zip(_columns(statement.table, context), columns, strict=True)))


def bind_update(statement: Update, schema: Schema, sql: str) -> tuple[Relation, Relation]:
    """The old and the new versions of the rows to update."""
    context = Context(schema, sql, now=moment(), in_change=True)
    rows, scope, old = _old_rows(statement, context)
    columns = _columns(statement.table, context)
    by_name = {column.name: column for column in columns}
    new: dict[str, Expr] = {column.name: value for column, value in zip(columns, old, strict=True)}
    for name, node in statement.assignments:
        if name not in by_name:
            with context.at(node):
                raise UnknownName("column", name, by_name)
        if sum(name == other for other, _ in statement.assignments) > 1:
            raise context.refuse(node, f"column {name} is assigned twice")
        _refuse_now(node, context)
        with context.at(node):
            new[name] = functions.cast(Scalars(context, (scope,)).value(node), by_name[name].type)
    return (Project(rows, tuple(zip(columns, old, strict=True))),
            Project(rows, tuple((column, new[column.name]) for column in columns)))


def _old_rows(statement: Delete | Update, context: Context) -> tuple[Relation, Scope, tuple[Column, ...]]:
    """The rows that satisfy WHERE, the scope of the statement's names, and the rows' columns."""
    alias = statement.alias
    columns = _columns(statement.table, context)
    qualified = tuple(Column(f"{alias}.{column.name}", column.type, column.nullable) for column in columns)
    named = tuple((column.name, inner) for column, inner in zip(columns, qualified, strict=True))
    rows: Relation = Scan(statement.table, alias, qualified)
    scope = Scope.of(FromItem(alias, named))
    if statement.where is not None:
        _refuse_now(statement.where, context)
        rows = Filter(rows, Scalars(context, (scope,)).condition(statement.where))
    return rows, scope, qualified


def _columns(table: str, context: Context) -> tuple[Column, ...]:
    columns = context.schema.columns(table)
    if columns is None:
        raise UnknownName("table", table, context.schema.names())
    return columns


def _targets(statement: Insert, columns: tuple[Column, ...], context: Context) -> tuple[Column, ...]:
    """The columns that INSERT names, or all columns if it names none."""
    by_name = {column.name: column for column in columns}
    for name in statement.columns:
        if name not in by_name:
            raise UnknownName(f"column of {statement.table}", name, by_name)
        if statement.columns.count(name) > 1:
            raise context.refuse(statement.query, f"column {name} is named twice")
    return tuple(by_name[name] for name in statement.columns) or columns


def _typed_values(query: exp.Expr, targets: tuple[Column, ...], some: bool, context: Context) -> Values | None:
    """VALUES, each value cast to its column's type, so that it decides a literal's type; None for a query."""
    if not isinstance(query, exp.Values) or query.args.get("alias") or query.args.get("with_"):
        return None
    scalars = Scalars(context, ())
    rows: list[tuple[Expr, ...]] = []
    width = 0
    for row in query.expressions:
        nodes = row.expressions if isinstance(row, exp.Tuple) else [row]
        _check_width(len(nodes), len(targets), some, row, context)
        if rows and len(nodes) != width:
            raise context.refuse(row, f"a row of VALUES has {len(nodes)} values, the first one {width}")
        width, targets = len(nodes), targets[:len(nodes)]
        values = []
        for node, target in zip(nodes, targets, strict=True):
            with context.at(node):
                values.append(functions.cast(scalars.value(node), target.type))
        rows.append(tuple(values))
    return Values("values", tuple(Column(f"values.{column.name}", column.type) for column in targets), tuple(rows))


def _typed_query(query: exp.Expr, targets: tuple[Column, ...], some: bool, context: Context) -> Relation:
    _refuse_now(query, context)
    selected = select(query, context)
    _check_width(len(selected.items), len(targets), some, query, context)
    targets = targets[:len(selected.items)]
    names = [f"query.{column.name}" for column in targets]
    with context.at(query):
        return project(selected.renamed(names), lambda name: name, [column.type for column in targets])


def _check_width(given: int, wanted: int, some: bool, node: exp.Expr, context: Context) -> None:
    if given > wanted or (given < wanted and not some):
        values, columns = (f"{n} {word}{'s' if n != 1 else ''}" for n, word in ((given, "value"), (wanted, "column")))
        raise context.refuse(node, f"INSERT has {values} for {columns}",
                             "name as many columns: INSERT INTO t (a, b) VALUES ...")


def _refuse_now(node: exp.Expr, context: Context) -> None:
    if any(map(is_now, node.find_all(exp.Anonymous))):
        raise context.refuse(node, "mz_now() is not supported in INSERT, UPDATE and DELETE",
                             "write the time itself")

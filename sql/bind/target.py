"""The table that INSERT, UPDATE, DELETE and MERGE change, the values that they give its columns, and what they bind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.errors import UnknownName
from halfjoin.sql import functions
from halfjoin.sql.bind import select as bind_select  # before from_clause: the two call each other
from halfjoin.sql.bind.aggregates import aggregates_in
from halfjoin.sql.bind.constraints import parse_default
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.fleeting import noting
from halfjoin.sql.bind.from_clause import From
from halfjoin.sql.bind.outer_aggregates import outer_aggregates
from halfjoin.sql.bind.reg_types import shown
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import FromItem, Scope
from halfjoin.sql.bind.selected import Selected
from halfjoin.sql.bind.sequences import NEXT, argument, quoted
from halfjoin.sql.bind.temporal import is_now
from halfjoin.sql.bind.windows import windows_in
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions.clock import moment
from halfjoin.sql.functions.table_functions import returns_rows
from halfjoin.sql.parse.change import is_default
from halfjoin.sql.parse.locate import PUBLIC, place
from halfjoin.sql.parse.syntax import FieldChange
from halfjoin.sql.relation import Relation, Scan, SortKey
from halfjoin.sql.statements import Change
from halfjoin.sql.types import STRINGS, SqlType

if TYPE_CHECKING:
    from halfjoin.sql.schema import Schema


@dataclass(frozen=True)
class Target:
    """The table to change: its columns with bare names, and all of its rows under an alias."""

    table: str
    columns: tuple[Column, ...]
    rows: Scan
    item: FromItem

    def placed(self, columns: Sequence[Column]) -> FromItem:
        """The table's names for other columns."""
        named = tuple(zip((column.name for column in self.columns), columns, strict=True))
        return FromItem(self.item.name, named, schema=self.item.schema)


@dataclass(frozen=True)
class Returning:
    """The expressions of RETURNING. `others`: the scope of the rows' other columns, those of FROM or USING.
    `first`: they come first in `*`. `action`: the value of merge_action()."""

    nodes: tuple[exp.Expr, ...]
    target: Target
    context: Context
    others: Scope
    first: bool = False
    action: str = ""


@dataclass(frozen=True)
class BoundChange:
    """A statement as a relation of the rows that it changes.

    `old` and `new` are the relation's columns with a row before and after: INSERT has no `old`, DELETE no `new`.
    `others`: columns for RETURNING. `joined`: a row of the table may come more than once, with different `new` or
    `others`. `order`: of the rows of an INSERT, over the relation's columns. `action`: in MERGE, what to do with the
    row: the number of the clause, from 1, in the order of `kinds`; or 0. `numbered`: columns that get the next
    numbers of sequences, row by row; `computed`: columns with a DEFAULT around such numbers, its value over the columns
    `number 0`, `number 1`, ..., and their sequences; `clauses`: `numbered` of each clause of MERGE. `fleeting`: as
    `BoundQuery.fleeting`.
    """

    target: Target
    relation: Relation
    old: tuple[Column, ...] = ()
    new: tuple[Column, ...] = ()
    others: tuple[Column, ...] = ()
    joined: bool = False
    order: tuple[SortKey, ...] = ()
    action: Column | None = None
    kinds: tuple[str, ...] = ()
    numbered: tuple[tuple[str, str], ...] = ()
    computed: tuple[tuple[str, Expr, tuple[str, ...]], ...] = ()
    clauses: tuple[tuple[tuple[str, str], ...], ...] = ()
    returning: Returning | None = None
    fleeting: tuple[str, ...] = ()


def context_of(statement: Change, schema: Schema, sql: str) -> Context:
    """The context of a statement, with the queries of its WITH clause. now() is the moment of this call."""
    fleeting = list[str]()
    context = Context(schema, sql, now=moment(), system=noting(schema, fleeting), fleeting=fleeting)
    if statement.common is None:
        return context
    return bind_select.with_queries(exp.Select(with_=statement.common), context, ())


@contextmanager
def at_target(statement: Change, sql: str) -> Iterator[None]:
    """An unknown name inside the `with` block gets the place where the statement names its table."""
    try:
        yield
    except UnknownName as error:
        raise error.at(sql, *place(statement.target, sql)) from None


def target_of(statement: Change, context: Context) -> Target:
    """The table that a statement changes."""
    table = statement.table
    columns = context.schema.columns(table)
    if columns is None:
        with at_target(statement, context.sql):
            raise UnknownName("table", table, context.schema.names())
    alias = context.aliases.fresh(statement.alias)
    qualified = tuple(Column(f"{alias}.{column.name}", column.type, column.nullable) for column in columns)
    context.note_rows(qualified)
    named = tuple((column.name, inner) for column, inner in zip(columns, qualified, strict=True))
    schema, _, name = table.rpartition(".")
    item = FromItem(statement.alias, named, schema=(schema or PUBLIC) if statement.alias == name else "")
    return Target(table, columns, Scan(table, alias, qualified), item)


def items_of(first: exp.Expr, joins: Sequence[exp.Join], context: Context) -> tuple[Relation, Scope]:
    """The rows of FROM, USING or MERGE's source, and their scope."""
    refuse_now([first, *joins], context)
    return From(context, ()).items(first, list(joins), None, Scope())


def given(target: Target, name: str, node: exp.Expr, context: Context, overriding: str = "") -> exp.Expr:
    """The value that a statement gives to a column, with the column's default for DEFAULT. `overriding`: `system` lets
    it give any value, `user` none, to a column with an identity."""
    if target.table not in context.schema.names() or name not in {column.name for column in target.columns}:
        with context.at(_written(node)):
            raise UnknownName(f"column of {target.table}", name, [column.name for column in target.columns])
    if name in context.schema.generated(target.table):
        if not is_default(node):
            raise context.wrong(node, f"column {name} is GENERATED from other columns", "write DEFAULT, or nothing")
        return exp.Null()
    _, always = context.schema.sequence(target.table, name)
    if overriding == "user" and overridden(target, name, context):
        return default(target, name, context)
    if always and not is_default(node) and overriding != "system":
        error = context.refuse(node, f"column {name} is GENERATED ALWAYS AS IDENTITY",
                               "write DEFAULT, or OVERRIDING SYSTEM VALUE in INSERT")
        raise error.with_(code="428C9")
    if isinstance(node, FieldChange):
        node.this.set("table", exp.to_identifier(target.item.name, quoted=True))
        node.this.set("db", exp.to_identifier(target.item.schema, quoted=True) if target.item.schema else None)
    return default(target, name, context) if is_default(node) else node


def overridden(target: Target, name: str, context: Context) -> bool:
    """Whether OVERRIDING USER VALUE is about a column: it has an identity. A serial is a default."""
    sequence, _ = context.schema.sequence(target.table, name)
    return bool(sequence) and not context.schema.serial(target.table, name)


def _written(value: exp.Expr) -> exp.Expr:
    """Where the column that gets a value is written: in SET, before its `=`."""
    around = value.parent
    return around.this if isinstance(around, exp.EQ) and around.expression is value else value


def number_of(target: Target, name: str, context: Context) -> str | None:
    """The sequence that numbers the rows of INSERT in a column that it does not name."""
    return numbering(default(target, name, context))


def numbering(node: exp.Expr) -> str | None:
    """The sequence whose next number a value is; None if it is another one."""
    return argument(node) if isinstance(node, exp.Anonymous) and node.name.lower() == NEXT else None


def assigned(value: Expr, type: SqlType, context: Context) -> Expr:
    """A value as a column takes it. A text of a regclass is its name, and of no other number of the catalog."""
    if type.kind in STRINGS and context.system is not None:
        value = shown(value, context.system)
    return functions.cast(value, type)


def default(target: Target, name: str, context: Context) -> exp.Expr:
    """The default of a column: NULL if it has none."""
    sequence, _ = context.schema.sequence(target.table, name)
    if sequence:
        return exp.Anonymous(this=NEXT, expressions=[exp.Literal.string(quoted(sequence))])
    text = context.schema.default(target.table, name)
    if text is None:
        return exp.Null()
    return parse_default(text)


def outputs(nodes: Sequence[exp.Expr], where: exp.Expr | None, relation: Relation, scope: Scope, context: Context,
            word: str) -> Selected:
    """Expressions over the rows for which a condition holds. `word`: the statement or clause, for errors.

    They may hold subqueries, but no aggregates, windows, or functions that return rows.
    """
    scalars = Scalars(context, (scope,))
    every = [*nodes, *([] if where is None else [where])]
    refuse_now(every, context)
    if found := [*aggregates_in(every, scalars), *outer_aggregates(every, scalars)]:
        raise context.wrong(found[0], f"aggregate functions are not allowed in {word}")
    if windows_in(every, {}):
        raise context.wrong(every[0], f"window functions are not allowed in {word}")
    for node in every:
        for call in node.find_all(exp.Anonymous):
            if call.find_ancestor(exp.Query) is None and returns_rows(call.name.lower(), context.schema):
                raise context.wrong(call, f"set-returning functions are not allowed in {word}")
    query = exp.Select(expressions=list(nodes), where=where and exp.Where(this=where))
    return bind_select.over(query, context, relation, scope)


def refuse_now(nodes: Iterable[exp.Expr], context: Context) -> None:
    """Refuse mz_now(), which stands for every time at which a view is read."""
    for node in nodes:
        if any(map(is_now, node.find_all(exp.Anonymous))):
            raise context.refuse(node, "mz_now() is not supported in INSERT, UPDATE, DELETE and MERGE",
                                 "write the time itself")


def carried(columns: Iterable[Column]) -> tuple[tuple[Column, Column], ...]:
    """Columns that a projection keeps."""
    return tuple((column, column) for column in columns)


def named(names: Sequence[Column], alias: str) -> tuple[Column, ...]:
    """Columns of a row of the table, under an alias. They may be NULL until the row is checked."""
    return tuple(replace(column, name=f"{alias}.{column.name}", nullable=True) for column in names)

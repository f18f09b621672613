"""Binds the expressions of a table's definition: CHECK, DEFAULT and GENERATED."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind import select as bind_select  # before scalar: the modules call each other
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.row_parts import over_columns
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import FromItem, Scope
from halfjoin.sql.bind.sequences import NEXT, argument
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions.clock import moment
from halfjoin.sql.functions.refused import REFUSED
from halfjoin.sql.parse.keywords import mark_askers
from halfjoin.sql.parse.locate import name_of, refuse
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.types import BOOLEAN, UNKNOWN, Kind, SqlType

if TYPE_CHECKING:
    from halfjoin.sql.schema import Schema
    from halfjoin.sql.system import System

__all__ = ["bind_check", "bind_default", "bind_generated", "bind_select"]


def bind_check(text: str, columns: Sequence[Column], schema: Schema, table: str) -> Expr:
    """The condition of a CHECK over the bare names of a table's columns."""
    value = _value(text, columns, schema, table, "a CHECK condition")
    if value.type not in (BOOLEAN, UNKNOWN):
        raise UnsupportedSQL(f"argument of CHECK must be type boolean, not type {value.type}", code="42804")
    return over_columns(functions.cast(value, BOOLEAN), columns)


def bind_generated(text: str, columns: Sequence[Column], type: SqlType, schema: Schema, table: str) -> Expr:
    """The value of a generated column over the bare names of the columns that are not generated."""
    return over_columns(functions.cast(_value(text, columns, schema, table, "a generated column"), type), columns)


def bind_using(text: str, columns: Sequence[Column], type: SqlType, schema: Schema, table: str) -> Expr:
    """What USING of ALTER COLUMN makes of a row, over the bare names of the table's columns."""
    value = _value(text, columns, schema, table, "USING")
    with casting("result of USING clause", type, f"write USING ({text})::{type}"):
        return over_columns(functions.cast(value, type), columns)


@contextmanager
def casting(what: str, type: SqlType, remedy: str) -> Iterator[None]:
    """Say in ALTER COLUMN what it is that has no cast. A constant that is no value of the type keeps its own error,
    since it is one in an explicit cast, too."""
    try:
        yield
    except UnsupportedSQL as problem:
        if problem.sqlstate not in ("42804", "42846"):
            raise
        raise UnsupportedSQL(f"{what} cannot be cast automatically to type {type}", code="42804",
                             remedy=remedy) from problem


def bind_default(text: str, type: SqlType, schema: Schema, system: System | None = None) -> Expr:
    """The value of a DEFAULT, which reads no columns. now() is the moment of this call. `system`: tells current_user;
    None where nobody asks."""
    context = Context(schema, text, now=moment(), system=system)
    node = parse_default(text, of_time=type.kind is Kind.TIME)
    check_alone(node, text, "DEFAULT", fixed=False)
    return over_columns(functions.cast(Scalars(context, (Scope(),)).value(node), type), ())


def parse_default(text: str, *, of_time: bool = True) -> exp.Expr:
    """The expression of a DEFAULT. `of_time`: its column is a time without time zone, which takes current_time."""
    (node,) = parse_query(f"SELECT {text}").selects
    mark_askers(node)
    return exp.cast(node, "time") if of_time and isinstance(node, exp.CurrentTime) else node


def relabelled(text: str, old: str, label: str) -> str:
    """A DEFAULT that is the label `old` of an enum, with another label; any other DEFAULT as it is."""
    (node,) = parse_query(f"SELECT {text}").selects
    written = node.this if isinstance(node, exp.Cast) else node
    if not isinstance(written, exp.Literal) or written.this != old:
        return text
    made: str = exp.Literal.string(label).sql("postgres")
    return made


def sequence_of_default(text: str, column: str) -> str:
    """The sequence whose next numbers a DEFAULT of a new column gives to the rows that are there; empty: it gives none.

    Raises:
        UnsupportedSQL: it computes with them.
    """
    (node,) = parse_query(f"SELECT {text}").selects
    calls = [one for one in node.find_all(exp.Anonymous) if one.name.lower() == NEXT]
    if not calls:
        return ""
    name = argument(calls[0]) if calls == [node] else None
    if name is None:
        raise UnsupportedSQL(f"ADD COLUMN with a DEFAULT that computes with {NEXT} is not supported",
                             remedy=f"ADD COLUMN {column}, then ALTER COLUMN {column} SET DEFAULT, and UPDATE the rows")
    return name


def names_read(text: str) -> set[str]:
    """The columns that an expression names."""
    return {name_of(node) for node in parse_query(f"SELECT {text}").find_all(exp.Column)}


def check_alone(node: exp.Expr, sql: str, what: str, *, fixed: bool = True) -> None:
    """Refuse what the value of one row cannot have: other rows, and if it is `fixed`, what changes while the row stays.
    `what`: whose expression it is."""
    for part in node.walk():
        if isinstance(part, exp.Query | exp.Exists):
            raise refuse(part, sql, f"a subquery is not allowed in {what}, which is about one row alone")
        name = part.name.lower() if isinstance(part, exp.Anonymous) else type(part).key.replace("current", "current_")
        if fixed and name in REFUSED:
            problem = refuse(part, sql, f"{name} is not allowed in {what}: its answer changes while the row stays",
                             "store the value in a column with DEFAULT, and name the column")
            raise problem.with_(code="42P17")


def _value(text: str, columns: Sequence[Column], schema: Schema, table: str, what: str) -> Expr:
    (node,) = parse_query(f"SELECT {text}").selects
    check_alone(node, text, what)
    scope = Scope.of(FromItem(table.rpartition(".")[2], tuple((column.name, column) for column in columns)))
    return Scalars(Context(schema, text), (scope,)).value(node)

"""Binds WITH RECURSIVE: a query that reads itself, as two relations that are evaluated in rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind import select as bind_select  # for its parts: the two modules call each other
from halfjoin.sql.bind.context import CommonTable, Context, Recursion, Stored
from halfjoin.sql.bind.reading import outer_columns
from halfjoin.sql.bind.scope import Scope
from halfjoin.sql.bind.selected import Selected, common, known
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.parse.locate import name_of, only
from halfjoin.sql.relation import Project, Relation
from halfjoin.sql.types import STORED_DIGITS, Kind, SqlType, numeric


def reads(query: exp.Expr, name: str) -> bool:
    """Whether a query reads a table of that name."""
    return any(isinstance(table.this, exp.Identifier) and name_of(table) == name for table in query.find_all(exp.Table))


def recursion(
    query: exp.Expr, name: str, columns: tuple[exp.Identifier, ...], context: Context, outer: tuple[Scope, ...]
) -> Stored:
    """The rows of a query that reads itself under a name; the context's recursions get what computes them."""
    assert context.recursions is not None  # checked by the caller
    if not isinstance(query, exp.Union) or reads(query.this, name):
        raise context.wrong(query, f"{name} reads itself, so it must be: a query that does not, UNION [ALL], one that "
                                   "does")
    only(query, context.sql, "WITH RECURSIVE", ("this", "expression", "distinct"))
    selected = bind_select.select(query.this, context, None, outer)
    first = shaped(selected, [known(value) for value in selected.values])
    rows, working = (Stored(_unused(name, context), first.columns, tuple(selected.names)) for _ in range(2))
    inside: list[Recursion] = []
    itself = CommonTable(working, columns, context)
    inner = replace(context, common={**context.common, name: itself}, recursions=inside)
    found = bind_select.select(query.expression, inner, None, outer)
    round = shaped(found, fitted(query.expression, name, found, first, context))
    refuse_outer((first, round), name, context, query)
    made = Recursion(rows, working, first, round, tuple(inside), bool(query.args.get("distinct")))
    context.recursions.append(made)
    return rows


def refuse_outer(parts: Iterable[Relation], name: str, context: Context, node: exp.Expr) -> None:
    """Refuse a recursive query that reads columns of the query around it."""
    for column in (column for part in parts for column in outer_columns(part)):
        raise context.refuse(node, f"{name} reads itself, and {column.rpartition('.')[2]} of the query around it",
                             "let its rows carry that column from its first part on, and join on it outside")


def _unused(name: str, context: Context) -> str:
    """A name for a collection that no table or view has."""
    while True:
        made = context.aliases.fresh(f"{name} of WITH RECURSIVE")
        if made not in context.schema.names():
            return made


def shaped(selected: Selected, values: Sequence[Expr]) -> Project:
    """The outputs as columns that a collection can hold: a numeric has at most 38 digits."""
    typed = [functions.cast(value, held(value.type)) for value in values]
    return Project(selected.input, tuple((Column(f"c{n}", value.type), value) for n, value in enumerate(typed, 1)))


def held(type: SqlType) -> SqlType:
    """The type in which a collection can hold values of a type."""
    if type.kind is Kind.INTERVAL:
        raise UnsupportedSQL("WITH RECURSIVE cannot hold an interval", remedy="take its length: extract(epoch from x)")
    if type.kind is not Kind.NUMERIC or (type.precision or 0) <= STORED_DIGITS:
        return type
    return numeric(STORED_DIGITS, min(type.scale or 0, STORED_DIGITS))


def fitted(query: exp.Expr, name: str, found: Selected, first: Project, context: Context) -> list[Expr]:
    """The values of the second part, with the types of the first part's."""
    if len(found.items) != len(first.items):
        raise context.wrong(query, "the parts of UNION have different numbers of columns")
    for value, (column, _) in zip(found.values, first.items, strict=True):
        with context.at(query):
            together = common([value, column])
        if held(together) != column.type:
            raise context.wrong(query, f"a column of {name} is {column.type} in its first part, and {value.type} in "
                                       "its second", f"cast it in the first part: ::{value.type}")
    return [functions.cast(value, column.type) for value, (column, _) in zip(found.values, first.items, strict=True)]

"""Binds WITH RECURSIVE: a query that reads itself, as two relations that are evaluated in rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind import select as bind_select  # for its parts: the two modules call each other
from halfjoin.sql.bind.context import CommonTable, Context, Looped, Recursion, Stored
from halfjoin.sql.bind.first_rows import first_rows
from halfjoin.sql.bind.selected import Selected, common, known
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.parse.locate import name_of, only
from halfjoin.sql.relation import (
    Aggregate,
    Binding,
    Fed,
    Filter,
    Join,
    Loop,
    Outer,
    Project,
    Relation,
    Semi,
    TableFunction,
    UnionAll,
    every_part,
)
from halfjoin.sql.types import STORED_DIGITS, Kind, SqlType, numeric

MOST_ROUNDS = 5_000  # of a loop whose author gives no limit


def reads(query: exp.Expr, name: str) -> bool:
    """Whether a query reads a table of that name."""
    return any(isinstance(table.this, exp.Identifier) and name_of(table) == name for table in query.find_all(exp.Table))


def recursion(query: exp.Expr, name: str, columns: tuple[exp.Identifier, ...], context: Context) -> Stored:
    """The rows of a query that reads itself under a name; the context's recursions get what computes them."""
    assert context.recursions is not None  # checked by the caller
    if not isinstance(query, exp.Union) or reads(query.this, name):
        raise context.wrong(query, f"{name} reads itself, so it must be: a query that does not, UNION [ALL], one that "
                                   "does")
    only(query, context.sql, "WITH RECURSIVE", ("this", "expression", "distinct"))
    selected = bind_select.select(query.this, context)
    first = _project(selected, [known(value) for value in selected.values])
    rows, working = (Stored(_unused(name, context), first.columns, tuple(selected.names)) for _ in range(2))
    inside: list[Recursion] = []
    itself = CommonTable(working, columns, context)
    inner = replace(context, common={**context.common, name: itself}, recursions=inside)
    found = bind_select.select(query.expression, inner)
    round = _project(found, _fitted(query.expression, name, found, first, context))
    made = Recursion(rows, working, first, round, tuple(inside), bool(query.args.get("distinct")))
    context.recursions.append(made)
    return rows


def looped(query: exp.Expr, name: str, columns: tuple[exp.Identifier, ...], context: Context) -> Looped:
    """The rows of a view's query that reads itself under a name: a loop with one binding.

    A round adds what its second part makes of the rows of the round before. This is what PostgreSQL's working table
    gives if the second part reads each row on its own; of others it is not, so they are refused.
    """
    if not isinstance(query, exp.Union) or reads(query.this, name):
        raise context.wrong(query, f"{name} reads itself, so it must be: a query that does not, UNION [ALL], one that "
                                   "does")
    only(query, context.sql, "WITH RECURSIVE", ("this", "expression", "distinct"))
    selected = bind_select.select(query.this, context)
    first = _project(selected, [known(value) for value in selected.values])
    loop = context.aliases.fresh(f"{name} of WITH RECURSIVE")
    nullable = tuple(replace(column, nullable=True) for column in first.columns)

    def before(alias: str, columns: tuple[Column, ...]) -> Relation:
        return Fed(loop, 0, True, alias, columns)

    inner = replace(context, common={
        **context.common, name: CommonTable(Looped(name, nullable, tuple(selected.names), before), columns, context)})
    found = bind_select.select(query.expression, inner)
    step = _project(found, _fitted(query.expression, name, found, first, context))
    if not is_linear(step, loop):
        raise context.refuse(query.expression, f"the second part of {name} groups, orders or compares the rows of "
                             f"{name}", "write WITH MUTUALLY RECURSIVE")
    arms = tuple(first_rows(part) for part in (first, step))
    whole: Relation = UnionAll(arms, nullable)
    if query.args.get("distinct"):
        whole = Aggregate(whole, tuple((column, column) for column in nullable))
    binding = Binding(name, whole)

    def after(alias: str, columns: tuple[Column, ...]) -> Relation:
        return Loop(loop, (binding,), MOST_ROUNDS, True, 0, columns)

    return Looped(name, nullable, tuple(selected.names), after)


def is_linear(relation: Relation, loop: str) -> bool:
    """Whether a relation reads the bindings of a loop, and makes of a sum of rows the sum of what it makes of each."""
    match relation:
        case Fed(name):
            return name == loop
        case Filter(input) | Project(input) | TableFunction(input):
            return is_linear(input, loop)
        case Join(inputs):
            feds = [item for item in inputs if _feeds(item, loop)]
            return len(feds) == 1 and is_linear(feds[0], loop)
        case UnionAll(inputs):
            return all(is_linear(item, loop) for item in inputs)
        case Outer(left, right, full=False):
            return is_linear(left, loop) and not _feeds(right, loop)
        case Semi(input, other):
            return is_linear(input, loop) and not _feeds(other, loop)
        case _:
            return False


def _feeds(relation: Relation, loop: str) -> bool:
    return any(isinstance(part, Fed) and part.loop == loop for part in every_part(relation))


def _unused(name: str, context: Context) -> str:
    """A name for a collection that no table or view has."""
    while True:
        made = context.aliases.fresh(f"{name} of WITH RECURSIVE")
        if made not in context.schema.names():
            return made


def _project(selected: Selected, values: Sequence[Expr]) -> Project:
    """The outputs as columns that a collection can hold: a numeric has at most 38 digits."""
    typed = [functions.cast(value, _stored(value.type)) for value in values]
    return Project(selected.input, tuple((Column(f"c{n}", value.type), value) for n, value in enumerate(typed, 1)))


def _stored(type: SqlType) -> SqlType:
    if type.kind is Kind.INTERVAL:
        raise UnsupportedSQL("WITH RECURSIVE cannot hold an interval", remedy="take its length: extract(epoch from x)")
    if type.kind is not Kind.NUMERIC or (type.precision or 0) <= STORED_DIGITS:
        return type
    return numeric(STORED_DIGITS, min(type.scale or 0, STORED_DIGITS))


def _fitted(query: exp.Expr, name: str, found: Selected, first: Project, context: Context) -> list[Expr]:
    """The values of the second part, with the types of the first part's."""
    if len(found.items) != len(first.items):
        raise context.wrong(query, "the parts of UNION have different numbers of columns")
    for value, (column, _) in zip(found.values, first.items, strict=True):
        with context.at(query):
            together = common([value, column])
        if _stored(together) != column.type:
            raise context.wrong(query, f"a column of {name} is {column.type} in its first part, and {value.type} in "
                                       "its second", f"cast it in the first part: ::{value.type}")
    return [functions.cast(value, column.type) for value, (column, _) in zip(found.values, first.items, strict=True)]

"""Binds the recursive queries of views, as loops: WITH RECURSIVE, and WITH MUTUALLY RECURSIVE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.bind import select as bind_select  # for its parts: the two modules call each other
from halfjoin.sql.bind.context import CommonTable, Context, Looped
from halfjoin.sql.bind.first_rows import first_rows
from halfjoin.sql.bind.recursion import fitted, reads, shaped
from halfjoin.sql.bind.selected import known
from halfjoin.sql.expr import Column
from halfjoin.sql.parse.dialect import MutualWith
from halfjoin.sql.parse.locate import name_of, only
from halfjoin.sql.parse.type_names import stored_type
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

MOST_ROUNDS = 5_000  # of a loop whose author gives no limit


def mutual(clause: MutualWith, items: Sequence[exp.CTE], context: Context) -> Context:
    """The context plus the bindings of WITH MUTUALLY RECURSIVE, as they are after the loop."""
    loop = context.aliases.fresh("WITH MUTUALLY RECURSIVE")
    heads = [_head(item, context) for item in items]

    def feeding(number: int, *, before: bool) -> Looped:
        name, columns, names = heads[number]

        def at(alias: str, own: tuple[Column, ...]) -> Relation:
            return Fed(loop, number, before, alias, own)

        return Looped(name, columns, names, at)

    bindings: list[Binding] = []
    for number, item in enumerate(items):
        inside = {head[0]: CommonTable(feeding(other, before=other >= number), (), context)
                  for other, head in enumerate(heads)}  # fmt: skip
        found = bind_select.select(item.this, replace(context, common={**context.common, **inside}))
        name, columns, _ = heads[number]
        if len(found.items) != len(columns):
            raise context.wrong(item, f"{name} has {len(columns)} columns, and its query {len(found.items)}")
        values = [functions.cast(value, column.type) for value, column in zip(found.values, columns, strict=True)]
        bindings.append(Binding(name, first_rows(Project(found.input, tuple(zip(columns, values, strict=True))))))
    limit = clause.args.get("limit")
    strict = limit is None or bool(clause.args.get("error"))
    whole = tuple(bindings)

    def shown(number: int) -> Callable[[str, tuple[Column, ...]], Relation]:
        rounds = MOST_ROUNDS if limit is None else int(limit.this)
        return lambda alias, own: Loop(loop, whole, rounds, strict, number, own)

    after = {name: CommonTable(Looped(name, columns, names, shown(number)), (), context)
             for number, (name, columns, names) in enumerate(heads)}  # fmt: skip
    return replace(context, common={**context.common, **after})


def _head(item: exp.CTE, context: Context) -> tuple[str, tuple[Column, ...], tuple[str, ...]]:
    """A binding's name, its columns as they are kept, and their names."""
    alias = item.args["alias"]
    given = alias.args.get("columns") or ()
    if not given or not all(isinstance(column, exp.ColumnDef) and column.args.get("kind") for column in given):
        raise context.refuse(item, "WITH MUTUALLY RECURSIVE needs the types of all columns",
                             "write name (column type, ...) AS (query)")
    types = [stored_type(column.args["kind"], context.sql) for column in given]
    columns = tuple(Column(f"c{number}", type) for number, type in enumerate(types, 1))
    return name_of(alias.this), columns, tuple(name_of(column) for column in given)


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
    first = shaped(selected, [known(value) for value in selected.values])
    loop = context.aliases.fresh(f"{name} of WITH RECURSIVE")
    nullable = tuple(replace(column, nullable=True) for column in first.columns)

    def before(alias: str, columns: tuple[Column, ...]) -> Relation:
        return Fed(loop, 0, True, alias, columns)

    inner = replace(context, common={
        **context.common, name: CommonTable(Looped(name, nullable, tuple(selected.names), before), columns, context)})
    found = bind_select.select(query.expression, inner)
    step = shaped(found, fitted(query.expression, name, found, first, context))
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

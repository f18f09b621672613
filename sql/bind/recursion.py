"""Binds WITH RECURSIVE: a query that reads itself, as two relations that are evaluated in rounds."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.selected import Selected, common
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.parse.locate import name_of
from halfjoin.sql.relation import Project
from halfjoin.sql.types import INTEGERS, STORED_DIGITS, Kind, SqlType, numeric


def reads(query: exp.Expr, name: str) -> bool:
    """Whether a query reads a table of that name, and no query of a WITH inside of it that has the same name."""
    waiting = [query]
    while waiting:
        node = waiting.pop()
        clause = node.args.get("with_")
        items = clause.expressions if isinstance(clause, exp.With) else []
        names = [name_of(item.args["alias"].this) for item in items]
        if name in names:  # up to that one, the queries of a WITH that is not recursive see what is around it
            seen = 0 if node.args["with_"].args.get("recursive") else names.index(name) + 1
            waiting += [item.this for item in items[:seen]]
            continue
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and name_of(node) == name:
            return True
        waiting += node.iter_expressions()
    return False


def dependent(items: Sequence[exp.CTE]) -> list[exp.CTE]:
    """The queries of WITH RECURSIVE in an order in which each one follows those that it reads, if there is one."""
    waiting, ordered = {name_of(item.args["alias"].this): item for item in items}, list[exp.CTE]()
    while waiting:
        ready = next((name for name, item in waiting.items()
                      if not any(reads(item.this, other) for other in waiting if other != name)), next(iter(waiting)))
        ordered.append(waiting.pop(ready))
    return ordered


def shaped(selected: Selected, values: Sequence[Expr]) -> Project:
    """The outputs as columns that a collection can hold: a numeric has at most 38 digits."""
    typed = [functions.cast(value, held(value.type)) for value in values]
    return Project(selected.input, tuple((Column(f"c{n}", value.type), value) for n, value in enumerate(typed, 1)))


def held(type: SqlType) -> SqlType:
    """The type in which a collection can hold values of a type."""
    if type.kind is not Kind.NUMERIC or (type.precision or 0) <= STORED_DIGITS:
        return type
    return numeric(STORED_DIGITS, min(type.scale or 0, STORED_DIGITS))


def wider(query: exp.Expr, found: Selected, first: Project, context: Context) -> list[SqlType] | None:
    """The types of the first part's columns, where numerics have more digits before the point in the second part, as
    in `x + 1`, or are integers there: as many digits as a column has. None if there are no such columns."""
    types = [column.type for column, _ in first.items]
    for place, (value, (column, _)) in enumerate(zip(found.values, first.items, strict=False)):
        if column.type.kind is Kind.NUMERIC and value.type.kind in (Kind.NUMERIC, *INTEGERS):
            with context.at(query):
                together = held(common([value, column]))
            if together != column.type:
                types[place] = numeric(STORED_DIGITS, together.scale or 0)
    return types if types != [column.type for column, _ in first.items] else None


def fitted(query: exp.Expr, name: str, found: Selected, first: Project, context: Context) -> list[Expr]:
    """The values of the second part, with the types of the first part's."""
    if len(found.items) != len(first.items):
        raise context.wrong(query, "the parts of UNION have different numbers of columns")
    for value, (column, _) in zip(found.values, first.items, strict=True):
        with context.at(query):
            together = common([value, column])
        if held(together) != column.type:
            said = f"a column of {name} is {column.type} in its first part, and {value.type} in its second"
            if value.type.kind is Kind.NUMERIC:
                raise context.wrong(query, said, f"cast it in both parts: ::numeric({STORED_DIGITS}, 10)")
            raise context.wrong(query, said, f"cast it in the first part: ::{value.type}")
    return [functions.cast(value, column.type) for value, (column, _) in zip(found.values, first.items, strict=True)]

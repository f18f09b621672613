"""Binds table functions, in FROM and in the SELECT list: each call becomes a function of the rows to its left."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import FromItem
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.functions.table_functions import returns_rows, signature
from halfjoin.sql.parse.locate import name_of
from halfjoin.sql.relation import Relation, TableFunction
from halfjoin.sql.types import BIGINT, INTEGER


def bind_call(call: exp.Anonymous, alias: exp.TableAlias | None, ordinality: bool, relation: Relation,
              scalars: Scalars) -> tuple[TableFunction, FromItem]:
    """A call in FROM on top of the relation to its left, and the name and columns that it adds to the scope."""
    context = scalars.context
    function = call.name.lower()
    if not returns_rows(function, context.schema):
        with context.at(call):
            signature(function, (), context.schema)
    args = scalars.values(call.expressions)
    with context.at(call):
        args, outputs = signature(function, args, context.schema)
    name = name_of(alias.this) if alias is not None and alias.this else function
    names = [column or name for column, _ in outputs] + ["ordinality"] * ordinality
    names = renamed(names, alias, name, context)
    unique = context.aliases.fresh(name)
    columns = [Column(f"{unique}.{column}", type) for column, (_, type) in zip(names, outputs, strict=False)]
    ordinal = Column(f"{unique}.{names[-1]}", BIGINT, nullable=False) if ordinality else None
    bound = TableFunction(relation, function, unique, args, tuple(columns), ordinal)
    visible = tuple(zip(names, [*columns, ordinal] if ordinal else columns, strict=True))
    return bound, FromItem(name, visible, scalar=len(visible) == 1)


def renamed(names: Sequence[str], alias: exp.TableAlias | None, what: str, context: Context) -> list[str]:
    """The column names after `AS alias (x, y)`, which may rename only the first few."""
    given = alias.args.get("columns") or [] if alias is not None else []
    for column in given:
        if not isinstance(column, exp.Identifier):
            raise context.refuse(column, "a list of column types is not supported here", "name the columns only")
    if len(given) > len(names):
        raise context.refuse(given[len(names)], f"{what} has {len(names)} columns, but {len(given)} names are given")
    return [name_of(column) for column in given] + list(names[len(given):])


def list_calls(items: Sequence[exp.Expr], relation: Relation,
               scalars: Scalars) -> tuple[Relation, dict[int, Expr]]:
    """The relation with the set-returning call of a SELECT list, and the call's column by the id of its node."""
    context = scalars.context
    calls = [call for item in items for call in _calls(item, scalars)]
    if not calls:
        return relation, {}
    if len(calls) > 1:
        raise context.refuse(calls[1], "a SELECT list may call one function that returns rows",
                             "write them in FROM, each with an alias")
    call = calls[0]
    name = call.name.lower()
    parent = call.parent
    while parent is not None and not isinstance(parent, exp.Query):
        if isinstance(parent, exp.Case) or (isinstance(parent, exp.Anonymous) and parent.name.lower() == "coalesce"):
            raise context.refuse(call, f"{name} returns rows, which is not allowed in a conditional expression",
                                 "write it in FROM")
        parent = parent.parent
    bound, source = bind_call(call, None, False, relation, scalars)
    if len(source.columns) != 1:
        raise context.refuse(call, f"{name} has {len(source.columns)} columns, so it is not a value",
                             f"write it in FROM: FROM ..., {name}(...)")
    return bound, {id(call): source.columns[0][1]}


def _calls(item: exp.Expr, scalars: Scalars) -> list[exp.Anonymous]:
    """Calls of functions that return rows, outside subqueries and what is bound already."""
    nodes = item.walk(prune=lambda node: isinstance(node, exp.Query) or id(node) in scalars.bound)
    calls = (node for node in nodes if isinstance(node, exp.Anonymous))
    return [call for call in calls if returns_rows(call.name.lower(), scalars.context.schema)]


def numbered(relation: Relation, count: int, context: Context) -> tuple[Relation, Column]:
    """Each row `count` times, with the number of the copy, from 1."""
    alias = context.aliases.fresh("number")
    number = Column(f"{alias}.number", INTEGER, nullable=False)
    bounds = (Literal(1, INTEGER), Literal(count, INTEGER))
    return TableFunction(relation, "generate_series", alias, bounds, (number,)), number

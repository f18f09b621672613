"""Binds UNION, INTERSECT and EXCEPT, with and without ALL.

UNION removes duplicates of a UNION ALL. INTERSECT and EXCEPT count, for each row, how often it is in the left and in
the right part; equal rows are the groups of an aggregate, so NULL equals NULL.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.bind import select as bind_select  # for the parts: the two modules call each other
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.ordering import ordered_outputs
from halfjoin.sql.bind.scope import Scope
from halfjoin.sql.bind.selected import Namer, Selected, common, project, qualified
from halfjoin.sql.bind.unmaintained import refuse_set_operation
from halfjoin.sql.expr import FALSE, TRUE, Column, Literal
from halfjoin.sql.functions.order import check_equality
from halfjoin.sql.relation import Aggregate, AggregateCall, Filter, Project, Relation, TableFunction, UnionAll
from halfjoin.sql.types import BIGINT, BOOLEAN, SqlType

_WORDS: dict[type[exp.Expr], str] = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}


def set_operation(query: exp.SetOperation, context: Context, outer: tuple[Scope, ...]) -> Selected:
    """The rows of a set operation, with its ORDER BY and LIMIT; the context has its WITH."""
    selected = _union(query, context, outer) if isinstance(query, exp.Union) else _counted(query, context, outer)
    return ordered_outputs(query, selected, "UNION/INTERSECT/EXCEPT", context, outer)


def _union(query: exp.SetOperation, context: Context, outer: tuple[Scope, ...]) -> Selected:
    parts = [bind_select.select(part, context, None, outer) for part in _parts(query, context)]
    names, types, parts = _typed(parts, query, context)
    namer = qualified(context.aliases.fresh("union"))
    arms = tuple(project(part, qualified(context.aliases.fresh("union")), types) for part in parts)
    columns = _columns(namer, names, arms)
    union = UnionAll(arms, columns)
    if not query.args.get("distinct"):
        return Selected(union, tuple(zip(names, columns, strict=True)))
    with context.at(query):
        check_equality(*types)
    keys = _columns(qualified(context.aliases.fresh("distinct")), names, arms)
    return Selected(Aggregate(union, tuple(zip(keys, columns, strict=True))), tuple(zip(names, keys, strict=True)))


def _counted(query: exp.SetOperation, context: Context, outer: tuple[Scope, ...]) -> Selected:
    """INTERSECT and EXCEPT: count each row's copies on either side."""
    parts = [bind_select.select(part, context, None, outer) for part in (query.this, query.expression)]
    names, types, parts = _typed(parts, query, context)
    with context.at(query):
        check_equality(*types)
    types = [*types, BOOLEAN]
    word = query.key
    arms = tuple(
        project(Selected(part.input, (*part.items, ("left", side))), qualified(context.aliases.fresh(word)), types)
        for part, side in zip(parts, (TRUE, FALSE), strict=True))
    *columns, left = _columns(qualified(context.aliases.fresh(word)), [*names, "left"], arms)
    namer = qualified(context.aliases.fresh(word))
    keys = [Column(namer(name), column.type, column.nullable) for name, column in zip(names, columns, strict=True)]
    ours, theirs = (Column(namer(side), BIGINT, nullable=False) for side in ("copies left", "copies right"))
    counted = Aggregate(UnionAll(arms, (*columns, left)), tuple(zip(keys, columns, strict=True)), (
        (ours, AggregateCall("count", (), BIGINT, condition=left)),
        (theirs, AggregateCall("count", (), BIGINT, condition=functions.resolve("not", (left,))))))
    return Selected(_chosen(query, counted, ours, theirs, context), tuple(zip(names, keys, strict=True)))


def _chosen(query: exp.SetOperation, counted: Aggregate, left: Column, right: Column, context: Context) -> Relation:
    """The rows that stay, as often as the operation says."""
    none, intersect = Literal(0, BIGINT), isinstance(query, exp.Intersect)
    if not query.args.get("distinct"):
        copies = functions.resolve("least", (left, right)) if intersect else functions.resolve(
            "greatest", (functions.resolve("-", (left, right)), none))
        return TableFunction(counted, "repeat_row", context.aliases.fresh("repeat_row"), (copies,), ())
    other = functions.resolve(">" if intersect else "=", (right, none))
    return Filter(counted, functions.resolve("and", (functions.resolve(">", (left, none)), other)))


def _typed(parts: list[Selected], query: exp.SetOperation,
           context: Context) -> tuple[list[str], list[SqlType], list[Selected]]:
    """The names of the first part, the common types of all parts, and the parts."""
    width = len(parts[0].items)
    if any(len(part.items) != width for part in parts):
        word = _WORDS[type(query)] + ("" if query.args.get("distinct") else " ALL")
        raise context.wrong(query.expression, f"the parts of {word} have different numbers of columns",
                            f"each {word} query must have the same number of columns")
    with context.at(query.expression):
        types = [common([part.values[place] for part in parts]) for place in range(width)]
    return parts[0].names, types, parts


def _columns(namer: Namer, names: Sequence[str], arms: Sequence[Project]) -> tuple[Column, ...]:
    """The columns of a union of arms; one is nullable if it is in any arm."""
    columns = []
    for place, name in enumerate(names):
        nullable = any(arm.columns[place].nullable for arm in arms)
        columns.append(Column(namer(name), arms[0].columns[place].type, nullable))
    return tuple(columns)


def _parts(query: exp.SetOperation, context: Context) -> list[exp.Expr]:
    """The parts of a chain of UNIONs, whose WITH the context has.

    A UNION inside is a part of the chain if it has no clauses of its own, and if its duplicates do not matter: they go
    in the end, or they stay. It may be in parentheses.
    """
    distinct = bool(query.args.get("distinct"))
    parts: list[exp.Expr] = []
    waiting = [query.expression, query.this]
    while waiting:
        part = waiting.pop()
        inner = part
        while isinstance(inner, exp.Subquery) and not inner.args.get("with_"):
            inner = inner.this
        own = any(inner.args.get(key) for key in ("with_", "order", "limit", "offset"))
        if isinstance(inner, exp.Union) and not own and (distinct or not inner.args.get("distinct")):
            refuse_set_operation(inner, context)
            waiting += [inner.expression, inner.this]
        else:
            parts.append(part)
    return parts

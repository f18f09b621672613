"""Aggregates in subqueries that belong to a query around them, because they read its columns only.

SQL gives an aggregate to the innermost query whose columns it reads. In `SELECT k, (SELECT sum(o.v)) FROM o GROUP BY k`
the sum is over the rows of `o`: the outer query computes it, and the subquery reads it like a column of the groups.
So it does for `grouping(k)`.

Whose columns a call reads, the FROM clauses of the queries between say. So a query with such a call binds its
subqueries once on trial, before it is grouped, to learn what they read. The calls found are bound as its own.

A subquery in the argument of a call belongs to the query that the call belongs to. Of its columns, those count that it
reads of the queries around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sqlglot import exp

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.bind import select as bind_select  # the two modules call each other
from halfjoin.sql.bind.aggregates import aggregate_call, is_aggregate, parts_of_call, parts_of_window
from halfjoin.sql.bind.context import Aliases, CommonTable
from halfjoin.sql.bind.grouping_sets import is_grouping
from halfjoin.sql.bind.quantified import QUERIES
from halfjoin.sql.bind.reading import outer_columns
from halfjoin.sql.bind.rows import Rows
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import Scope, find, find_star
from halfjoin.sql.bind.subqueries import bind_values
from halfjoin.sql.expr import Column, Expr, columns_of
from halfjoin.sql.parse.locate import name_of, owner_of
from halfjoin.sql.relation import Values
from halfjoin.sql.schema import Schema
from halfjoin.sql.types import INTEGER, SqlType


@dataclass
class Trial:
    """What the subqueries that are bound on trial tell: the calls that belong to the query at a depth.

    The outermost query has depth 1. `bound`: what the calls of outer queries are meanwhile, by the nodes' identity.
    """

    depth: int
    bound: dict[int, Expr]
    common: Mapping[str, CommonTable]  # the queries of WITH that this query sees
    calls: list[exp.Expr] = field(default_factory=list)
    wrong: list[UnsupportedSQL] = field(default_factory=list)

    def note(self, node: exp.Expr, scalars: Scalars) -> None:
        """Note the calls that belong to queries around: of a subquery whose FROM is bound, or of a condition there."""
        own = node if isinstance(node, QUERIES) else None
        for call, around in _calls(node, scalars.context.schema):
            if around is own and id(call) not in self.bound and (level := _level(call, scalars)):
                if len(scalars.scopes) - level == self.depth:
                    self.check(call, scalars)
                    self.calls.append(call)
                self.bound[id(call)] = Column(f"aggregate {len(self.bound)}", _type_of(call, level, scalars))

    def check(self, call: exp.Expr, scalars: Scalars) -> None:
        """Refuse a call whose subqueries read a query of WITH that the query to which it belongs does not see."""
        context = scalars.context
        for table in (table for query in _outermost(call) for table in query.find_all(exp.Table)):
            name = name_of(table) if isinstance(table.this, exp.Identifier) else ""
            if context.common.get(name) is not self.common.get(name):
                self.wrong.append(context.wrong(
                    call, f"an aggregate over columns of an outer query only belongs to that query, which does not "
                          f"see {name} of the inner WITH", "move the WITH to the outer query"))  # fmt: skip


def outer_aggregates(nodes: Sequence[exp.Expr], scalars: Scalars) -> list[exp.Expr]:
    """The calls in the nodes' subqueries that are aggregates of the query itself."""
    context = scalars.context
    inside = [call for node in nodes for call, around in _calls(node, context.schema) if around is not None]
    if not any(id(call) not in context.lifted and _reads(call, scalars.scopes[0]) for call in inside):
        return []
    trial = Trial(len(scalars.scopes), dict(context.lifted), context.common)
    context = replace(context, aliases=Aliases(), notices=[], lifted=trial.bound, trial=trial)
    for node in nodes:
        for query in _outermost(node):
            with suppress(UnknownName, UnsupportedSQL):  # the query itself reports it
                bind_select.select(query, context, None, scalars.scopes)
    for error in trial.wrong:
        raise error
    return trial.calls


def _calls(node: exp.Expr, schema: Schema,
           around: exp.Expr | None = None) -> Iterator[tuple[exp.Expr, exp.Expr | None]]:
    """The calls of aggregates and of grouping(), those in the arguments of others after these, each with the subquery
    that it is in. One in the arguments of another belongs to a query further out."""
    if isinstance(node, exp.Window):
        parts: Iterator[exp.Expr] = parts_of_window(node)
    elif is_aggregate(node, schema) or is_grouping(node):
        yield node, around
        parts = parts_of_call(node)
    else:
        parts = node.iter_expressions()
    if isinstance(node, QUERIES):
        around = node
    for part in parts:
        yield from _calls(part, schema, around)


def _outermost(node: exp.Expr) -> Iterator[exp.Expr]:
    return (part for part in node.walk(prune=lambda part: isinstance(part, QUERIES)) if isinstance(part, QUERIES))


def _columns(call: exp.Expr) -> list[exp.Column]:
    return [column for column in call.find_all(exp.Column) if column.args.get("table") or name_of(column)]


def _reads(call: exp.Expr, scope: Scope) -> bool:
    """Whether a scope may have a column that a call reads."""
    return any(_level_of(column, (scope,)) == 0 for column in _columns(call))


def _level(call: exp.Expr, scalars: Scalars) -> int:
    """The innermost scope that has a column of the call; 0, the query's own, if it reads none."""
    inner = {id(column) for query in _outermost(call) for column in _columns(query)}
    levels = [_level_of(column, scalars.scopes) for column in _columns(call) if id(column) not in inner]
    for query in _outermost(call):
        selected = bind_select.select(query, scalars.context, None, scalars.scopes)
        read = outer_columns(selected.input).keys() | frozenset().union(*map(columns_of, selected.values))
        levels += [level for level, scope in enumerate(scalars.scopes) if read & {one.name for one in _all(scope)}]
    return min(levels, default=0)


def _type_of(call: exp.Expr, level: int, scalars: Scalars) -> SqlType:
    """The type of a call that belongs to the query of a scope. Its subqueries are bound over rows of that scope."""
    context, scopes = scalars.context, scalars.scopes[level:]
    if is_grouping(call):
        return INTEGER
    columns = {column.name: column for column in _all(scopes[0])}
    rows = Rows([Values(context.aliases.fresh("rows"), tuple(columns.values()), ())], replace(scalars, scopes=scopes))
    bind_values(rows, [call])
    made = aggregate_call(call, rows.scalars)
    return made.value([Column("", one.type) for one in made.calls]).type


def _all(scope: Scope) -> Iterator[Column]:
    return (column for source in scope.sources for _, column in (*source.columns, *source.hidden))


def _level_of(column: exp.Column, scopes: tuple[Scope, ...]) -> int:
    """The first scope that has a column, or their number if none has it."""
    for level, scope in enumerate(scopes):
        try:
            if isinstance(column.this, exp.Star):
                find_star((scope,), name_of(column.args["table"]), owner_of(column)[1])
                return level
            find((scope,), name_of(column), *owner_of(column))
        except UnknownName:
            continue
        except UnsupportedSQL:  # it has several, or has grouped them away
            pass
        return level
    return len(scopes)

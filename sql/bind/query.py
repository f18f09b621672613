"""Binds ad-hoc queries: as views are bound, plus what a view cannot have: an order of its rows, output columns of one
name, the clock, recursion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.sql.bind.apart import at_rest, order_apart
from halfjoin.sql.bind.context import Aliases, Context
from halfjoin.sql.bind.first_rows import first_rows
from halfjoin.sql.bind.fleeting import fleeting_in, noting
from halfjoin.sql.bind.reg_types import shown
from halfjoin.sql.bind.select import select
from halfjoin.sql.bind.selected import Selected, column_for, known
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions.clock import at_one_moment, moment
from halfjoin.sql.functions.record_values import is_record
from halfjoin.sql.relation import Project, Relation, SortKey, TopK

if TYPE_CHECKING:
    from halfjoin.sql.schema import Schema


@dataclass(frozen=True)
class BoundQuery:
    """A query: a relation, and which of its rows come in which order.

    The relation's first columns are the outputs, one for each of `names`, which may repeat; its other columns are sort
    keys. `top`: the order over these columns, with LIMIT and OFFSET; its input is the relation. None: any order.
    `fleeting`: what it asked that may be otherwise when the query is asked again: the clock, chance, a sequence, a
    session, PostgreSQL's catalog.
    """

    relation: Relation
    names: tuple[str, ...]
    top: TopK | None
    fleeting: tuple[str, ...] = ()


@at_one_moment
def bind_query(query: exp.Query, schema: Schema, sql: str) -> BoundQuery:
    """The query of a text `sql`. now() and the like are the moment of this call.

    UnsupportedSQL and UnknownName name the place in `sql`.
    """
    fleeting = list[str]()
    context = Context(schema, sql, now=moment(), ordered=True, system=noting(schema, fleeting), fleeting=fleeting)
    selected = select(query, context)
    last = selected.input if isinstance(selected.input, TopK) and not selected.input.partition else None  # LIMIT
    made, order = _with_keys(selected.input if last is None else last.input, selected, context)
    relation, top = first_rows(at_rest(made, context)), None
    if last is not None:
        top = replace(last, input=relation, order=order)
    elif order:
        top = TopK(relation, (), order, None)
    return BoundQuery(relation, tuple(selected.names), top, fleeting_in(context))


def _with_keys(relation: Relation, selected: Selected, context: Context) -> tuple[Project, tuple[SortKey, ...]]:
    """The outputs as columns, followed by the sort keys that are not outputs; and the order over the columns."""
    names = Aliases()
    items: list[tuple[Column, Expr]] = []
    columns: dict[Expr, Column] = {}

    def add(name: str, value: Expr) -> None:
        typed = known(value)
        items.append((column_for(names.fresh(name), typed), typed))
        columns.setdefault(value, items[-1][0])

    for name, value in selected.items:
        add(name, value if context.system is None else shown(value, context.system))
    order = [part for key in selected.order for part in (order_apart([key]) if is_record(key.expr) else [key])]
    for key in order:
        if key.expr not in columns:
            add("key", key.expr)
    return Project(relation, tuple(items)), tuple(replace(key, expr=columns[key.expr]) for key in order)

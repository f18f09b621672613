"""Binds DISTINCT, ORDER BY, LIMIT and OFFSET: what happens to a query's outputs last."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.bind.aggregates import sort_key
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.limits import NO_LIMIT, Limit, limit_of
from halfjoin.sql.bind.outputs import Output, named, position
from halfjoin.sql.bind.row_sequence import KEY, is_carried
from halfjoin.sql.bind.row_values import expanded, expanded_order
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import Scope
from halfjoin.sql.bind.selected import Selected, column_for, known, qualified
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions.order import check_equality, key_in_order
from halfjoin.sql.parse.locate import only
from halfjoin.sql.relation import Aggregate, Project, SortKey, TopK
from halfjoin.sql.types import UNKNOWN

ORDER_IS_DROPPED = "ORDER BY has no effect in a view without LIMIT: a view has no order"


@dataclass(frozen=True)
class Last:
    """The last clauses of a query. The values of `keys` and `on` read what the outputs read."""

    keys: tuple[SortKey, ...] = ()
    limit: Limit = NO_LIMIT
    distinct: bool = False
    on: tuple[Expr, ...] | None = None  # of DISTINCT ON

    def apply(self, selected: Selected, context: Context) -> Selected:
        """The query with these clauses: DISTINCT first, then the order with its limit."""
        if self.keys and not self.limit and self.on is None and ORDER_IS_DROPPED not in context.notices:
            context.notices.append(ORDER_IS_DROPPED)
        if self.distinct:
            selected, keys = _distinct(selected, self.keys, context)
            if self.limit and keys != by_value(keys):
                selected, keys = Last(keys, self.limit)._first_of_each(selected, context)
        elif self.on is not None or (self.limit and self.limit.count != 0):
            selected, keys = self._first_of_each(selected, context)
        else:
            keys = self.keys
        keys = by_value(keys)
        made = self.limit.apply(selected.input, keys, context)
        return replace(selected, input=made, order=tuple(keys))

    def _first_of_each(self, selected: Selected, context: Context) -> tuple[Selected, tuple[SortKey, ...]]:
        """The outputs as columns, the first row of each group of DISTINCT ON, and the keys over the columns."""
        on = self.on or ()
        check_equality(*(value.type for value in on))
        by = by_value(self.keys)
        values = selected.values
        selected, columns = _as_columns(selected, [*on, *(key.expr for key in by)], context)
        selected = _untyped(selected, values)
        keys = tuple(replace(key, expr=columns[key.expr]) for key in by)
        if self.on is None:
            return selected, keys
        partition = tuple(dict.fromkeys(columns[value] for value in on))
        rest = tuple(key for key, given in zip(keys, self.keys, strict=True) if given.expr not in on)
        return replace(selected, input=TopK(selected.input, partition, rest, 1)), keys


def by_value(keys: Sequence[SortKey]) -> tuple[SortKey, ...]:
    """The keys, with those of jsonb and enums replaced by what orders them."""
    return tuple(map(key_in_order, keys))


def _as_columns(selected: Selected, more: Sequence[Expr], context: Context) -> tuple[Selected, dict[Expr, Column]]:
    """The outputs and more values as columns, and the column of each value; ties are so broken by the outputs first."""
    namer = qualified(context.aliases.fresh("rows"))
    items: dict[Expr, tuple[Column, Expr]] = {}
    for name, value in (*selected.items, *((KEY if is_carried(value) else "key", value) for value in more)):
        if value not in items:
            typed = known(value)
            items[value] = column_for(namer(name), typed), typed
    columns = {value: column for value, (column, _) in items.items()}
    outputs = tuple((name, columns[value]) for name, value in selected.items)
    return Selected(Project(selected.input, tuple(items.values())), outputs), columns


def _untyped(selected: Selected, values: Sequence[Expr]) -> Selected:
    """Outputs that are columns, but for literals of no type: what takes them, as INSERT does, gives them one."""
    items = tuple((name, value if value.type == UNKNOWN else column)
                  for (name, column), value in zip(selected.items, values, strict=True))  # fmt: skip
    return replace(selected, items=items)


def _distinct(selected: Selected, keys: Sequence[SortKey],
              context: Context) -> tuple[Selected, tuple[SortKey, ...]]:
    """The distinct outputs, and the sort keys over them, which are outputs."""
    outputs = dict.fromkeys(selected.values)
    check_equality(*(value.type for value in outputs))
    selected, columns = _as_columns(selected, (), context)
    made = selected.input
    assert isinstance(made, Project)
    if any(key.expr not in outputs for key in keys):
        raise UnsupportedSQL("for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                             remedy="select the expression, too", wrong=True)
    sort = tuple(replace(key, expr=columns[key.expr]) for key in keys)
    return replace(selected, input=Aggregate(made.input, made.items)), sort


class Clauses:
    """DISTINCT, ORDER BY and LIMIT of a SELECT, as syntax; true if there are any."""

    def __init__(self, query: exp.Select, outputs: Sequence[Output], scalars: Scalars) -> None:
        self._query, self._context = query, scalars.context
        self._limit = limit_of(query, scalars.context, scalars.scopes, own=True)
        distinct = query.args.get("distinct")
        on = distinct.args.get("on") if distinct else None
        self._distinct = bool(distinct and not on)
        self._on = None if on is None else [
            (node, _output_of(node, outputs, "DISTINCT ON", scalars) if node is written else None)
            for written in on.expressions for node in _expanded(written, outputs, "DISTINCT ON", scalars)]
        self._keys = _keys(query, outputs, scalars)

    def __bool__(self) -> bool:
        return bool(self._limit or self._distinct or self._keys or self._on)

    @property
    def nodes(self) -> list[exp.Expr]:
        """The expressions that are not outputs."""
        keys = [(node.this, place) for node, place in self._keys]
        return [node for node, place in [*keys, *(self._on or ())] if place is None]

    @property
    def distinct(self) -> list[exp.Expr]:
        """The expressions of DISTINCT ON that are not outputs."""
        return [node for node, place in self._on or () if place is None]

    def check_calls(self, calls: Collection[int], outputs: Sequence[Output]) -> None:
        """Refuse set-returning calls (the ids of their nodes) that run after DISTINCT ON, as no key has one."""
        if not calls or self._on is None or not self._keys:
            return
        places = [place for _, place in [*self._keys, *self._on] if place is not None]
        if not any(id(node) in calls for place in places for node in outputs[place].node.walk()):
            raise self._context.refuse(self._query.args["distinct"],
                                       "DISTINCT ON with ORDER BY before a call in the SELECT list that returns rows",
                                       "call it around a subquery with DISTINCT ON")

    def apply(self, selected: Selected, scalars: Scalars) -> Selected:
        """The outputs with these clauses; `scalars` binds over what the outputs read."""

        def value(node: exp.Expr, place: int | None) -> Expr:
            return scalars.value(node) if place is None else selected.values[place]

        keys = tuple(sort_key(node, value(node.this, place), scalars) for node, place in self._keys)
        if not keys and not self._distinct:
            keys = selected.order
        on = None if self._on is None else tuple(value(*item) for item in self._on)
        if on is not None and self._keys:
            _check_on(on, keys, self._query.args["distinct"], self._context)
        last = Last(keys, self._limit, self._distinct, on)
        with self._context.at(self._query.args.get("order") or self._query):
            return last.apply(selected, self._context)


def _keys(query: exp.Expr, outputs: Sequence[Output], scalars: Scalars) -> list[tuple[exp.Ordered, int | None]]:
    """The keys of ORDER BY; each with the position of the output that it means, None for another expression."""
    order = query.args.get("order")
    if order is None:
        return []
    only(order, scalars.context.sql, "ORDER BY", ("expressions",))
    keys: list[tuple[exp.Ordered, int | None]] = []
    for node in order.expressions:
        place = _output_of(node.this, outputs, "ORDER BY", scalars)
        keys += [(node, place)] if place is not None else [(one, None) for one in expanded_order([node], scalars)]
    return keys


def _expanded(node: exp.Expr, outputs: Sequence[Output], clause: str, scalars: Scalars) -> list[exp.Expr]:
    return [node] if _output_of(node, outputs, clause, scalars) is not None else expanded([node], scalars)


def _output_of(node: exp.Expr, outputs: Sequence[Output], clause: str, scalars: Scalars) -> int | None:
    """The output that a key of ORDER BY or DISTINCT ON means, by its position or its name."""
    place = position(node, len(outputs), clause, scalars.context)
    return named(node, outputs, clause, scalars) if place is None else place


def _check_on(on: Sequence[Expr], keys: Sequence[SortKey], node: exp.Expr, context: Context) -> None:
    """Check that the first keys of the order are the expressions of DISTINCT ON, in any order."""
    waiting = set(on)
    for key in keys:
        if not waiting:
            return
        if key.expr not in on:
            raise context.wrong(node, "SELECT DISTINCT ON expressions must match initial ORDER BY expressions")
        waiting.discard(key.expr)


def ordered_outputs(query: exp.Expr, selected: Selected, what: str, context: Context,
                    outer: tuple[Scope, ...]) -> Selected:  # fmt: skip
    """ORDER BY and LIMIT after a set operation or VALUES; the order takes names and positions of outputs."""
    outputs = [Output(name, exp.Literal.number(place)) for place, name in enumerate(selected.names)]
    keys, scalars = [], Scalars(context, ())
    for node, place in _keys(query, outputs, scalars):
        if place is None:
            raise context.wrong(node, f"invalid {what} ORDER BY clause",
                                "only result column names can be used, not expressions or functions")
        keys.append(sort_key(node, selected.values[place], scalars))
    limit = limit_of(query, context, outer, own=False)
    return Last(tuple(keys) or selected.order, limit).apply(selected, context)

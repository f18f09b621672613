"""Binds calls of aggregates: `count(DISTINCT x) FILTER (WHERE y)`, `percentile_cont(0.5) WITHIN GROUP (ORDER BY x)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from halfjoin.sql.bind.direct import marked
from halfjoin.sql.bind.hypothetical import HYPOTHETICAL, hypothetical
from halfjoin.sql.bind.row_made import arguments as made_arguments
from halfjoin.sql.bind.row_order import never_null
from halfjoin.sql.bind.row_sequence import LISTS
from halfjoin.sql.bind.row_values import Row, expanded_order, row_of
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.selected import known
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions import resolve
from halfjoin.sql.functions.aggregates import ORDERED_SETS, is_aggregate_name, resolve_aggregate
from halfjoin.sql.functions.jsonb_aggregates import JSON_AGGREGATES, finished
from halfjoin.sql.functions.order import order_of, ordered_value, result_of
from halfjoin.sql.parse.locate import only
from halfjoin.sql.relation import AggregateCall, SortKey
from halfjoin.sql.schema import Schema


@dataclass(frozen=True)
class Aggregated:
    """An aggregate as the calls that it needs, and its value over the columns that have their results.

    `direct`: the nodes of its direct arguments, which may read keys only.
    """

    calls: tuple[AggregateCall, ...]
    value: Callable[[Sequence[Column]], Expr]
    direct: tuple[exp.Expr, ...] = ()


_AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)  # clauses after a call


def called(node: exp.Expr) -> exp.Expr:
    """The call itself, without FILTER, WITHIN GROUP and IGNORE NULLS."""
    while isinstance(node, _AROUND):
        node = node.this
    return node


def is_aggregate(node: exp.Expr, schema: Schema) -> bool:
    """Whether a node is a call of an aggregate, built in or the user's, with its clauses."""
    call = called(node)
    if not isinstance(call, exp.Anonymous):
        return False
    return is_aggregate_name(call.name.lower(), schema) or is_hypothetical(node)


def is_hypothetical(node: exp.Expr) -> bool:
    """Whether a node is `rank(5) WITHIN GROUP (...)` or the like."""
    call = called(node)
    return isinstance(call, exp.Anonymous) and isinstance(call.parent, exp.WithinGroup) and (
        call is not node and call.name.lower() in HYPOTHETICAL)


def aggregates_in(nodes: Sequence[exp.Expr], scalars: Scalars) -> list[exp.Expr]:
    """The outermost calls of aggregates in the nodes, outside subqueries; not those that an OVER makes a window's."""
    return [call for node in nodes for call in _aggregates(node, scalars)]


def _aggregates(node: exp.Expr, scalars: Scalars) -> Iterator[exp.Expr]:
    if id(node) in scalars.bound or isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        for part in parts_of_window(node):
            yield from _aggregates(part, scalars)
    elif is_aggregate(node, scalars.context.schema):
        yield node
    else:
        for child in node.iter_expressions():
            yield from _aggregates(child, scalars)


def parts_of_call(node: exp.Expr) -> Iterator[exp.Expr]:
    """What a call of an aggregate reads: its arguments, and its FILTER."""
    while isinstance(node, _AROUND):
        if node.args.get("expression"):
            yield node.expression
        node = node.this
    yield from node.iter_expressions()


def parts_of_window(node: exp.Window) -> Iterator[exp.Expr]:
    """What a window function reads: its arguments, its FILTER, and its window."""
    yield from parts_of_call(node.this)
    for child in node.iter_expressions():
        if child.arg_key != "this":
            yield child


def aggregate_call(node: exp.Expr, scalars: Scalars) -> Aggregated:
    """The call, with arguments, condition and order bound over the rows before grouping."""
    context = scalars.context
    condition = None
    if isinstance(node, exp.Filter):
        condition = scalars.value(node.expression.this)
        node = node.this
    within = None
    if isinstance(node, exp.WithinGroup):
        within = node.expression
        node = node.this
    name = node.name.lower()
    nodes, order, distinct = arguments(node)
    if within is not None:
        if name not in ORDERED_SETS | HYPOTHETICAL:
            raise context.wrong(node, f"{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP")
        if order or distinct:
            what = "DISTINCT" if distinct else "multiple ORDER BY clauses"
            raise context.wrong(node, f"cannot use {what} with WITHIN GROUP")
        order = within.expressions
    elif name in ORDERED_SETS:
        raise context.wrong(node, f"WITHIN GROUP is required for ordered-set aggregate {name}",
                            f"write {name}({'' if name == 'mode' else '0.5'}) WITHIN GROUP (ORDER BY x)")
    if name == "count" and len(nodes) == 1 and (row := row_of(nodes[0], scalars)) is not None:
        return Aggregated((_count_of(row, distinct, condition, scalars),), lambda columns: columns[0])
    if distinct and name in JSON_AGGREGATES and row_of(nodes[-1], scalars) is not None:
        raise context.refuse(node, f"{name} of DISTINCT rows is not supported",
                             "aggregate over a subquery with DISTINCT")
    args = () if is_star(name, nodes, distinct, node, scalars) else made_arguments(name, nodes, scalars)
    keys = sort_keys(order, scalars)
    if name in LISTS and not keys and not distinct:
        keys = scalars.scopes[0].order
    direct = () if within is None else tuple(nodes)
    if direct:
        args = tuple(map(marked, args))
    with context.at(node):
        if name in HYPOTHETICAL:
            keys = tuple(replace(key, expr=ordered_value(key.expr)) for key in keys)
            calls, value = hypothetical(name, args, keys, condition)
            return Aggregated(calls, value, direct)
        call = resolve_aggregate(name, args, distinct=distinct, condition=condition, order=keys,
                                 defined=context.schema.aggregate(name))
        return Aggregated((call,), lambda columns: finished(name, result_of(call, columns[0]), call.args), direct)


def _count_of(row: Row, distinct: bool, condition: Expr | None, scalars: Scalars) -> AggregateCall:
    """count(t), count(DISTINCT (a, b)): of the rows that are there, whatever their members are."""
    conditions = [] if condition is None else [condition]
    if row.there is not None:
        conditions.append(scalars.value(row.there))
    call = resolve_aggregate("count", (), condition=resolve("and", tuple(conditions)) if conditions else None)
    if not distinct:
        return call
    values = [part for value in scalars.values(row.members) for part in never_null(known(value))]
    return replace(call, args=tuple(values), distinct=True)


def arguments(call: exp.Expr) -> tuple[list[exp.Expr], list[exp.Ordered], bool]:
    """The arguments of a call, its ORDER BY, and whether it has DISTINCT."""
    nodes, order, distinct = list(call.expressions), [], False
    if nodes and isinstance(nodes[-1], exp.Order):
        last = nodes.pop()
        order = last.expressions
        nodes += [last.this] if last.this is not None else []
    if nodes and isinstance(nodes[0], exp.Distinct):
        distinct, nodes = True, [*nodes[0].expressions, *nodes[1:]]
    return nodes, order, distinct


def is_star(name: str, nodes: Sequence[exp.Expr], distinct: bool, call: exp.Expr, scalars: Scalars) -> bool:
    """Whether the call is count(*)."""
    if not any(isinstance(node, exp.Star) for node in nodes):
        if name == "count" and not nodes:
            raise scalars.context.wrong(call, "count(*) must be used to call a parameterless aggregate function")
        return False
    if name != "count" or distinct or len(nodes) != 1:
        raise scalars.context.wrong(call, f"{name}(*) is not an aggregate", "name the column")
    return True


def sort_keys(order: Sequence[exp.Ordered], scalars: Scalars) -> tuple[SortKey, ...]:
    """The keys of an ORDER BY, as expressions; a number is a constant here, not the position of an output."""
    return tuple(sort_key(node, order_of(scalars.value(node.this)), scalars) for node in expanded_order(order, scalars))


def sort_key(node: exp.Ordered, value: Expr, scalars: Scalars) -> SortKey:
    """One key of an order."""
    only(node, scalars.context.sql, "ORDER BY", ("this", "desc", "nulls_first"))
    return SortKey(value, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

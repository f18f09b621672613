"""Gives intervals' lengths as keys: 1 month and 30 days are equal, but they look different.

A collection tells rows apart by their looks, so a row with 30 days does not cancel one with a month. A key must not. So
where intervals are the keys of groups, partitions or DISTINCT, the keys are the numbers of their microseconds, with 30
days in a month and 24 hours in a day. A comparison of intervals has these numbers from the binder. A group shows the
least of its keys: of equal ones the one with the fewest months, then with the fewest days.

Wrong: to store one form of all equal intervals. `date '2024-02-01' + x` is not the same for a month and for 30 days.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions import length_of, render
from halfjoin.sql.relation import Aggregate, AggregateCall, Project, Relation, TopK, UserReduce, Window, with_inputs
from halfjoin.sql.types import Kind, looks_vary


def by_length(relation: Relation, aliases: Aliases) -> Relation:
    """The same rows, from a relation without intervals as keys.

    Raises:
        UnsupportedSQL: an interval is a key of one's own reduce, or it is in an array that is a key; or an aggregate
            of different intervals has to choose between equal ones.
    """
    relation = with_inputs(relation, lambda below: by_length(below, aliases))
    match relation:
        case Aggregate(input, keys, calls):
            calls = tuple((column, _called(call)) for column, call in calls)
            if not any(looks_vary(expr.type) for _, expr in keys):
                return replace(relation, calls=calls) if calls != relation.calls else relation
            return _grouped(Aggregate(input, keys, calls), aliases)
        case TopK(partition=partition) | Window(partition=partition) if any(looks_vary(e.type) for e in partition):
            return replace(relation, partition=tuple(map(_key, partition)))
        case UserReduce(keys=keys) if any(looks_vary(expr.type) for _, expr in keys):
            raise UnsupportedSQL("PARTITION BY an interval", remedy="take its length: extract(epoch from ...)")
        case _:
            return relation


def _key(expr: Expr) -> Expr:
    """What stands for an expression as a key."""
    if expr.type.kind is Kind.INTERVAL:
        return length_of(expr)
    if looks_vary(expr.type):
        raise UnsupportedSQL(f"{render(expr)} has intervals inside, so it cannot be a key",
                             remedy="compare it as text: ...::text")  # fmt: skip
    return expr


def _grouped(relation: Aggregate, aliases: Aliases) -> Project:
    """The groups by their keys' lengths, with the least of the intervals of each."""
    alias = f"={aliases.fresh('length')}"  # no user can write this name
    keys, least, shown = list[tuple[Column, Expr]](), list[tuple[Column, AggregateCall]](), list[tuple[Column, Expr]]()
    for number, (column, expr) in enumerate(relation.keys):
        key = _key(expr)
        if key is expr:
            keys.append((column, expr))
            shown.append((column, column))
            continue
        own = Column(f"{alias}.key{number}", expr.type, column.nullable)
        keys.append((Column(f"{alias}.{number}", key.type, column.nullable), key))
        least.append((own, AggregateCall("min", (expr,), expr.type)))
        shown.append((column, own))
    shown += [(column, column) for column, _ in relation.calls]
    return Project(Aggregate(relation.input, tuple(keys), (*relation.calls, *least)), tuple(shown))


def _called(call: AggregateCall) -> AggregateCall:
    """The aggregate, where DISTINCT counts lengths."""
    if not _varies(call.args) and not (call.function == "mode" and _varies([key.expr for key in call.order])):
        return call
    if call.function == "count" and call.distinct:
        return replace(call, args=tuple(map(_key, call.args)))
    if call.function == "mode" or (call.distinct and call.function in ("sum", "avg")):
        raise UnsupportedSQL(f"{call.function}{' of DISTINCT intervals' if call.distinct else ' of intervals'}: equal "
                             "intervals can look different", remedy="take their lengths: extract(epoch from ...)")
    return call


def _varies(exprs: Sequence[Expr]) -> bool:
    return any(looks_vary(expr.type) for expr in exprs)

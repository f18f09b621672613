"""What a relation reads: its expressions, and the columns of outer queries among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from halfjoin.sql.expr import Column, Expr, walk
from halfjoin.sql.relation import (
    Aggregate,
    Filter,
    Outer,
    Project,
    Relation,
    Semi,
    SortKey,
    TableFunction,
    TopK,
    UserReduce,
    Values,
    Window,
    inputs_below,
    parts_inside,
)


def outer_columns(relation: Relation) -> dict[str, Column]:
    """The columns of outer queries that a relation reads, its loops included."""
    found: dict[str, Column] = {}
    for part in parts_inside(relation):
        there = {column.name for below in inputs_below(part) for column in below.columns}
        there |= {column.name for column in part.columns} if isinstance(part, TableFunction) else set()
        for expr in expressions(part):
            found |= {node.name: node for node in walk(expr) if isinstance(node, Column) and node.name not in there}
    inside = {column.name for part in parts_inside(relation) for column in part.columns}
    return {name: column for name, column in found.items() if name not in inside}


def expressions(relation: Relation) -> Iterator[Expr]:
    """The expressions of a relation itself."""
    found: list[Expr] = []

    def note(expr: Expr) -> Expr:
        found.append(expr)
        return expr

    changed(relation, note)
    yield from found


def changed(relation: Relation, change: Callable[[Expr], Expr]) -> Relation:
    """The relation with its own expressions changed, not those of its inputs."""

    def keys(order: Iterable[SortKey]) -> tuple[SortKey, ...]:
        return tuple(replace(key, expr=change(key.expr)) for key in order)

    match relation:
        case Values(rows=rows):
            return replace(relation, rows=tuple(tuple(map(change, row)) for row in rows))
        case TableFunction(args=args):
            return replace(relation, args=tuple(map(change, args)))
        case Filter(predicate=predicate):
            return replace(relation, predicate=change(predicate))
        case Project(items=items):
            return replace(relation, items=tuple((column, change(expr)) for column, expr in items))
        case Aggregate(keys=by, calls=calls):
            made = tuple((column, replace(call, args=tuple(map(change, call.args)), order=keys(call.order),
                                          condition=call.condition and change(call.condition)))
                         for column, call in calls)  # fmt: skip
            return replace(relation, keys=tuple((column, change(expr)) for column, expr in by), calls=made)
        case Window(partition=partition, order=order, calls=called):
            own = tuple((column, replace(call, args=tuple(map(change, call.args)),
                                         condition=call.condition and change(call.condition)))
                        for column, call in called)  # fmt: skip
            return replace(relation, partition=tuple(map(change, partition)), order=keys(order), calls=own)
        case TopK(partition=partition, order=order):
            return replace(relation, partition=tuple(map(change, partition)), order=keys(order))
        case UserReduce(keys=by, takes=takes, order=order):
            return replace(relation, keys=tuple((column, change(expr)) for column, expr in by), order=keys(order),
                           takes=tuple((name, change(expr)) for name, expr in takes))  # fmt: skip
        case Outer(on=on) | Semi(on=on):
            return replace(relation, on=change(on))
        case _:
            return relation

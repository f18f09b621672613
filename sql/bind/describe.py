"""Prints a bound relation as an indented tree, for tests to compare."""

from __future__ import annotations

from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions import render
from halfjoin.sql.relation import (
    Aggregate,
    AggregateCall,
    Bound,
    Fed,
    Filter,
    Frame,
    Join,
    Loop,
    Once,
    Outer,
    Project,
    Relation,
    Scan,
    Semi,
    SortKey,
    TableFunction,
    TopK,
    UnionAll,
    UserReduce,
    Values,
    Window,
    WindowCall,
    call_of,
    inputs_below,
)


def describe(relation: Relation, types: bool = False) -> str:
    """The tree, one operator a line, inputs indented; `types` adds the type of every named column."""
    return "\n".join(_lines(relation, types))


def _lines(relation: Relation, types: bool, depth: int = 0) -> list[str]:
    lines = ["  " * depth + _line(relation, types)]
    for item in inputs_below(relation):
        lines += _lines(item, types, depth + 1)
    return lines


def _line(relation: Relation, types: bool) -> str:
    match relation:
        case Scan(collection=collection, alias=alias):
            return f"Scan {collection}" + (f" as {alias}" if alias != collection else "")
        case Values(rows=rows):
            shown = ", ".join(f"({', '.join(map(render, row))})" for row in rows)
            return f"Values {shown}" + _as(relation.columns, types)
        case Join():
            return "Join"
        case TableFunction(_, function, _, args, outputs, ordinality, calls):
            columns = outputs + ((ordinality,) if ordinality else ())
            return f"TableFunction {render(call_of(function, args, calls))}" + _as(columns, types)
        case Filter(predicate=predicate):
            return f"Filter {render(predicate)}"
        case Project(items=items):
            return "Project " + ", ".join(f"{_column(column, types)} = {render(expr)}" for column, expr in items)
        case UnionAll(columns=columns):
            return "UnionAll" + _as(columns, types)
        case Aggregate(keys=keys, calls=aggregates):
            return "Aggregate " + ", ".join([
                *(f"{_column(column, types)} = {render(expr)}" for column, expr in keys),
                *(f"{_column(column, types)} = {_aggregate(call)}" for column, call in aggregates)])
        case Window(partition=partition, order=order, calls=calls):
            shown = ", ".join(f"{_column(column, types)} = {_window(call)}" for column, call in calls)
            return f"Window {shown}" + _over(partition, order)
        case TopK(partition=partition, order=order, limit=limit, offset=offset, with_ties=with_ties):
            return (f"TopK {'all' if limit is None else limit}" + " with ties" * with_ties
                    + (f" offset {offset}" if offset else "") + _over(partition, order))
        case UserReduce(_, function, keys, takes, order, outputs):
            seen = ", ".join(f"{name} = {render(expr)}" for name, expr in takes)
            return f"Reduce {function}({seen})" + _over(tuple(e for _, e in keys), order) + _as(relation.columns, types)
        case Outer(on=on, full=full):
            return f"{'Full' if full else 'Left'} {render(on)}"
        case Semi(on=on, anti=anti):
            return f"{'Anti' if anti else 'Semi'} {render(on)}"
        case Fed(loop, number, before, alias):
            return f"Fed {loop}.{number}{' before' * before} as {alias}"
        case Once():
            return "Once"
        case Loop(name, bindings, number=number):
            return f"Loop {name}.{bindings[number].name}"


def _aggregate(call: AggregateCall) -> str:
    inside = ", ".join(map(render, call.args)) or "*" * (call.function == "count")
    order = f" order by {_keys(call.order)}" if call.order else ""
    condition = f" where {render(call.condition)}" if call.condition else ""
    return f"{call.function}({'distinct ' * call.distinct}{inside}{order}){condition}"


def _window(call: WindowCall) -> str:
    shown = f"{call.function}({', '.join(map(render, call.args))})" + " ignore nulls" * call.ignore_nulls
    if call.condition:
        shown += f" where {render(call.condition)}"
    if (frame := call.frame) != Frame():
        shown += f" {frame.unit} {_end(frame.start)} to {_end(frame.end)}"
        shown += f" exclude {frame.exclude}" if frame.exclude != "no others" else ""
    return shown


def _end(bound: Bound) -> str:
    if bound.kind == "current row":
        return bound.kind
    return f"{render(bound.offset) if bound.offset else 'unbounded'} {bound.kind}"


def _over(partition: tuple[Expr, ...], order: tuple[SortKey, ...]) -> str:
    shown = f" partition by {', '.join(map(render, partition))}" if partition else ""
    return shown + (f" order by {_keys(order)}" if order else "")


def _keys(order: tuple[SortKey, ...]) -> str:
    return ", ".join(render(key.expr) + " desc" * key.descending
                     + (f" nulls {'first' if key.nulls_first else 'last'}" if key.nulls_first != key.descending else "")
                     for key in order)


def _as(columns: tuple[Column, ...], types: bool) -> str:
    return f" as ({', '.join(_column(column, types) for column in columns)})" if columns else ""


def _column(column: Column, types: bool) -> str:
    return f"{column.name} {column.type}" if types else column.name

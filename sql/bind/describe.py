"""Prints a bound relation as an indented tree, for tests to compare."""

from __future__ import annotations

from halfjoin.sql.expr import Column
from halfjoin.sql.functions import render
from halfjoin.sql.relation import Filter, Join, Outer, Project, Relation, Scan, Semi, TableFunction, UnionAll, Values


def describe(relation: Relation, types: bool = False) -> str:
    """The tree, one operator a line, inputs indented; `types` adds the type of every named column."""
    return "\n".join(_lines(relation, types))


def _lines(relation: Relation, types: bool, depth: int = 0) -> list[str]:
    lines = ["  " * depth + _line(relation, types)]
    match relation:
        case Join(inputs=inputs) | UnionAll(inputs=inputs):
            below: tuple[Relation, ...] = inputs
        case Outer(left=left, right=other) | Semi(input=left, other=other):
            below = (left, other)
        case TableFunction(input=one) | Filter(input=one) | Project(input=one):
            below = (one,)
        case _:
            below = ()
    for item in below:
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
        case TableFunction(function=function, args=args, outputs=outputs, ordinality=ordinality):
            columns = outputs + ((ordinality,) if ordinality else ())
            return f"TableFunction {function}({', '.join(map(render, args))})" + _as(columns, types)
        case Filter(predicate=predicate):
            return f"Filter {render(predicate)}"
        case Project(items=items):
            return "Project " + ", ".join(f"{_column(column, types)} = {render(expr)}" for column, expr in items)
        case UnionAll(columns=columns):
            return "UnionAll" + _as(columns, types)
        case Outer(on=on, full=full):
            return f"{'Full' if full else 'Left'} {render(on)}"
        case Semi(on=on, anti=anti):
            return f"{'Anti' if anti else 'Semi'} {render(on)}"
        case _:
            return type(relation).__name__


def _as(columns: tuple[Column, ...], types: bool) -> str:
    return f" as ({', '.join(_column(column, types) for column in columns)})" if columns else ""


def _column(column: Column, types: bool) -> str:
    return f"{column.name} {column.type}" if types else column.name

"""Queries: conditions on the keys of groups go below the groups, so that only groups that are asked for are made.

A query over a view with GROUP BY often asks for one group. A view does not profit: it shares the groups with other
views. A group's rows have equal keys, and a comparison with a constant does not tell equal values apart, so a condition
holds for all rows of a group or for none. The same is true of the partitions of window functions and of LIMIT.

Nothing below may fail: an error of another group is an error of the query, as it is one of a view with the same SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from halfjoin.sql.bind.reading import expressions
from halfjoin.sql.expr import Call, Column, Expr, Literal, columns_of, conjunction, conjuncts, is_temporal, substitute
from halfjoin.sql.functions.fallible import fallible
from halfjoin.sql.relation import (
    Aggregate,
    Filter,
    Join,
    Outer,
    Project,
    Relation,
    Scan,
    Semi,
    TopK,
    UnionAll,
    Window,
    every_part,
    with_inputs,
)

_COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">=", "in", "is null"))
_SUMS = frozenset(("count", "sum", "avg", "min", "max"))  # what fails of these fails above the groups
_RANKS = frozenset(("row_number", "rank", "dense_rank"))
Checked = Callable[[str], bool]  # whether a table or view has no row fewer than no times, as its key tells


def below_groups(relation: Relation, checked: Checked) -> Relation:
    """The same query with conditions on keys below the groups."""
    relation = with_inputs(relation, lambda one: below_groups(one, checked))
    if not isinstance(relation, Filter):
        return relation
    input, left = relation.input, list[Expr]()
    for condition in conjuncts(relation.predicate):
        lowered = _lowered(condition, input, checked) if _compares(condition) else None
        if lowered is None:
            left.append(condition)
        else:
            input = lowered
    if input is relation.input:
        return relation
    return Filter(input, conjunction(tuple(left))) if left else input


def _compares(condition: Expr) -> bool:
    """Whether it is a comparison of a column with constants."""
    return (isinstance(condition, Call) and condition.function in _COMPARISONS and len(columns_of(condition)) == 1
            and all(isinstance(arg, Column | Literal) for arg in condition.args))  # fmt: skip


def _lowered(condition: Expr, relation: Relation, checked: Checked) -> Relation | None:
    """The relation with a condition on its rows below its groups; None: it does not get there."""
    (name,) = columns_of(condition)
    match relation:
        case Filter(input):
            lowered = _lowered(condition, input, checked)
            return None if lowered is None else replace(relation, input=lowered)
        case Project(input, items):
            expr = next(expr for column, expr in items if column.name == name)
            if not isinstance(expr, Column):
                return None
            lowered = _lowered(substitute(condition, {name: expr}), input, checked)
            return None if lowered is None else replace(relation, input=lowered)
        case Aggregate(input, keys):
            key = next((expr for column, expr in keys if column.name == name), None)
            if key is None or not _is_safe(relation, checked):
                return None
            return replace(relation, input=_with(substitute(condition, {name: key}), input, checked))
        case Window(input, partition) | TopK(input, partition):
            names = [expr.name for expr in partition if isinstance(expr, Column)]
            if name not in names or not _is_safe(relation, checked):
                return None
            return replace(relation, input=_with(condition, input, checked))
        case UnionAll(inputs, columns):
            place = [column.name for column in columns].index(name)
            named = [substitute(condition, {name: one.columns[place]}) for one in inputs]
            found = [_lowered(part, one, checked) for part, one in zip(named, inputs, strict=True)]
            if all(one is None for one in found):
                return None
            return replace(relation, inputs=tuple(
                Filter(one, part) if made is None else made
                for made, part, one in zip(found, named, inputs, strict=True)))  # fmt: skip
        case _:
            return None


def _with(condition: Expr, relation: Relation, checked: Checked) -> Relation:
    """The relation's rows that meet a condition."""
    lowered = _lowered(condition, relation, checked) if _compares(condition) else None
    return Filter(relation, condition) if lowered is None else lowered


def _is_safe(relation: Relation, checked: Checked) -> bool:
    """Whether no row or group in it can be an error."""
    for part in every_part(relation):
        match part:
            case Scan(collection):
                if not checked(collection):
                    return False
            case Aggregate(_, _, calls):
                if any(call.function not in _SUMS or call.order for _, call in calls):
                    return False
            case Window(_, _, _, calls):
                if any(call.function not in _RANKS for _, call in calls):
                    return False
            case Filter() | Join() | Outer() | Project() | Semi() | TopK() | UnionAll():
                pass
            case _:
                return False
        if any(is_temporal(expr) or fallible(expr) for expr in expressions(part)):
            return False
    return True

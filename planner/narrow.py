"""Leaves out the columns of looked-up sides that nothing reads, since a side that becomes a node keeps its columns."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from halfjoin.planner.below_groups import may_fail
from halfjoin.planner.reduces.same_rows import over_the_same
from halfjoin.sql.bind.reading import expressions
from halfjoin.sql.expr import Column, Expr, columns_of
from halfjoin.sql.functions.fallible import fallible
from halfjoin.sql.relation import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    Outer,
    Project,
    Relation,
    Semi,
    TableFunction,
    TopK,
    Window,
    WindowCall,
    every_part,
    with_inputs,
)

_Call = TypeVar("_Call", AggregateCall, WindowCall)


def narrowed(
    relation: Relation, wanted: frozenset[str] | None = None, *, calls: bool = False,
    same: Mapping[Relation, frozenset[str]] | None = None,
) -> Relation:  # fmt: skip
    """The relation with the columns `wanted`, and perhaps others; None: all of them, in their order.

    The columns of a top-k and of a window all count, since they order rows that tie; but if nothing of the first row of
    each group is read, the groups are what there is. `calls`: of a query, also without
    aggregates and window functions that nothing reads and that cannot fail. Views keep them, and share their groups.
    `same`: what aggregates over the same join read together; they go on to read one.
    """
    if same is None:
        same = {input: frozenset[str]().union(*(columns_of(expr) for part in parts for expr in expressions(part)))
                for input, parts in over_the_same(relation).items()}  # fmt: skip
    whole = wanted is None
    wanted = frozenset(column.name for column in relation.columns) if wanted is None else wanted
    read = wanted.union(*map(columns_of, expressions(relation)))

    def below(relation: Relation, wanted: frozenset[str] | None = None) -> Relation:
        return narrowed(relation, wanted, calls=calls, same=same)

    match relation:
        case Outer(left, right):
            return replace(relation, left=below(left, read), right=_only(below(right, read), read))
        case Semi(input, other):
            return replace(relation, input=below(input, read), other=_only(below(other, read), read))
        case Join() | Filter() | TableFunction():
            return with_inputs(relation, lambda one: below(one, read))
        case Project(input, items):
            if not whole:
                items = tuple(item for item in items if item[0].name in wanted) or tuple(sorted(items, key=_reads)[:1])
            inside = frozenset[str]().union(*(columns_of(expr) for _, expr in items))
            return Project(below(input, inside), items)
        case Aggregate(input, keys, made):
            if calls and keys:
                relation = replace(relation, calls=_read(made, wanted))
            inside = frozenset[str]().union(*map(columns_of, expressions(relation)))
            inside |= same.get(input, frozenset()) if same else frozenset()
            return with_inputs(relation, lambda one: below(one, inside))
        case TopK(input, partition, limit=1, offset=0, with_ties=False) if _shows_groups(relation, wanted):
            groups = tuple((key, key) for key in partition if isinstance(key, Column))
            return Aggregate(below(input, frozenset(key.name for key, _ in groups)), groups)
        case Window(input, calls=made) if calls:
            kept = _read(made, wanted)
            return replace(relation, input=below(input), calls=kept) if kept else below(input, wanted)
        case _:
            return with_inputs(relation, below)


def _shows_groups(relation: TopK, wanted: frozenset[str]) -> bool:
    """Whether nothing is read of the first row of each group but the columns that group, and no order can fail."""
    names = {key.name for key in relation.partition if isinstance(key, Column)}
    if not names or len(names) < len(relation.partition) or not wanted <= names:
        return False
    computed = (expr for part in every_part(relation.input) if isinstance(part, Project) for _, expr in part.items)
    return not any(map(fallible, (*(key.expr for key in relation.order), *computed)))


def _reads(item: tuple[Column, Expr]) -> int:
    return len(columns_of(item[1]))


def _read(calls: Sequence[tuple[Column, _Call]], wanted: Container[str]) -> tuple[tuple[Column, _Call], ...]:
    """The calls whose columns are wanted, or that may fail."""
    return tuple((column, call) for column, call in calls if column.name in wanted or may_fail(call))


def _only(relation: Relation, names: Iterable[str]) -> Relation:
    """The relation with only these columns, or one column if it has none of them."""
    kept = tuple((column, column) for column in relation.columns if column.name in names)
    if len(kept) == len(relation.columns):
        return relation
    return Project(relation, kept or tuple((column, column) for column in relation.columns[:1]))

"""Lowers a function of groups to a reduce: the join below, the function over its columns, what stands above it.

The join below computes every key, argument, condition and sort key as a column of its own, so a reduce reads columns
only. What stands above is a projection of the reduce's output: the result of an aggregate that adds up is an ordinary
expression over the kept sums.
"""

from __future__ import annotations

from halfjoin.planner.group_functions import Aggregates, OfGroups, Own, Top, Windows
from halfjoin.planner.reduces.aggregates import aggregate
from halfjoin.planner.reduces.items import Columns, Lowered
from halfjoin.planner.reduces.own import own
from halfjoin.planner.reduces.windows import top, window
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import (
    Aggregate,
    Reduced,
    TopK,
    UserReduce,
    Window,
)


def lowered(relation: Reduced) -> Lowered:
    """The reduce of a relation.

    Raises:
        UnsupportedSQL: it reads mz_now(), which no collection can hold.
    """
    match relation:
        case Aggregate():
            return aggregate(relation)
        case Window():
            return window(relation)
        case TopK():
            return top(relation)
        case UserReduce():
            return own(relation)


def output_columns(keys: Columns, function: OfGroups, input: Columns) -> tuple[Column, ...]:
    """The columns of a reduce's output."""
    match function:
        case Aggregates(count, sums, ordered):
            return (*keys, count, *(part.column for part in sums), *(part.column for part in ordered))
        case Windows():
            return (*input, *function.results)
        case Top():
            return tuple(input)
        case Own(outputs=outputs):
            return (*keys, *(column for _, column in outputs))

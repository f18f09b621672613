"""Functions of all rows of a group, one value for each group: min, max, array_agg, percentiles, DISTINCT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.tables import NO_FUNCTIONS, Registry, group_function
from halfjoin.engine.reduce import user
from halfjoin.engine.reduce.added import added
from halfjoin.engine.reduce.arguments import Arguments, SortedValues
from halfjoin.engine.reduce.collect import array_agg, string_agg
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.percentiles import Fractions, mode, percentile_cont, percentile_disc
from halfjoin.engine.reduce.sorting import Sorted, first_rows, refine, sort
from halfjoin.engine.reduce.words import look, ordered_words
from halfjoin.engine.scalar import evaluate as scalar
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import mask_of, valid
from halfjoin.planner.group_functions import Ordered
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions.aggregates import AGGREGATES, ORDERED_SETS, decompose
from halfjoin.sql.relation import AggregateCall

_COLLECT = {"array_agg": array_agg, "string_agg": string_agg}


def evaluate(part: Ordered, groups: Groups, registry: Registry = NO_FUNCTIONS) -> pa.Array:
    """The function's value for each group, in the type of `part.column`. `registry` has the user's aggregates.

    A row counts as often as it is there; with DISTINCT, equal arguments count once. Without an ORDER BY, the rows are
    in the order of their columns, or with DISTINCT in the order of the arguments. `any_value` without an ORDER BY is
    the least value.

    Raises:
        Failed: there is no value for some groups; the mask marks them.
    """
    if part.function not in AGGREGATES:
        return _of_user(part, groups, registry)
    kind = arrow_type(part.column.type)
    subject = part.order[0].expr if part.function in ORDERED_SETS else next(iter(part.args), None)
    fractions = _fractions(part, groups) if part.function.startswith("percentile") else None
    groups = _counted(part, groups, subject)
    if part.function in ("min", "max", "any_value"):
        assert subject is not None
        return _first(part, groups, subject).cast(kind)
    by_args = None
    if part.distinct:
        groups, by_args = _distinct(part, groups)
    if part.function in _COLLECT:
        positions = by_args if by_args is not None and not part.order else sort(groups, part.order).positions
        return _COLLECT[part.function](_rows(groups.take(positions), *part.args), kind)
    if part.function in ORDERED_SETS:
        assert subject is not None
        rows = _rows(groups if groups.ordered else groups.take(sort(groups, part.order).positions), subject)
        return mode(rows).cast(kind) if part.function == "mode" else of_sorted(part, rows, fractions)
    sums = decompose(AggregateCall(part.function, part.args, part.column.type))
    assert sums is not None, f"no such aggregate: {part.function}"
    return added(sums, groups)


def _of_user(part: Ordered, groups: Groups, registry: Registry) -> pa.Array:
    """The user's aggregate: a function of all rows, or one that adds up what DISTINCT leaves."""
    if part.condition is not None:
        groups = groups.where(mask_of(groups.columns[part.condition.name]))
    for arg in part.args:
        groups = groups.where(valid(groups.values(arg)))
    if not user.adds_up(part.function, registry):
        function = group_function(part.function, registry)
        return user.of_groups(function, part.args, groups, part.order, distinct=part.distinct)
    groups, _ = _distinct(part, groups)
    try:
        lifted, sums = user.lifted(part.function, part.args, groups, registry)
    except Failed as failed:
        raise Failed.of(failed.failures(len(groups.count)).of_groups(groups.numbers), len(groups)) from None
    return user.result(part.function, [added(one, lifted) for one in sums], registry)


def _counted(part: Ordered, groups: Groups, subject: Expr | None) -> Groups:
    """Only the rows that count: FILTER's condition is true, and the value is not NULL (but array_agg takes NULLs)."""
    if part.condition is not None:
        groups = groups.where(mask_of(groups.columns[part.condition.name]))
    if subject is not None and part.function != "array_agg":
        groups = groups.where(valid(groups.values(subject)))
    return groups


def _first(part: Ordered, groups: Groups, subject: Expr) -> pa.Array:
    """The value of the first row of each group, by the call's order and by the value itself."""
    values = groups.values(subject)
    words = [word for key in part.order
             for word in ordered_words(groups.values(key.expr), key.descending, key.nulls_first)]  # fmt: skip
    words += [*ordered_words(values, descending=part.function == "max"), *look(values)]
    found = first_rows(groups.starts, words)
    return values.take(pa.array(found, mask=found < 0))


def _distinct(part: Ordered, groups: Groups) -> tuple[Groups, Any]:
    """One row for each distinct list of arguments, once; and the positions of those in the arguments' order."""
    first = np.zeros(len(groups.count), np.bool_)
    first[groups.starts[:-1][np.diff(groups.starts) > 0]] = True
    args = [groups.values(arg) for arg in part.args]
    state = Sorted(np.arange(len(first)), first)
    for arg in args:
        state = refine(state, ordered_words(arg))
    looks = refine(state, (word for arg in args for word in look(arg)))  # the least look stands for equal arguments
    found = looks.positions[state.new]
    kept = np.zeros(len(first), np.bool_)
    kept[found] = True
    numbers = np.cumsum(kept) - 1
    once = groups.where(kept)
    once = Groups(once.columns, np.ones(len(once.count), np.int64), once.starts)
    return once, numbers[found]


def _rows(groups: Groups, *args: Expr) -> Arguments:
    return Arguments(tuple(groups.values(arg) for arg in args), groups.count, groups.starts)


def _fractions(part: Ordered, groups: Groups) -> Fractions:
    """The fraction of a percentile, or its fractions. One that a column has is the same in all rows of a group."""
    (fraction,) = part.args
    if not isinstance(fraction, Column):
        return constant_fractions(part)
    firsts = pa.array(groups.starts[:-1], mask=np.diff(groups.starts) == 0)
    return groups.columns[fraction.name].take(firsts)


def constant_fractions(part: Ordered) -> Fractions:
    """The fraction of a percentile, or its fractions, if no column has them."""
    found: Fractions = scalar.compile(part.args[0]).evaluate({}, 1).values[0].as_py()
    return found


def of_sorted(part: Ordered, rows: SortedValues, fractions: Fractions) -> pa.Array:
    """The percentile of each group."""
    found = (percentile_cont if part.function == "percentile_cont" else percentile_disc)(rows, fractions)
    return found.cast(arrow_type(part.column.type))

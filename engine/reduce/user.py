"""The user's aggregates over rows at hand: whole groups, rows that DISTINCT left, or the rows of a window's frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.tables import GroupFunction, Registry, UserFunction, call_user_function, row_function
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.sorting import sort
from halfjoin.engine.reduce.words import differ, look, ordered_words
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.columns import convert
from halfjoin.engine.scalar.failures import Failed, Failures
from halfjoin.engine.updates.updates import Ints, where_true
from halfjoin.errors import InvalidRow
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions.aggregates import Decomposed, decompose_lifted
from halfjoin.sql.relation import SortKey
from halfjoin.sql.user_aggregate import lift_of, result_of


def adds_up(name: str, registry: Registry) -> bool:
    """Whether an aggregate is registered as one that adds up."""
    return lift_of(name) in registry


def lifted(name: str, args: Sequence[Expr], groups: Groups, registry: Registry) -> tuple[Groups, Sequence[Decomposed]]:
    """The groups with the columns that the aggregate's lift gives for each row, and what adds up in them.

    Raises:
        Failed: the lift fails; the mask marks the rows.
        HalfjoinError: the aggregate is not registered.
    """
    lift = row_function(lift_of(name), registry)
    made = _called(lift, [groups.values(arg) for arg in args], len(groups.count))
    columns = [Column(column, type) for column, type in lift.returns.items()]
    return Groups(dict(zip(lift.returns, made, strict=True)), groups.count, groups.starts), decompose_lifted(columns)


def result(name: str, sums: Sequence[pa.Array], registry: Registry) -> pa.Array:
    """The aggregate's values from its sums.

    Raises:
        Failed: the result fails; the mask marks the sums.
        HalfjoinError: the aggregate is not registered.
    """
    return _called(row_function(result_of(name), registry), sums, len(sums[0]))[0]


def _called(user: UserFunction, args: Sequence[pa.Array], length: int) -> Sequence[pa.Array]:
    """The columns of a function that gives one row for each row."""
    made = call_user_function(user, list(args), length)
    if made.failed is not None:
        failures = Failures.of(made.failed, "")
        failures.messages[:] = made.messages
        raise Failed.of(failures, length)
    return made.columns


def of_groups(
    user: GroupFunction, args: Sequence[Expr], groups: Groups, order: Sequence[SortKey] = (), *, distinct: bool = False
) -> pa.Array:
    """The value of each group; NULL for an empty one, for which the function is not called.

    The function sees the distinct argument rows and their counts, in the order of the sort keys, then of the arguments.
    If the keys put other rows between equal ones, those come more than once.

    Raises:
        Failed: the function fails, or returns something else than it promised; the mask marks the groups.
    """
    rows, count, starts = rows_in_order({str(number): arg for number, arg in enumerate(args)}, groups, order)
    count = np.ones_like(count) if distinct else count
    values: list[Any] = [None] * len(groups)
    failed: dict[int, str] = {}
    bounds = starts.tolist()
    for group in where_true(np.diff(starts)).tolist():
        first, last = bounds[group], bounds[group + 1]
        try:
            made = user.function(rows.slice(first, last - first), count[first:last])
        except MemoryError:
            raise
        except Exception as problem:
            failed[group] = f"aggregate {user.name} failed: {type(problem).__name__}: {problem}"
        else:
            values[group] = made.as_py() if isinstance(made, pa.Scalar) else made
    if not failed:
        try:
            return convert(user.name, "result", user.returns, values)
        except InvalidRow:  # of which group?
            failed = {group: why for group, value in enumerate(values) if (why := _invalid(user, value)) is not None}
    if not failed:  # values of several types, each of which is valid
        return pa.concat_arrays([pa.nulls(0, arrow_type(user.returns)), *(_array(user, value) for value in values)])
    failures = Failures.of(np.array(list(failed)), "")
    failures.messages[:] = list(failed.values())
    raise Failed.of(failures, len(groups))


def rows_in_order(
    args: Mapping[str, Expr], groups: Groups, order: Sequence[SortKey]
) -> tuple[pa.RecordBatch, Ints, Ints]:
    """The argument rows of all groups in order, how often each is there, and where the groups start."""
    own = {str(number): groups.values(arg) for number, arg in enumerate(args.values())}
    keys = [replace(key, expr=Column(f"key {number}", key.expr.type)) for number, key in enumerate(order)]
    by = {f"key {number}": groups.values(key.expr) for number, key in enumerate(order)}
    found = Groups({**own, **by}, groups.count, groups.starts)
    found = found.take(sort(found, keys).positions)
    values = [found.columns[name] for name in own]
    told = [found.numbers, *(word for array in values for word in (*ordered_words(array), *look(array)))]
    firsts = where_true(differ(told, len(found.count)))
    count = np.add.reduceat(found.count, firsts) if len(firsts) else found.count
    kept = pa.array(firsts)
    batch = pa.RecordBatch.from_arrays([array.take(kept) for array in values], names=list(args))
    return batch, count, np.searchsorted(firsts, found.starts)


def _array(user: GroupFunction, value: Any) -> pa.Array:
    return convert(user.name, "result", user.returns, [value])


def _invalid(user: GroupFunction, value: Any) -> str | None:
    try:
        _array(user, value)
    except InvalidRow as problem:
        return f"aggregate {user.name} returned {value!r}, which {problem.reason}"
    return None

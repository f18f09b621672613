"""Calls the user's reduces, for one group at a time or for many at once, and checks what they return.

A call for many groups that fails does not say for which. So the function is called again for half of them, and for
halves of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.tables import ReduceFunction
from halfjoin.engine.linear.tables.user import column_of, integers_of
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.updates.updates import DIFF, Ints, Updates, concat, constant, indices_of
from halfjoin.errors import DataError

GROUP = "__group"  # the number of a row's group, from 0
Made = tuple[list[Updates], dict[int, str]]  # rows with the number of their group as time; why groups fail


class Given(NamedTuple):
    """The rows of all groups in order, with their counts, and where the groups start."""

    rows: pa.RecordBatch
    starts: Ints

    def one(self, group: int) -> pa.RecordBatch:
        """The rows of a group."""
        return self.rows.slice(self.starts[group], self.starts[group + 1] - self.starts[group])

    def several(self, groups: Ints) -> pa.RecordBatch:
        """The rows of several groups, with the place of the row's group among them."""
        first, sizes = self.starts[groups], self.starts[groups + 1] - self.starts[groups]
        numbers = np.repeat(np.arange(len(groups)), sizes)
        places = np.arange(len(numbers)) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
        return self.rows.take(indices_of(places)).append_column(GROUP, pa.array(numbers))


def called(user: ReduceFunction, given: Given, due: Ints) -> tuple[Updates, dict[int, str]]:
    """What the function returns for the groups `due`: its rows, each with the number of its group as the time; and the
    groups for which it fails, with the reasons."""
    made, failed = (_together if user.vectorised else _one_by_one)(user, given, due)
    none = {name: pa.nulls(0, arrow_type(type)) for name, type in user.returns.items()}
    return concat([Updates(none, constant(0, 0), constant(0, 0)), *made]), failed


def _together(user: ReduceFunction, given: Given, due: Ints) -> Made:
    made, failed = list[Updates](), dict[int, str]()
    waiting = [due] if len(due) else []
    while waiting:
        groups = waiting.pop()
        try:
            result = _result(user, given.several(groups))
            if not len(result):
                continue
            numbers = integers_of(user, result, GROUP)
            if numbers.min() < 0 or numbers.max() >= len(groups):
                raise DataError(f"{user} gave {GROUP} outside 0..{len(groups) - 1}")
            made.append(_rows(user, result, groups[numbers]))
        except DataError as problem:
            if len(groups) == 1:
                failed[int(groups[0])] = str(problem)
            else:
                waiting += np.array_split(groups, 2)
    return made, failed


def _one_by_one(user: ReduceFunction, given: Given, due: Ints) -> Made:
    """Results of the same columns are checked together, which takes less time than one by one."""
    results, failed = dict[int, pa.Table](), dict[int, str]()
    for group in due.tolist():
        try:
            result = _result(user, given.one(group))
            if len(result):
                results[group] = result
        except DataError as problem:
            failed[group] = str(problem)
    tables = list(results.values())
    if all(table.schema.equals(tables[0].schema) for table in tables):
        try:
            return ([_of_groups(user, list(results), tables)] if tables else []), failed
        except DataError:  # of which group?
            pass
    made = list[Updates]()
    for group, table in results.items():
        try:
            made.append(_of_groups(user, [group], [table]))
        except DataError as problem:
            failed[group] = str(problem)
    return made, failed


def _of_groups(user: ReduceFunction, groups: Sequence[int], tables: Sequence[pa.Table]) -> Updates:
    """The results for groups as rows."""
    return _rows(user, pa.concat_tables(tables), np.repeat(groups, [len(table) for table in tables]))


def _result(user: ReduceFunction, rows: pa.RecordBatch) -> pa.Table:
    """What the function returns. No rows need no columns: `RecordBatch.from_pylist([])` has none.

    Raises:
        DataError: it raises, or returns other columns than it promised.
    """
    try:
        made = user.function(rows)
    except MemoryError:
        raise
    except Exception as problem:
        raise DataError(f"{user} failed: {type(problem).__name__}: {problem}") from problem
    if not isinstance(made, (pa.RecordBatch, pa.Table)):
        raise DataError(f"{user} must return a RecordBatch, not a {type(made).__name__}")
    names, wanted = made.schema.names, [*user.returns, *([GROUP] if user.vectorised else [])]
    if (names and sorted(set(names) - {DIFF}) != sorted(wanted)) or len(set(names)) < len(names):
        raise DataError(f"{user} returned the columns ({', '.join(names)}) instead of ({', '.join(wanted)})")
    return pa.Table.from_batches([made]) if isinstance(made, pa.RecordBatch) else made


def _rows(user: ReduceFunction, made: pa.Table, groups: Ints) -> Updates:
    """The rows that the function returns.

    Raises:
        DataError: a value has another type than promised, or a count is NULL.
    """
    columns = {name: column_of(user, made, name, kind) for name, kind in user.returns.items()}
    count = integers_of(user, made, DIFF) if DIFF in made.schema.names else constant(1, len(made))
    return Updates(columns, groups, count)

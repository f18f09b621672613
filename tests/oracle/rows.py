"""Multisets of rows, in which tests compare contents and changes."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

import pyarrow as pa

Bag: TypeAlias = "Counter[tuple[Any, ...]]"
Update: TypeAlias = tuple[tuple[Any, ...], int, int]  # row, time, diff


def hashable(row: Iterable[Any]) -> tuple[Any, ...]:
    """A row whose arrays are tuples, and whose times with a zone are UTC without one."""
    return tuple(_hashable(value) for value in row)


def _hashable(value: Any) -> Any:
    if isinstance(value, list | tuple) and not isinstance(value, pa.MonthDayNano):
        return hashable(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    return value


def tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows in order."""
    columns = [column.to_pylist() for column in table.columns]
    return [hashable(row) for row in zip(*columns, strict=True)] if columns else [()] * table.num_rows


def bag(table: pa.Table) -> Bag:
    """Rows of a table, counted; a `__diff` column gives the counts."""
    if "__diff" not in table.column_names:
        return Counter(tuples(table))
    counts = table.column("__diff").to_pylist()
    total: Bag = Counter()
    for row, count in zip(tuples(table.drop_columns(["__diff"])), counts, strict=True):
        total[row] += count
    return nonzero(total)


def updates(table: pa.Table) -> list[Update]:
    """Rows of a change table with their `__time` and `__diff`."""
    rows = tuples(table.drop_columns(["__time", "__diff"]))
    times, diffs = table.column("__time").to_pylist(), table.column("__diff").to_pylist()
    return list(zip(rows, times, diffs, strict=True))


def changes(applied: Any, view: str) -> list[Update]:
    """The changes of a view by a batch. A view that did not change may be missing."""
    return updates(applied.diffs[view]) if view in applied.diffs else []


def summed(history: Iterable[Update], time: int) -> Bag:
    """The contents that the updates up to `time` add up to."""
    total: Bag = Counter()
    for row, at, diff in history:
        if at <= time:
            total[row] += diff
    return nonzero(total)


def nonzero(counts: Bag) -> Bag:
    """The counts that are not zero."""
    return Counter({row: count for row, count in counts.items() if count})

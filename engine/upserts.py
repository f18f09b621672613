"""Upserts: of several rows with one key and time the last stays, so what the others say does not count."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfjoin.engine.consolidate import groups
from halfjoin.engine.updates import Ints
from halfjoin.sql.errors import InvalidRow

if TYPE_CHECKING:
    from halfjoin.catalog.models import Table
    from halfjoin.engine.rows import Submitted


def latest(table: Table, rows: Submitted) -> Submitted:
    """Only the upserts that stay, in some order; all else as it is."""
    if not rows.upsert or rows.length < 2:
        return rows
    keys = groups([rows.columns[name] for name in table.primary_key], rows.length)
    time = np.zeros(rows.length, np.int64) if rows.time is None else rows.time
    last = last_of_each(keys, time)
    columns = {name: column.take(pa.array(last)) for name, column in rows.columns.items()}
    return replace(
        rows,
        columns=columns,
        length=len(last),
        time=None if rows.time is None else rows.time[last],
        diff=None if rows.diff is None else rows.diff[last],
    )


def last_of_each(keys: Ints, time: Ints) -> Ints:
    """Positions of the last of the rows with one key and time, sorted by key and time."""
    order = np.lexsort((np.arange(len(keys)), time, keys))
    last = np.ones(len(order), np.bool_)
    last[:-1] = (keys[order][1:] != keys[order][:-1]) | (time[order][1:] != time[order][:-1])
    positions: Ints = order[last]
    return positions


def refuse_unordered(table: Table, rows: Submitted) -> None:
    """For rows that came without an order: which of two upserts is the last cannot be told.

    Raises:
        InvalidRow: a key comes twice.
    """
    stay = latest(table, rows)
    if stay.length < rows.length:
        raise InvalidRow(
            f"{table.name}: {rows.length - stay.length} rows have a key that comes again, and the rows of a Spark "
            "DataFrame have no order that says which is the last; keep one row for each key, or give them as an Arrow "
            "table in their order"
        )

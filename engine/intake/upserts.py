"""Merges upserts with the same key and time: the last row stays, and earlier rows give the columns it does not name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfjoin.engine.updates.consolidate import groups
from halfjoin.engine.updates.updates import Ints, Mask
from halfjoin.errors import InvalidRow

if TYPE_CHECKING:
    from halfjoin.catalog.models import Table
    from halfjoin.engine.intake.rows import Submitted


def latest(table: Table, rows: Submitted) -> Submitted:
    """Only the upserts that stay, in some order. Rows that are not upserts come back unchanged."""
    if not rows.upsert or rows.length < 2:
        return rows
    keys = groups([rows.columns[name] for name in table.primary_key], rows.length)
    time = np.zeros(rows.length, np.int64) if rows.time is None else rows.time
    order, ends = _in_order(keys, time)
    last = order[ends]
    columns = {name: column.take(pa.array(last)) for name, column in rows.columns.items()}
    unnamed, first = dict[str, Mask](), np.concatenate([[True], ends[:-1]])
    for missing, names in by_mask(rows.unnamed):
        said = last_named(first, ~missing[order])[ends]
        lacking, source = said < 0, pa.array(np.where(said < 0, last, order[said]))
        columns |= {name: rows.columns[name].take(source) for name in names}
        if lacking.any():
            unnamed |= dict.fromkeys(names, lacking)
    return replace(
        rows,
        columns=columns,
        unnamed=unnamed,
        length=len(last),
        time=None if rows.time is None else rows.time[last],
        diff=None if rows.diff is None else rows.diff[last],
    )


def last_of_each(keys: Ints, time: Ints) -> Ints:
    """The position of the last row of each key and time, sorted by key and time."""
    order, last = _in_order(keys, time)
    positions: Ints = order[last]
    return positions


def _in_order(keys: Ints, time: Ints) -> tuple[Ints, Mask]:
    """Positions sorted by key, time and the rows' order; and the mask of the last position of each key and time."""
    order = np.lexsort((np.arange(len(keys)), time, keys))
    last = np.ones(len(order), np.bool_)
    last[:-1] = (keys[order][1:] != keys[order][:-1]) | (time[order][1:] != time[order][:-1])
    return order, last


def last_named(first: Mask, named: Mask) -> Ints:
    """For each position, the last `named` position of its group up to it, or -1. `first` marks the start of groups.

    >>> last_named(np.array([True, False, False, True]), np.array([False, True, False, False])).tolist()
    [-1, 1, 1, -1]
    """
    positions = np.arange(len(first))
    found = np.maximum.accumulate(np.where(named, positions, -1))
    begins = np.maximum.accumulate(np.where(first, positions, 0))
    sources: Ints = np.where(found >= begins, found, -1)
    return sources


def by_mask(unnamed: Mapping[str, Mask]) -> list[tuple[Mask, list[str]]]:
    """The columns of each mask, since those that no row names often share one."""
    found = dict[int, tuple[Mask, list[str]]]()
    for name, mask in unnamed.items():
        found.setdefault(id(mask), (mask, []))[1].append(name)
    return list(found.values())


def refuse_unordered(table: Table, rows: Submitted) -> None:
    """Refuse upserts without an order that repeat a key: nobody can tell which of two upserts is the last.

    Raises:
        InvalidRow: a key comes twice at the same time.
    """
    stay = latest(table, rows)
    if stay.length < rows.length:
        raise InvalidRow(
            f"{rows.length - stay.length} rows have a key that comes again, and the rows of a Spark DataFrame have no "
            "order, so none of them is the last",
            remedy="keep one row for each key, or submit an Arrow table with the rows in order", table=table.name,
        )  # fmt: skip

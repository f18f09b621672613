"""Fills in the columns that upserts and deletions do not name, from the table's row with the same key.

If an upsert leaves a column out, the column keeps its value. The value comes from an earlier upsert of the same key in
the batch, or else from the table's row at that time. A deletion that names only its key deletes the row with that key.

A row whose key was changed takes the values that it does not name from the row of its old key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.run import Run
from halfjoin.engine.intake.primary_key import PrimaryKey
from halfjoin.engine.intake.upserts import by_mask, last_named
from halfjoin.engine.scalar.cells import cell
from halfjoin.engine.updates.consolidate import groups
from halfjoin.engine.updates.updates import Ints, Mask, Updates, gathered
from halfjoin.errors import InvalidRow


def filled(
    key: PrimaryKey, candidates: Sequence[Run], rows: Updates, unnamed: Mapping[str, Mask], moved: Ints | None = None,
    *, upsert: bool,
) -> Updates:  # fmt: skip
    """The rows with a value in each column. `unnamed` has, by column, the mask of the rows that do not name it. `moved`
    has for each row the position of the row of its old key, or -1.

    The table's row is looked up in `candidates`, at the time of the key's first row only. If the table has later
    changes of the key, the batch is refused (`PrimaryKey.check`).

    Raises:
        InvalidRow: an upsert adds a new row and does not name a column that is NOT NULL.
    """
    numbers = groups([rows.columns[name] for name in key.table.primary_key], len(rows))
    order = np.lexsort((np.arange(len(rows)), rows.time, numbers))
    first = np.ones(len(rows), np.bool_)
    first[1:] = numbers[order][1:] != numbers[order][:-1]
    begins = rows.take(order[first])
    there = key.there(candidates, begins)
    beside = _partners(key, begins, there)[np.cumsum(first) - 1]  # for each row in order, its row of `there` or -1
    required = {column.name for column in key.table.columns if column.not_null} if upsert else set[str]()
    columns = dict[str, pa.Array]()
    for missing, names in by_mask(unnamed):
        coming = missing if moved is None else missing & (moved < 0)
        said = last_named(first, ~coming[order])
        source = np.where(said >= 0, order[said], np.where(beside >= 0, len(rows) + beside, -1))
        taken = np.empty(len(rows), np.int64)
        taken[order] = source
        if moved is not None:
            taken = _followed(taken, missing & (moved >= 0), moved)
        lost = (taken < 0) & (rows.diff > 0)
        if not required.isdisjoint(names) and lost.any():
            row = int(lost.argmax())
            values = {part: cell(rows.columns[part], row) for part in key.table.primary_key}
            raise InvalidRow("is new and does not name the column, which is NOT NULL", table=key.table.name,
                             column=next(name for name in names if name in required), key=values)  # fmt: skip
        both = {name: pa.concat_arrays([rows.columns[name], there.columns[name]]) for name in names}
        columns |= gathered(both, pa.array(taken, mask=taken < 0))
    return rows.with_columns(columns)


def _followed(taken: Ints, moving: Mask, moved: Ints) -> Ints:
    """Where each row's value comes from, if rows that are `moving` have that of the row that they were `moved` from.

    Each step goes twice as far back.
    """
    length, before = len(taken), np.where(moving, moved, taken)
    while True:
        inside = (before >= 0) & (before < length)
        further = np.where(inside, before[np.where(inside, before, 0)], before)
        if (further == before).all():
            return further
        before = further


def _partners(key: PrimaryKey, rows: Updates, there: Updates) -> Ints:
    """For each of `rows`, the position in `there` of the row with its key, or -1. Neither repeats a key."""
    keys = [pa.concat_arrays([rows.columns[name], there.columns[name]]) for name in key.table.primary_key]
    numbers = groups(keys, len(rows) + len(there))
    found = np.full(len(rows) + len(there), -1)
    found[numbers[len(rows) :]] = np.arange(len(there))
    partners: Ints = found[numbers[: len(rows)]]
    return partners

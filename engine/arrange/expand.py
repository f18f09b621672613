"""Expands contents to the rows that a table shows: each row once per copy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from halfjoin.engine.scalar.bounds import sizes
from halfjoin.engine.scalar.cells import cell
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import ARRAY_BYTES, Updates, concat, where_true
from halfjoin.errors import DataError

CHUNKED = 1 << 16  # rows; fewer are copied into one chunk


def expand(updates: Updates, name: str) -> Updates:
    """Repeat each row as often as its diff says. `name` is the view's name for error messages.

    Raises:
        DataError: a diff is negative, or the result has too many rows or bytes.
    """
    if bool((updates.diff == 1).all()):
        return updates
    refuse_negative(updates, name)
    if float(updates.diff.sum(dtype=np.float64)) > limits.MOST_ROWS:
        raise DataError(f"{name} holds more than {limits.MOST_ROWS:,} rows, counting copies",
                        remedy="read(..., multiplicity=True) gives each once", view=name)  # fmt: skip
    for column, values in updates.columns.items():
        if values.nbytes * int(updates.diff.max()) > ARRAY_BYTES and float(sizes(values) @ updates.diff) > ARRAY_BYTES:
            raise DataError(f"{name}.{column} holds more than {ARRAY_BYTES:,} bytes, counting copies",
                            remedy="read(..., multiplicity=True) gives each once", view=name)  # fmt: skip
    return updates.take(np.repeat(np.arange(len(updates)), updates.diff))


def table(parts: Sequence[Updates], name: str, names: list[str] | None = None) -> pa.Table:
    """The rows of parts as a table, each as often as its diff says; rows of different parts do not cancel. Many rows
    stay where they are: the table has a chunk for each part. `names`: of its columns, which may repeat.

    Raises:
        DataError: as `expand`.
    """
    if sum(map(len, parts)) < CHUNKED or not all(bool((part.diff == 1).all()) for part in parts):
        parts = [expand(part, name) for part in _together(parts)]
    if names is None:
        return pa.concat_tables([part.table(changes=False) for part in parts])
    tables = [pa.Table.from_arrays(list(part.columns.values()), names=names) for part in parts]
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables)


def _together(parts: Sequence[Updates]) -> Sequence[Updates]:
    """The parts as one, unless a column of it would have more bytes than one array can."""
    try:
        return [concat(parts)]
    except DataError:
        return parts


def refuse_negative(updates: Updates, name: str) -> Updates:
    """The same updates, unless a diff is negative.

    Raises:
        DataError: a diff is negative.
    """
    negative = where_true(updates.diff < 0)
    if len(negative):
        position = int(negative[0])
        row = {column: cell(values, position) for column, values in updates.columns.items()}
        raise DataError(
            f"{name} holds a row {int(updates.diff[position])} times, which no table can show: {row}; "
            "more copies were deleted than inserted",
            remedy="read(..., multiplicity=True) gives the counts", view=name,
        )  # fmt: skip
    return updates

"""Expands contents to the rows that a table shows: each row once per copy."""

from __future__ import annotations

import numpy as np

from halfjoin.engine.scalar.bounds import sizes
from halfjoin.engine.scalar.cells import cell
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import ARRAY_BYTES, Updates, where_true
from halfjoin.errors import DataError


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

"""Parts the copies of rows, where a step draws values by chance: each copy gets a value of its own."""

from __future__ import annotations

import numpy as np

from halfjoin.engine.linear.failures import Errors
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Updates
from halfjoin.errors import DataError


def apart(updates: Updates, _: Errors) -> Updates:
    """The updates with each copy of a row on its own. Negative counts stay.

    Raises:
        DataError: there are too many copies.
    """
    copies = np.maximum(updates.diff, 1)
    if not len(copies) or int(copies.max()) == 1:
        return updates
    if float(copies.sum(dtype=np.float64)) > limits.MOST_ROWS:
        raise DataError(f"values are drawn for more than {limits.MOST_ROWS:,} rows, counting copies",
                        remedy="draw them for distinct rows")  # fmt: skip
    rows = updates.take(np.repeat(np.arange(len(updates)), copies))
    return Updates(rows.columns, rows.time, np.minimum(rows.diff, 1))

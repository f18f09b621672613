"""What a table function gives back for a batch of argument rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Ints
from halfjoin.errors import DataError


@dataclass(frozen=True, slots=True)
class Exploded:
    """Result rows in columns; result `i` belongs to argument row `rows[i]`.

    `time`, `diff`: earliest time and weight of each result (None: always, once). `failed`: argument rows for which the
    function fails, with the one reason `message`, or one for each.
    """

    rows: Ints
    columns: tuple[pa.Array, ...] = ()
    time: Ints | None = None
    diff: Ints | None = None
    failed: Ints | None = None
    message: str | Sequence[str] = ""

    @property
    def messages(self) -> Sequence[str]:
        """The reason of each failed row."""
        count = 0 if self.failed is None else len(self.failed)
        return [self.message] * count if isinstance(self.message, str) else self.message


def repeated(counts: Ints, function: str) -> tuple[Ints, Ints]:
    """For `counts[i]` results of each row `i`: the row of each result and its number within the row, from 0."""
    total = float(counts.sum(dtype=np.float64))
    if total > limits.MOST_ROWS:
        raise DataError(f"{function} would make {total:,.0f} rows of this batch, the most are {limits.MOST_ROWS:,}")
    rows = np.repeat(np.arange(len(counts)), counts)
    return rows, np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)


def ordinality(rows: Ints) -> Ints:
    """WITH ORDINALITY: the number of each result within its argument row, from 1; a row's results stand together."""
    if not len(rows):
        return rows
    starts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))
    lengths = np.diff(np.append(starts, len(rows)))
    return np.arange(len(rows)) - np.repeat(starts, lengths) + 1

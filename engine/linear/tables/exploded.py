"""The result of a table function for a batch of argument rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Ints
from halfjoin.errors import DataError


@dataclass(frozen=True, slots=True)
class Exploded:
    """Result rows in columns. Result `i` belongs to argument row `rows[i]`.

    `time`, `diff`: the earliest time and the weight of each result (None: always, once). `failed`: the argument rows
    for which the function fails. `message`: one reason for all of them, or a list of one reason each.
    """

    rows: Ints
    columns: tuple[pa.Array, ...] = ()
    time: Ints | None = None
    diff: Ints | None = None
    failed: Ints | None = None
    message: str | Sequence[str] = ""

    @property
    def messages(self) -> Sequence[str]:
        """The reason for each failed row."""
        count = 0 if self.failed is None else len(self.failed)
        return [self.message] * count if isinstance(self.message, str) else self.message


TableFunction: TypeAlias = Callable[[list[pa.Array], int], Exploded]


def repeated(counts: Ints, function: str) -> tuple[Ints, Ints]:
    """If row `i` has `counts[i]` results: the row of each result, and the result's number within its row, from 0.

    Raises:
        DataError: there would be more than `limits.MOST_ROWS` results.
    """
    total = float(counts.sum(dtype=np.float64))
    if total > limits.MOST_ROWS:
        raise DataError(f"{function} would make {total:,.0f} rows from this batch; the most are {limits.MOST_ROWS:,}")
    rows = np.repeat(np.arange(len(counts)), counts)
    return rows, np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)


def ordinality(rows: Ints) -> Ints:
    """WITH ORDINALITY: the number of each result within its argument row, from 1. A row's results must be adjacent."""
    if not len(rows):
        return rows
    starts = np.flatnonzero(np.concatenate([[True], rows[1:] != rows[:-1]]))
    lengths = np.diff(np.append(starts, len(rows)))
    return np.arange(len(rows)) - np.repeat(starts, lengths) + 1

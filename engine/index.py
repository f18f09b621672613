"""An index: one run of an arrangement as (64-bit key code, row number), sorted by code. 12 bytes an entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.codes import codes, is_exact
from halfjoin.engine.updates import Ints, Mask

Rows = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Index:
    """Entries sorted by code; equal codes in row order. `exact`: equal codes are equal keys, nothing to verify."""

    codes: Ints
    rows: Rows
    exact: bool

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.codes.nbytes + self.rows.nbytes

    def distinct(self) -> int:
        """The number of distinct codes."""
        return int(np.count_nonzero(self.codes[1:] != self.codes[:-1])) + 1 if len(self.codes) else 0

    def find(self, probes: Ints) -> tuple[Ints, Rows]:
        """Pairs (position in `probes`, row number) whose codes are equal."""
        if not len(probes) or not len(self.codes):
            return np.zeros(0, np.int64), np.zeros(0, np.uint32)
        low = np.searchsorted(self.codes, probes, "left")
        high = np.searchsorted(self.codes, probes, "right")
        counts = high - low
        total = int(counts.sum())
        if total == 0:
            return np.zeros(0, np.int64), np.zeros(0, np.uint32)
        positions = np.repeat(np.arange(len(probes)), counts)
        within = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        return positions, self.rows[low[positions] + within]

    def between(self, low: int, high: int) -> Rows:
        """Rows whose codes are in `[low, high)`; meaningful where codes are numbers in order."""
        start, stop = np.searchsorted(self.codes, [low, high], "left")
        return self.rows[start:stop]


def build(keys: Sequence[pa.Array], rows: NDArray[Any] | None, length: int) -> Index:
    """Index key columns of `length` entries; entry `i` points to `rows[i]` (to row `i` where None)."""
    return build_from_codes(codes(keys, length), rows, is_exact(keys))


def build_from_codes(values: Ints, rows: NDArray[Any] | None, exact: bool) -> Index:
    """Index entries whose codes are known."""
    if len(values) < 2 or bool((values[1:] >= values[:-1]).all()):  # generated keys often come in order
        entries = np.arange(len(values)) if rows is None else rows
        return Index(values, entries.astype(np.uint32), exact)
    order = np.argsort(values, kind="stable")
    return Index(values[order], (order if rows is None else rows[order]).astype(np.uint32), exact)


def merge(parts: Sequence[tuple[Index, int]], kept: Ints | None) -> Index:
    """The index of runs laid one after the other: `(index, rows before it)`.

    `kept` maps old row numbers to new ones, -1 for rows that are gone; None keeps all.
    """
    values = np.concatenate([index.codes for index, _ in parts])
    rows = np.concatenate([index.rows.astype(np.int64) + before for index, before in parts])
    if kept is not None:
        rows = kept[rows]
        alive: Mask = rows >= 0
        values, rows = values[alive], rows[alive]
    order = np.argsort(values, kind="stable")  # timsort: linear in runs that are sorted already
    return Index(values[order], rows[order].astype(np.uint32), all(index.exact for index, _ in parts))

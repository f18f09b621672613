"""An index: one run of an arrangement as (64-bit key code, row number), sorted by code. 12 bytes an entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.codes import codes, is_exact
from halfjoin.engine.updates import MOST_ROWS, Ints, Mask
from halfjoin.sql.errors import DataError

Rows = NDArray[np.uint32]

_NONE = np.zeros(0, np.int64), np.zeros(0, np.uint32)
_GUIDE_STEP = 64
_GUIDE_FROM = 1 << 20  # entries: a smaller index is in a cache itself
_GUIDED_FROM = 512  # probes: for fewer, a plain search has less to set up
_WALKED = 8  # entries of a group


@dataclass(frozen=True, slots=True)
class Index:
    """Entries sorted by code. `exact`: equal codes are equal keys, nothing to verify.

    `guide` is every 64th code of a large index (an eighth of a byte an entry), small enough for a processor's cache.
    """

    codes: Ints
    rows: Rows
    exact: bool
    guide: Ints | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.codes.nbytes + self.rows.nbytes + (0 if self.guide is None else self.guide.nbytes)

    def distinct(self) -> int:
        """The number of distinct codes."""
        return int(np.count_nonzero(self.codes[1:] != self.codes[:-1])) + 1 if len(self.codes) else 0

    def find(self, probes: Ints) -> tuple[Ints, Rows]:
        """Pairs (position in `probes`, row number) whose codes are equal."""
        if not len(probes) or not len(self.codes):
            return _NONE
        low = self._first_at_least(probes)
        last = len(self.codes) - 1
        positions = np.flatnonzero(self.codes[np.minimum(low, last)] == probes)  # beyond the end: less than the probe
        if not len(positions):
            return _NONE
        low = low[positions]
        counts = self._ends(low, probes[positions]) - low
        if len(counts) == int(counts.sum()):
            return positions, self.rows[low]
        if counts.sum() > MOST_ROWS:
            raise DataError(
                f"one lookup would find {int(counts.sum()):,} rows, the most are {MOST_ROWS:,}: many rows share a key"
            )
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(positions, counts), self.rows[np.repeat(low, counts) + within]

    def _first_at_least(self, probes: Ints) -> Ints:
        """For each probe the position of the first code that is no less.

        A binary search waits for memory at each step. Searching the guide and then narrowing all probes' windows
        together lets the processor fetch for many probes at a time.
        """
        if self.guide is None or len(probes) < _GUIDED_FROM:
            return np.searchsorted(self.codes, probes, "left")
        window = (np.searchsorted(self.guide, probes, "left") - 1) * _GUIDE_STEP
        below = np.maximum(window, 0)  # the last position known to hold less than the probe
        last = len(self.codes) - 1
        step = _GUIDE_STEP // 2
        while step:
            further = np.minimum(below + step, last)
            below = np.where(self.codes[further] < probes, further, below)
            step //= 2
        return np.where(window < 0, 0, below + 1)

    def _ends(self, low: Ints, values: Ints) -> Ints:
        """For each start of a group of equal codes, its end. Most groups are short, so they are walked together."""
        ends = low + 1
        growing = np.arange(len(low))
        last = len(self.codes) - 1
        for _ in range(_WALKED):
            at = ends[growing]
            growing = growing[(at <= last) & (self.codes[np.minimum(at, last)] == values[growing])]
            if not len(growing):
                return ends
            ends[growing] += 1
        ends[growing] = np.searchsorted(self.codes, values[growing], "right")
        return ends

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
        return _index(values, entries, exact)
    order = np.argsort(values)
    return _index(values[order], order if rows is None else rows[order], exact)


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
    return _index(values[order], rows[order], all(index.exact for index, _ in parts))


def _index(values: Ints, rows: NDArray[Any], exact: bool) -> Index:
    guide = np.ascontiguousarray(values[::_GUIDE_STEP]) if len(values) >= _GUIDE_FROM else None
    return Index(values, rows.astype(np.uint32), exact, guide)

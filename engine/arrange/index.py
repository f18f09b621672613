"""An index: one run of an arrangement as (64-bit key code, row number), sorted by code. 12 bytes an entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.arrange.guide import Guide, guide_to
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes, is_exact
from halfjoin.engine.updates.updates import Ints, Mask

Rows = NDArray[np.uint32]

_GUIDE_FROM = 1 << 10  # entries
_GUIDED_FROM = 1 << 20  # probes times entries: for less, a plain search has less to set up, and finds most in a cache
_FEW = 16  # probes: whatever the index, a plain search is as quick
_TOGETHER = 1 << 14  # groups counted at a time, in little memory
_NEXT = np.arange(1, 8)[:, None]  # entries after the first of a group


@dataclass(frozen=True, slots=True)
class Index:
    """Entries sorted by code, none of them twice. `exact`: equal codes are equal keys, nothing to verify.

    A large index has a guide.
    """

    codes: Ints
    rows: Rows
    exact: bool
    guide: Guide | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.codes.nbytes + self.rows.nbytes + (0 if self.guide is None else self.guide.nbytes)

    def distinct(self) -> int:
        """The number of distinct codes."""
        return int(np.count_nonzero(self.codes[1:] != self.codes[:-1])) + 1 if len(self.codes) else 0

    def find(self, probes: Ints) -> Iterable[tuple[Ints, Rows]]:
        """Pairs (position in `probes`, row number) whose codes are equal, in pieces.

        A piece has at most `limits.PIECE_ROWS` pairs, however many one probe finds, or one pair for each probe. Pairs
        come in order of position, and are made when a piece is asked for.
        """
        if not len(probes) or not len(self.codes):
            return ()
        low = self._first_at_least(probes)
        positions = (self.codes.take(low, mode="clip") == probes).nonzero()[0]  # beyond the end: less than the probe
        if not len(positions):
            return ()
        low, values = low[positions], probes[positions]
        if not (self.codes.take(low + 1, mode="clip") == values).any():  # every code is there once
            return ((positions, self.rows[low]),)
        counts = self._counts(low, values)
        ends = counts.cumsum()
        found = int(ends[-1])
        if found > limits.PIECE_ROWS:
            return self._pieces(positions, low, counts, ends)
        entries = np.arange(found) + np.repeat(low - (ends - counts), counts)
        return ((positions.repeat(counts), self.rows[entries]),)

    def _pieces(self, positions: Ints, low: Ints, counts: Ints, ends: Ints) -> Iterator[tuple[Ints, Rows]]:
        """The pairs numbered 0, 1, ... where those of `positions[i]` end before `ends[i]`, a piece at a time."""
        first, found = low - (ends - counts), int(ends[-1])  # add a pair's number to get its entry
        for start in range(0, found, limits.PIECE_ROWS):
            stop = min(start + limits.PIECE_ROWS, found)
            some = slice(int(ends.searchsorted(start, "right")), int(ends.searchsorted(stop)) + 1)
            within = np.diff(np.minimum(ends[some], stop), prepend=start)
            yield positions[some].repeat(within), self.rows[np.arange(start, stop) + first[some].repeat(within)]

    def count(self, probes: Ints) -> Ints:
        """How many entries each probe would find."""
        return self.codes.searchsorted(probes, "right") - self.codes.searchsorted(probes)

    def _first_at_least(self, probes: Ints) -> Ints:
        """For each probe that is there the position of the first code that equals it."""
        if self.guide is None or len(probes) * len(self.codes) < _GUIDED_FROM or len(probes) < _FEW:
            return self.codes.searchsorted(probes)
        return self.guide.first_at_least(self.codes, probes)

    def _counts(self, low: Ints, values: Ints) -> Ints:
        """How many codes equal each value, of which the first is at `low`. Mostly few, so a few are looked at."""
        counts = np.empty(len(low), np.int64)
        for start in range(0, len(low), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            equal = self.codes.take(low[part] + _NEXT, mode="clip") == values[part]
            counts[part] = equal.sum(0) + 1
        counts = np.minimum(counts, len(self.codes) - low)  # what lies beyond the end is the last code
        many = (counts > len(_NEXT)).nonzero()[0]
        if len(many):
            counts[many] = self.codes.searchsorted(values[many], "right") - low[many]
        return counts

    def sharing(self, mask: Mask) -> Ints:
        """The rows that share a code with one of those that a mask over all rows has; some may come twice."""
        values = self.codes[mask[self.rows]]
        first = np.ones(len(values), np.bool_)
        first[1:] = values[1:] != values[:-1]
        values = values[first]
        low, high = self.codes.searchsorted(values), self.codes.searchsorted(values, "right")
        counts = high - low
        entries = np.repeat(low - (counts.cumsum() - counts), counts) + np.arange(counts.sum())
        rows: Ints = self.rows[entries].astype(np.int64)
        return rows

    def split(self, mask: Mask) -> tuple[Index, Index]:
        """The entries of rows that a mask over all rows has, and those of the others."""
        mine = mask[self.rows]
        first, second = (_index(self.codes[part], self.rows[part], self.exact) for part in (mine, ~mine))
        return first, second

    def between(self, low: int, high: int) -> Rows:
        """Rows whose codes are in `[low, high)`; meaningful where codes are numbers in order."""
        start, stop = np.searchsorted(self.codes, [low, high], "left")
        return self.rows[start:stop]


def build(keys: Sequence[pa.Array], rows: NDArray[Any] | None, length: int) -> Index:
    """Index key columns of `length` entries; entry `i` points to `rows[i]` (to row `i` where None).

    A row that has a code several times (a table function made its keys) gets one entry for it.
    """
    values = codes(keys, length)
    if rows is None:
        return build_from_codes(values, None, is_exact(keys))
    order = np.lexsort((rows, values))
    values, rows = values[order], rows[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (values[1:] != values[:-1]) | (rows[1:] != rows[:-1])
    return _index(values[fresh], rows[fresh], is_exact(keys))


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
    return Index(values, rows.astype(np.uint32), exact, guide_to(values) if len(values) >= _GUIDE_FROM else None)

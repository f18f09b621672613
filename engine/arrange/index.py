"""An index: one run of an arrangement as (64-bit key code, row number), sorted by code. 12 bytes per entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.arrange.guide import Guide, guide_to
from halfjoin.engine.arrange.partial import Partial, RowFilter
from halfjoin.engine.kernels import indexing, native
from halfjoin.engine.system.value import value
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes, is_exact
from halfjoin.engine.updates.updates import Ints, Mask, Positions, Updates

RowNumbers = NDArray[np.uint32]
# The key columns of updates, and the row that each entry belongs to (None: one entry per row, in order).
Entries = tuple[list[pa.Array], Positions | None]
KeyColumns = Callable[[Updates], Entries]

_GUIDE_FROM = 1 << 10  # entries
_GUIDED_FROM = 1 << 20  # probes times entries; below it a plain search is faster: no setup, and most reads hit a cache
_FEW = 16  # probes; below it a plain search is as fast, whatever the size of the index
_TOGETHER = 1 << 14  # groups to count at a time, which bounds the memory
_ROWS = np.dtype(np.uint32)
_PARTS, _PART = 16, 1 << 10  # parts of an index, and entries of each, that are a sample of it
_NEXT = np.arange(1, 8)[:, None]  # the entries after the first entry of a group


class Footprint(NamedTuple):
    """The size of an arrangement in a part: entries and bytes of its index in memory, files and their bytes on disk."""

    entries: int = 0
    memory: int = 0
    files: int = 0
    disk: int = 0


@value
class Index:
    """Distinct entries, sorted by code. `exact`: equal codes mean equal keys, so nobody need compare keys.

    A large index has a guide. `partial`: which rows of the run have entries; None: all, if their key does not fail.
    """

    codes: Ints
    rows: RowNumbers
    exact: bool
    guide: Guide | None = None
    partial: Partial | None = None
    sorted_codes: native.SortedCodes = field(init=False, repr=False, compare=False)  # the same, as kernels read it
    _distinct: int | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        guide = (None, 0, 0) if self.guide is None else self.guide.plain
        object.__setattr__(self, "sorted_codes", (self.codes, self.rows, *guide))

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return self.codes.nbytes + self.rows.nbytes + (0 if self.guide is None else self.guide.nbytes)

    def distinct(self) -> int:
        """The number of distinct codes."""
        return int(np.count_nonzero(self.codes[1:] != self.codes[:-1])) + 1 if len(self.codes) else 0

    def about_distinct(self) -> int:
        """The number of distinct codes, guessed from a sample if there are many: a query is planned in less time than
        it takes to count them. Unique keys are told exactly. It is counted once."""
        found = self._distinct
        if found is None:
            found = self.distinct() if len(self) <= _PARTS * _PART else self._sampled()
            object.__setattr__(self, "_distinct", found)
        return found

    def _sampled(self) -> int:
        parts = np.linspace(0, len(self) - _PART, _PARTS).astype(np.int64)[:, None] + np.arange(_PART)
        sample = self.codes[parts]
        share = np.count_nonzero(sample[:, 1:] != sample[:, :-1]) / (_PARTS * (_PART - 1))
        return 1 + round(share * (len(self) - 1))

    def find(self, probes: Ints) -> Iterable[tuple[Ints, RowNumbers]]:
        """Pairs (position in `probes`, row number) whose codes are equal, in pieces.

        A piece has at most `limits.PIECE_ROWS` pairs, even if one probe finds more. (If no code repeats, there is one
        piece with at most one pair per probe.) Pairs come in order of position. Pieces are made lazily.
        """
        if not len(probes) or not len(self.codes):
            return ()
        if native.on:
            pairs = find_all(probes, [self])
            if pairs is not None:
                return (pairs[:2],) if len(pairs[0]) else ()
        if self.guide is None or len(probes) < _FEW:
            low = self.codes.searchsorted(probes)
        else:
            low = self._first_at_least(probes)
        positions = (self.codes.take(low, mode="clip") == probes).nonzero()[0]  # at the end: the last code is less
        if not len(positions):
            return ()
        low, values = low[positions], probes[positions]
        repeats = self.codes.take(low + 1, mode="clip") == values  # at the end: the last code again
        if not repeats.any() or not low[repeats].min() + 1 < len(self.codes):
            return ((positions, self.rows[low]),)
        counts = self._counts(low, values)
        ends = counts.cumsum()
        found = int(ends[-1])
        if found > limits.PIECE_ROWS:
            return self._pieces(positions, low, counts, ends)
        entries = np.arange(found) + np.repeat(low - (ends - counts), counts)
        return ((positions.repeat(counts), self.rows[entries]),)

    def _pieces(self, positions: Ints, low: Ints, counts: Ints, ends: Ints) -> Iterator[tuple[Ints, RowNumbers]]:
        """All pairs, a piece at a time. Pairs are numbered 0, 1, ...; those of `positions[i]` end before `ends[i]`."""
        first, found = low - (ends - counts), int(ends[-1])  # `first` plus a pair's number is the pair's entry
        for start in range(0, found, limits.PIECE_ROWS):
            stop = min(start + limits.PIECE_ROWS, found)
            some = slice(int(ends.searchsorted(start, "right")), int(ends.searchsorted(stop)) + 1)
            within = np.diff(np.minimum(ends[some], stop), prepend=start)
            yield positions[some].repeat(within), self.rows[np.arange(start, stop) + first[some].repeat(within)]

    def _first_at_least(self, probes: Ints) -> Ints:
        """For each probe that is among the codes, the position of the first code that equals it."""
        if self.guide is None or len(probes) * len(self.codes) < _GUIDED_FROM:
            return self.codes.searchsorted(probes)
        return self.guide.first_at_least(self.codes, probes)

    def _counts(self, low: Ints, values: Ints) -> Ints:
        """How many codes equal each value; the first one is at `low`. Most groups are small, so look at a few first."""
        counts = np.empty(len(low), np.int64)
        for start in range(0, len(low), _TOGETHER):
            part = slice(start, start + _TOGETHER)
            equal = self.codes.take(low[part] + _NEXT, mode="clip") == values[part]
            counts[part] = equal.sum(0) + 1
        counts = np.minimum(counts, len(self.codes) - low)  # past the end, `take` repeats the last code
        many = (counts > len(_NEXT)).nonzero()[0]
        if len(many):
            counts[many] = self.codes.searchsorted(values[many], "right") - low[many]
        return counts

    def sharing(self, mask: Mask) -> Ints:
        """The rows that share a code with another row, one of which is in the mask (over all rows). A row may come
        twice."""
        values = self.codes[mask[self.rows]]
        first = np.ones(len(values), np.bool_)
        first[1:] = values[1:] != values[:-1]
        values = values[first]
        low, high = self.codes.searchsorted(values), self.codes.searchsorted(values, "right")
        several = high - low > 1
        low, counts = low[several], (high - low)[several]
        entries = np.repeat(low - (counts.cumsum() - counts), counts) + np.arange(counts.sum())
        rows: Ints = self.rows[entries].astype(np.int64)
        return rows

    def split(self, mask: Mask) -> tuple[Index, Index]:
        """Two indexes: the entries of the rows in the mask (over all rows), and the entries of the other rows."""
        made = indexing.split(self.codes, self.rows, mask)
        if made is not None:
            one, other = made
            return index_of(*one, self.exact, self.partial), index_of(*other, self.exact, self.partial)
        mine = mask[self.rows]
        first, second = (index_of(self.codes[one], self.rows[one], self.exact, self.partial) for one in (mine, ~mine))
        return first, second

    def only(self, mask: Mask, partial: Partial) -> Index:
        """The entries of the rows in the mask (over all rows)."""
        mine = mask[self.rows]
        return index_of(self.codes[mine], self.rows[mine], self.exact, partial)

    def between(self, low: int, high: int) -> RowNumbers:
        """Rows whose codes are in `[low, high)`. It has a meaning only where codes are the key's numbers (`exact`)."""
        start, stop = np.searchsorted(self.codes, [low, high], "left")
        return self.rows[start:stop]


def build(keys: Sequence[pa.Array], rows: NDArray[Any] | None, length: int) -> Index:
    """Index key columns of `length` entries. Entry `i` points to `rows[i]`, or to row `i` if `rows` is None.

    A row that has the same code several times (a table function made its keys) gets one entry for the code.
    """
    if rows is None and native.on and keys:
        made = indexing.indexed(list(keys), length)
        if made is not None:
            return index_of(*made, is_exact(keys))
    values = codes(keys, length)
    if rows is None or (rows[1:] > rows[:-1]).all():
        return build_from_codes(values, rows, is_exact(keys))
    order = np.lexsort((rows, values))
    values, rows = values[order], rows[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (values[1:] != values[:-1]) | (rows[1:] != rows[:-1])
    return index_of(values[fresh], rows[fresh], is_exact(keys))


def build_from_codes(values: Ints, rows: NDArray[Any] | None, exact: bool) -> Index:
    """Index entries by their codes `values`. Entry `i` points to `rows[i]`, or to row `i` if `rows` is None."""
    if len(values) < 2 or bool((values[1:] >= values[:-1]).all()):  # generated keys often come in order
        entries = np.arange(len(values)) if rows is None else rows
        return index_of(values, entries, exact)
    made = indexing.ordered(values) if native.on else None
    if made is not None:
        return index_of(made[0], made[1] if rows is None else rows[made[1]], exact)
    order = values.argsort()
    return index_of(values[order], order if rows is None else rows[order], exact)


def merge(parts: Sequence[tuple[Index, int]], kept: Ints | None, partial: Partial | None = None) -> Index:
    """The index of concatenated runs. `parts` has `(index, number of rows before its run)` for each run.

    `kept` maps old row numbers to new ones, and removed rows to -1. None keeps all rows. `partial`: what all of these
    indexes have.
    """
    exact = all(index.exact for index, _ in parts)
    made = indexing.merged([(index.codes, index.rows, before) for index, before in parts], kept)
    if made is not None:
        return index_of(*made, exact, partial)
    values = np.concatenate([index.codes for index, _ in parts])
    rows = np.concatenate([index.rows + np.int64(before) for index, before in parts])
    if kept is not None:
        rows = kept[rows]
        alive: Mask = rows >= 0
        values, rows = values[alive], rows[alive]
    order = values.argsort(kind="stable")  # timsort takes linear time, as the runs are sorted
    return index_of(values[order], rows[order], exact, partial)


def wanted_only(indexes: Sequence[Index], by: RowFilter, updates: Updates, begins: int) -> Sequence[Index]:
    """Indexes of one run without the entries of rows that nobody wants. No change that looks them up has a time below
    `begins`."""
    if not by.expires and all(one.partial is not None and one.partial.wants == by.wants for one in indexes):
        return indexes
    asked = np.zeros(len(updates), np.bool_)
    for index in indexes:
        asked[index.rows] = True
    mask = by.wanted(updates, asked, begins)
    return [index.only(mask, by.partial(begins)) for index in indexes]


def find_all(probes: Ints, indexes: Sequence[Index]) -> tuple[Ints, RowNumbers, list[int]] | None:
    """What `find` gives for each of several indexes, one after the other, and how many pairs each has.

    None: no kernel can do it, or there are more than `limits.PIECE_ROWS` pairs.
    """
    return indexing.find(probes, [index.sorted_codes for index in indexes], limits.PIECE_ROWS)


def count_all(probes: Ints, indexes: Sequence[Index]) -> Ints:
    """The number of entries that each probe would find in all of several indexes."""
    counts = indexing.count(probes, [index.sorted_codes for index in indexes])
    if counts is None:
        counts = np.zeros(len(probes), np.int64)
        for index in indexes:
            counts += index.codes.searchsorted(probes, "right") - index.codes.searchsorted(probes)
    return counts


def index_of(values: Ints, rows: NDArray[Any], exact: bool, partial: Partial | None = None) -> Index:
    """The index of these sorted codes, and the row of each; a large one gets a guide."""
    guide = guide_to(values) if len(values) >= _GUIDE_FROM else None
    return Index(values, rows if rows.dtype is _ROWS else rows.astype(np.uint32), exact, guide, partial)

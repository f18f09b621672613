"""Netting: what closed updates add up to. The log remembers all of them, an index points to what is there.

The times of a batch are at or above `upper`, so it cannot tell apart the closed updates of a row: equal rows are added
up, and those that add up to nothing are passed over. What is read as of the past, and what fills a view from history,
has every update as it came. Without that a view's past would depend on when the view was made; without netting the
work of a batch would grow with how often the rows that it meets have changed.

The updates of a run are netted by themselves, when runs are merged: so whatever a run holds back adds up to nothing in
that run, and the sum over all runs is the same with it and without. What runs hold of each other's rows meets when
it is looked up (`together`). Nothing that a run holds is changed for it, so there is nothing to undo if a batch fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from halfjoin.engine.arrange.index import Index
from halfjoin.engine.updates.consolidate import cancelled
from halfjoin.engine.updates.updates import MINIMUM, Ints, Mask, Positions, Updates, bits, constant, is_wide

NET_FROM = 64  # updates of a run: adding up fewer costs more than looking at all of them


def _none() -> Ints:
    return np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Net:
    """What the updates of a run with times below `closed` add up to; the others are there as they are.

    `there` marks the rows that are (None: all). Those in `rows`, which ascend, are there `diffs` times instead of as
    often as their own diff says. `size` is how many were there when updates were last added up.
    """

    closed: int
    size: int = 0
    there: Mask | None = None
    rows: Ints = field(default_factory=_none)
    diffs: Ints = field(default_factory=_none)

    def due(self, length: int) -> bool:
        """Whether so many more rows of a run are there by now, of its `length`, that adding up is worth it again."""
        there = length if self.there is None else int(np.count_nonzero(self.there))
        return there >= NET_FROM + self.size + self.size // 2

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return (0 if self.there is None else self.there.nbytes) + self.rows.nbytes + self.diffs.nbytes

    def diffs_of(self, updates: Updates, rows: Positions | None = None) -> Ints:
        """How often these rows (all) are there, of those that are."""
        if rows is None:
            diffs = updates.diff
            if len(self.rows):
                diffs = diffs.copy()
                diffs[self.rows] = self.diffs
            return diffs
        own = updates.diff[rows]
        if len(self.rows) and len(rows):
            found = np.minimum(self.rows.searchsorted(rows), len(self.rows) - 1)
            own = np.where(self.rows[found] == rows, self.diffs[found], own)
        return own


def net(updates: Updates, closed: int, known: Net | None = None, index: Index | None = None) -> Net:
    """Add up the updates with times below `closed`, given what some of them are `known` to add up to.

    An `index` on them spares looking at rows that have no deletion beside them, under the same code.
    """
    known = Net(closed) if known is None else known
    candidates = updates.time < closed
    if known.there is not None:
        candidates &= known.there
    diffs = known.diffs_of(updates)
    as_known = replace(known, closed=closed, size=int(np.count_nonzero(candidates)))
    gone = candidates & (diffs < 0)
    if not gone.any():
        return as_known
    rows = np.flatnonzero(candidates)
    if index is not None:
        beside = np.unique(index.sharing(gone))
        rows = beside[candidates[beside]]
    part = updates if len(rows) == len(updates) else updates.take(rows)
    part = Updates(part.columns, part.time, diffs[rows])
    # A sum past int64 would be an error, and whoever asks for one will be told.
    if not _may_cancel(part.diff) or bits(part.diff) + len(rows).bit_length() > 62:
        return as_known
    positions, sums = cancelled(part, by_time=False)
    if len(positions) == len(rows):
        return as_known
    there = np.ones(len(updates), np.bool_) if known.there is None else known.there.copy()
    there[rows] = False
    there[rows[positions]] = True
    diffs = diffs.copy()
    diffs[rows[positions]] = sums
    other = np.flatnonzero(there & (diffs != updates.diff))
    return Net(closed, as_known.size - len(rows) + len(positions), there, other, diffs[other])


def laid(parts: Sequence[tuple[Net | None, int]]) -> Net:
    """What is known of runs laid one after the other, from what is known of each, and its length."""
    closed = max((one.closed for one, _ in parts if one is not None), default=MINIMUM)
    size = max((one.size for one, _ in parts if one is not None), default=0)
    if all(one is None or one.there is None for one, _ in parts):
        return Net(closed, size)  # no row has another diff unless one has gone
    there, rows, diffs, before = [], [], [], 0
    for one, length in parts:
        there.append(np.ones(length, np.bool_) if one is None or one.there is None else one.there)
        if one is not None:
            rows.append(one.rows + before)
            diffs.append(one.diffs)
        before += length
    return Net(closed, size, np.concatenate(there), np.concatenate(rows), np.concatenate(diffs))


def together(updates: Updates, closed: int) -> tuple[Positions, Ints] | None:
    """Which of these updates are there, and how often, where those with times below `closed` are added up; None where
    that is all of them as they are. Updates of later times stay apart by time."""
    if not _may_cancel(updates.diff) or is_wide(updates.diff) or bits(updates.diff) + len(updates).bit_length() > 62:
        return None
    open_ = updates.time >= closed
    time = np.maximum(updates.time, closed - 1) if open_.any() else constant(closed - 1, len(updates))
    return cancelled(Updates(updates.columns, time, updates.diff))


def _may_cancel(diffs: Ints) -> bool:
    return len(diffs) > 1 and bool((diffs < 0).any() and (diffs > 0).any())

"""Netting: adds up the closed updates of equal rows. The log keeps every update; indexes point to the rows that remain.

The times of a batch are at or above `upper`, so the batch cannot tell the closed updates of a row apart. Its lookups
add up equal rows and skip those whose sum is 0. A read of the past, and the first fill of a view from history, use
every update as it came. Otherwise the past of a view would depend on when the view was created. Without netting, the
work of a batch would grow with the number of past changes of the rows that it looks up.

A merge of runs nets the updates of the new run by themselves. The updates that a run hides add up to 0 within the run,
so the sum over all runs does not change. A lookup nets equal rows of different runs (`together`). Netting does not
change a run's updates, so there is nothing to undo if a batch fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np

from halfjoin.engine.arrange.index import Index
from halfjoin.engine.kernels import indexing, native
from halfjoin.engine.system.value import value
from halfjoin.engine.updates.consolidate import cancelled
from halfjoin.engine.updates.updates import (
    MINIMUM,
    Ints,
    Mask,
    Positions,
    Updates,
    bits,
    both_ways,
    constant,
    is_wide,
    where_true,
)

NET_FROM = 64  # updates of a run; netting fewer costs more than it saves
NO_ROWS: Ints = np.zeros(0, np.int64)


def _none() -> Ints:
    return NO_ROWS


@value
class Net:
    """The net of a run: the sums of its updates with times below `closed`. Later updates count as they are.

    `there` marks the rows that remain (None: all). `rows` are ascending row numbers; these rows count `diffs` times,
    not their own diff. `size` is the number of closed rows that remained after the last netting.
    """

    closed: int
    size: int = 0
    there: Mask | None = None
    rows: Ints = field(default_factory=_none)
    diffs: Ints = field(default_factory=_none)

    def due(self, length: int) -> bool:
        """Whether netting is worth it again: the remaining rows of the run, of `length` in all, have grown enough."""
        there = length if self.there is None else int(np.count_nonzero(self.there))
        return there >= NET_FROM + self.size + self.size // 2

    def part(self, start: int, stop: int) -> Net:
        """The net of a stretch of the rows."""
        first, last = self.rows.searchsorted((start, stop))
        there = None if self.there is None else self.there[start:stop]
        return Net(self.closed, self.size, there, self.rows[first:last] - start, self.diffs[first:last])

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return (0 if self.there is None else self.there.nbytes) + self.rows.nbytes + self.diffs.nbytes

    def diffs_of(self, updates: Updates, rows: Positions | None = None) -> Ints:
        """How often each of these rows counts (None: all rows). It has no meaning for rows that do not remain."""
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
    """Add up the updates with times below `closed`. `known` is an earlier net of the same run.

    With an `index` on the updates, only rows that share a code with a deletion are compared.
    """
    known = Net(closed) if known is None else known
    if index is not None and native.on:
        columns = list(updates.columns.values())
        made = indexing.net(columns, updates.time, updates.diff, closed, index.codes, index.rows, known.there,
                            known.rows, known.diffs)  # fmt: skip
        if made is not None:
            return replace(known, closed=closed, size=made[0]) if made[1] is None else Net(closed, *made)
    candidates = updates.time < closed
    if known.there is not None:
        candidates &= known.there
    diffs = known.diffs_of(updates)
    as_known = replace(known, closed=closed, size=int(np.count_nonzero(candidates)))
    gone = candidates & (diffs < 0)
    if not gone.any():
        return as_known
    rows = where_true(candidates)
    if index is not None:
        beside = np.zeros(len(updates), np.bool_)
        beside[index.sharing(gone)] = True
        rows = where_true(beside & candidates)
    part = updates if len(rows) == len(updates) else updates.take(rows)
    part = Updates(part.columns, part.time, diffs[rows])
    # A sum may not fit into an int64. Then do not net; whoever needs the sum gets the error.
    if not both_ways(part.diff) or bits(part.diff) + len(rows).bit_length() > 62:
        return as_known
    positions, sums = cancelled(part, by_time=False)
    if len(positions) == len(rows):
        return as_known
    there = np.ones(len(updates), np.bool_) if known.there is None else known.there.copy()
    there[rows] = False
    there[rows[positions]] = True
    diffs = diffs.copy()
    diffs[rows[positions]] = sums
    other = where_true(there & (diffs != updates.diff))
    return Net(closed, as_known.size - len(rows) + len(positions), there, other, diffs[other])


def laid(parts: Sequence[tuple[Net | None, int]]) -> Net:
    """The net of concatenated runs. `parts` has the net and the number of rows of each run."""
    closed, size, whole = MINIMUM, 0, True
    for one, _ in parts:
        if one is not None:
            closed = one.closed if one.closed > closed else closed
            size = one.size if one.size > size else size
            whole = whole and one.there is None
    if whole:
        return Net(closed, size)  # a diff differs only if another row is gone
    there, rows, diffs, before = [], [], [], 0
    for one, length in parts:
        there.append(np.ones(length, np.bool_) if one is None or one.there is None else one.there)
        if one is not None:
            rows.append(one.rows + before)
            diffs.append(one.diffs)
        before += length
    return Net(closed, size, np.concatenate(there), np.concatenate(rows), np.concatenate(diffs))


def together(updates: Updates, closed: int) -> tuple[Positions, Ints] | None:
    """Net updates of several runs: the positions that remain, and how often each counts. None: all remain as they are.

    Equal rows with times below `closed` are added up. Later updates are added up for each time.
    """
    if is_wide(updates.diff) or not both_ways(updates.diff) or bits(updates.diff) + len(updates).bit_length() > 62:
        return None
    open_ = updates.time >= closed
    time = np.maximum(updates.time, closed - 1) if open_.any() else constant(closed - 1, len(updates))
    return cancelled(Updates(updates.columns, time, updates.diff))

"""The first rows of groups at their moments, without the rows behind them.

What a group was tells its first rows: the output has them. So its rows are *known* up to a *bound*, the last row of the
output. If the updates leave enough of them, the first rows at each moment are among these rows and the updates. If not,
more rows are read, from the bound on. So rows that have gone, before the bound, are never read again.

A row with a negative count is an error. So each retraction behind the bound is looked up, unless a PRIMARY KEY has
checked it: it must take a row that is there. A group in which one does not is *plain*: its rows are looked up, all of
them, and so are those of small groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce.reading import Entries, Reading
from halfjoin.engine.reduce.sorting import ranks_of
from halfjoin.engine.scalar.values import valid
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Ints, Mask, Updates, concat, constant, where_true
from halfjoin.sql.relation import SortKey

LARGE = 256  # entries; smaller groups are looked up whole
_SPARE = 4  # entries to read besides those that are missing
_MANY = 1 << 40  # more copies than any limit; counts are cut there, so that their sums stay small
_SEARCH = 256  # about the entries that a search for one row looks at


@dataclass(frozen=True, slots=True)
class Wanted:
    """The first `limit` rows in an order, of those in which `subject` is not NULL (None: of all). `with_ties`: also the
    rows that tie in the sort keys with the last one."""

    order: tuple[SortKey, ...]
    limit: int
    with_ties: bool = False
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of groups: the first `rows` of each, with their counts, and the group's number for each row.

    `all`: for each group, whether it has no more rows. `counted`: the count of each group's last row is the whole
    count; otherwise there may be more copies of it.
    """

    rows: Updates
    group: Ints
    all: Mask
    counted: bool


@dataclass(frozen=True, slots=True)
class Front:
    """Rows of groups among which their first rows are, at each moment. There are none of a group that is `plain`.

    The rows that were there before have the time `MINIMUM`, the others are updates. If they have `begun`, the updates
    of each group's first moment count among the rows with the time `MINIMUM`: nobody asks what the group was.
    `ordered`: the rows of each group are in the order of the function.
    """

    rows: Updates
    group: Ints
    plain: Mask
    begun: bool = False
    ordered: bool = False


def front_of(
    wanted: Wanted, known: Known, updates: Updates, group: Ints, readable: Callable[[], Reading | None], before: int,
    *, checked: bool = False, opening: Mask | None = None,
) -> Front:  # fmt: skip
    """The first rows of groups.

    `updates` and `group`: what closes, and the number of each update's group. `opening`: the updates of first moments,
    if nobody asks what the groups were. `readable` gives the groups as they were
    below the time `before`, if that is needed; None if they cannot be read in order. `checked`: updates take only rows
    that are there.
    """
    if wanted.subject is not None:
        there = valid(updates.columns[wanted.subject])
        updates, group = updates.filter(there), group[there]
        opening = None if opening is None else opening[there]
    groups = len(known.all)
    sizes, reading = np.zeros(groups, np.int64), None
    found, count = list[tuple[Updates, Ints]](), np.zeros(groups, np.int64)
    plain, waiting = np.zeros(groups, np.bool_), np.ones(groups, np.bool_)
    ongoing: Reading | None = None
    entries: Entries | None = None
    while waiting.any():
        mine, theirs = waiting[group], waiting[known.group]
        some = Known(known.rows.filter(theirs), known.group[theirs], known.all, known.counted)
        sight = _Sight(wanted, some, entries, updates.filter(mine), group[mine], groups)
        few = waiting & sight.few & ~sight.wrong
        bad = waiting & sight.wrong
        behind = None if checked else sight.behind(waiting & ~few & ~bad)
        if reading is None and (few.any() or (behind is not None and len(behind.group))):
            reading = readable()
            sizes = sizes if reading is None else reading.sizes
        if behind is not None and len(behind.group):
            bad[behind.group[~_are_there(behind, reading, sizes, before)]] = True
        rows, numbers = sight.rows(None if opening is None else opening[mine])
        good = (waiting & ~few & ~bad)[numbers]
        found.append((rows.filter(good), numbers[good]))
        # More rows are read from the bound on: those that are missing, and twice as many each time.
        count = np.maximum(sight.missing, count) * 2 + _SPARE
        on = few & (sizes >= LARGE) & (count * 2 < sizes)
        plain |= bad | (few & ~on)
        if on.any():
            assert reading is not None  # otherwise all sizes are 0
            if ongoing is None:
                ongoing = reading.of(where_true(on))
                if len(some.group):
                    ongoing.seek(sight.edge(on))
            else:
                ongoing = ongoing.of(where_true(on[where_true(waiting)]))
            numbers = where_true(on)
            read = ongoing.take(count[on], before)
            entries = replace(read, probe=numbers[read.probe])
        waiting = on
    rows, numbers = concat([rows for rows, _ in found]), np.concatenate([numbers for _, numbers in found])
    return Front(rows, numbers, plain, opening is not None)


def _are_there(behind: _Behind, reading: Reading | None, sizes: Ints, before: int) -> Mask:
    """For each row that updates take, whether there are as many copies as they take."""
    there = np.zeros(len(behind.group), np.bool_)
    searches = np.bincount(behind.group, minlength=len(sizes)) * _SEARCH
    worth = where_true((searches < sizes)[behind.group])
    counted = None if reading is None or not len(worth) else reading.of(behind.group[worth]).counted()
    if counted is not None:
        rows = behind.rows.take(worth)
        there[worth] = counted.copies(*counted.equal(rows.columns), before) >= -rows.diff
    return there


@dataclass(frozen=True, slots=True)
class _Behind:
    """Rows behind the bounds that updates take: each once, with minus the number of copies that they take."""

    rows: Updates
    group: Ints


class _Sight:
    """All rows at hand, ranked: those known, those read from the bound on, and the updates.

    Equal rows of a group have the same rank; the ranks ascend from the first row of the first group on. `bound`: for
    each group, the rank up to which all its rows are at hand. `count`: the copies of each rank as it was. `depth`: how
    many of them the updates take at most, at any moment.
    """

    def __init__(
        self, wanted: Wanted, known: Known, entries: Entries | None, updates: Updates, group: Ints, groups: int
    ) -> None:
        parts = [known.rows, updates] if entries is None else [known.rows, updates, entries.rows]
        numbers = [known.group, group] if entries is None else [known.group, group, entries.probe]
        every = concat([part.select(known.rows.columns) for part in parts])
        number = np.concatenate(numbers)
        found = ranks_of(every.columns, number, groups, wanted.order)
        rank, peers = found.row, found.peers
        self.groups, self._every, self._updates, self._number = groups, every, updates, number
        length, first = len(known.rows), len(known.rows) + len(updates)
        self._rank = rank[length:first]
        ranks = int(rank.max()) + 1 if len(rank) else 0
        self.first = np.full(ranks, len(rank))  # the first row of each rank
        np.minimum.at(self.first, rank, np.arange(len(rank)))
        self.group = number[self.first]
        self._last = np.full(groups, -1)  # the rank of the last row known
        np.maximum.at(self._last, known.group, rank[:length])
        self.count = np.zeros(ranks, np.int64)
        self.depth = depth_of(self._rank, updates.time, updates.diff, ranks)
        self.missing = np.zeros(groups, np.int64)
        if entries is None:
            np.add.at(self.count, rank[:length], known.rows.diff)
            bound = self._last.copy()
            if wanted.with_ties and len(known.group):  # the peers of the last row are known, too
                ends = np.zeros(int(peers.max()) + 1, np.int64)
                np.maximum.at(ends, peers, rank)
                np.maximum.at(bound, known.group, ends[peers[:length]])
            self.bound, self._open = np.where(known.all, MAXIMUM, bound), np.full(groups, not known.counted)
        else:
            self._extend(wanted, known, entries, rank, peers)
        self._weigh(wanted.limit)

    def _extend(self, wanted: Wanted, known: Known, entries: Entries, rank: Ints, peers: Ints) -> None:
        """Count the rows, and find the bounds: what was read takes the place of the last known rows."""
        length, own = len(known.rows), rank[len(rank) - len(entries.rows) :]
        earlier = rank[:length] < self._last[known.group]
        np.add.at(self.count, rank[:length][earlier], known.rows.diff[earlier])
        counts = entries.mine & (own >= self._last[entries.probe])
        if wanted.subject is not None:
            counts &= valid(entries.rows.columns[wanted.subject])
        np.add.at(self.count, own[counts], entries.rows.diff[counts])
        # The runs have more rows only at or behind their last rows that were read.
        self.bound, self._open = np.full(self.groups, MAXIMUM), np.zeros(self.groups, np.bool_)
        last = where_true(entries.last)
        if wanted.with_ties:  # peers stay together
            edges = np.full(int(peers.max()) + 1, MAXIMUM)
            np.minimum.at(edges, peers, rank)
            own = edges[peers[len(rank) - len(entries.rows) :]]
        np.minimum.at(self.bound, entries.probe[last], own[last])
        edge = last[own[last] == self.bound[entries.probe[last]]]
        closed = np.zeros(self.groups, np.bool_)  # whether the row at the edge may lose copies that were not read
        closed[entries.probe[edge[~entries.adds[edge]]]] = True
        edged = where_true(self.bound < MAXIMUM)
        inside = ~closed[edged] & (self.count[self.bound[edged]] > 0) & (not wanted.with_ties)
        self._open[edged[inside]] = True
        self.bound[edged[~inside]] -= 1

    def _weigh(self, limit: int) -> None:
        """Decide which groups have enough rows at hand, and which have rows with negative counts."""
        self.within = np.arange(len(self.count)) <= self.bound[self.group]
        short = self.within & (self.count < self.depth)
        unsure = self._open[self.group] & (np.arange(len(self.count)) == self.bound[self.group])
        self.wrong = np.zeros(self.groups, np.bool_)
        self.wrong[self.group[(short | (self.within & (self.count < 0))) & ~unsure]] = True
        left = np.zeros(self.groups, np.int64)
        each = np.minimum(self.count, _MANY) - np.minimum(self.depth, _MANY)
        np.add.at(left, self.group[self.within], each[self.within])
        self.missing = np.where(self.bound == MAXIMUM, 0, np.maximum(limit - left, 0))
        self.few = (self.missing > 0) | (self.bound < self._last)
        self.few[self.group[short & unsure]] = True
        self.missing[self.group[short & unsure]] += (self.depth - self.count)[short & unsure]

    def rows(self, opening: Mask | None) -> tuple[Updates, Ints]:
        """The rows up to the bounds, and their groups; as they are after the `opening` updates, if there are any."""
        count, changing = self.count, self.within[self._rank]
        if opening is not None:
            count = count.copy()
            np.add.at(count, self._rank[opening], self._updates.diff[opening])
            changing &= ~opening
        there = where_true(self.within & (count > 0))
        was = self._every.take(self.first[there])
        rows, numbers = Updates(was.columns, constant(MINIMUM, len(was)), count[there]), self.group[there]
        if changing.any():
            rows = concat([rows, self._updates.select(was.columns).filter(changing)])
            numbers = np.concatenate([numbers, self.group[self._rank[changing]]])
        return rows, numbers

    def behind(self, groups: Mask) -> _Behind:
        """The rows behind the bounds of some groups that updates take."""
        taken = where_true(~self.within & (self.depth > 0) & groups[self.group])
        rows = self._every.take(self.first[taken])
        return _Behind(Updates(rows.columns, rows.time, -self.depth[taken]), self.group[taken])

    def edge(self, groups: Mask) -> Mapping[str, pa.Array]:
        """The last known row of each of some groups."""
        return self._every.take(self.first[self._last[groups]]).columns


def depth_of(rank: Ints, time: Ints, diff: Ints, ranks: int) -> Ints:
    """How many copies of each rank updates take at most, at any moment."""
    depth = np.zeros(ranks, np.int64)
    if not len(diff) or not (diff < 0).any():
        return depth
    order = np.lexsort((-diff, time, rank))  # of one time, what comes is first
    rank, running = rank[order], np.cumsum(diff[order])
    starts = where_true(np.concatenate([[True], rank[1:] != rank[:-1]]))
    before = np.concatenate([[0], running[starts[1:] - 1]])
    depth[rank[starts]] = np.maximum(before - np.minimum.reduceat(running, starts), 0)
    return depth

"""The rows of groups that matter at each of many moments, without all updates of a group at each of its moments.

A batch may close many times: a history that is loaded at once, or rows that waited for their times. A group with `n`
moments has about `n` updates or more, together the square of that.

A function that asks for the first rows, min, max or LIMIT, needs few of them (`thinned`). The moments of a group are
parted into blocks, and these into smaller ones, down to single moments (`descended`). Of what is there when a block
begins, two kinds of rows matter inside it: those that an update of the block touches, and the first ones of the others,
which stay as they are. So each level has about as many rows as there are updates and first rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from halfjoin.engine.reduce.front import Wanted
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.sorting import ranks_of
from halfjoin.engine.reduce.words import differ
from halfjoin.engine.updates.updates import Ints, Mask, Updates, where_true

FROM = 1 << 16  # rows at all moments; fewer are cheaper as they are
_WORTH = 8  # times as many rows at all moments as there are updates
_STEP = 2  # a block has at most 2 ** _STEP blocks of the next level


@dataclass(frozen=True)
class Thinned:
    """Rows at moments, in order of the moments, each once with its count: `which` row, the `moment`, the `count`."""

    which: Ints
    moment: Ints
    count: Ints


def is_worth(moments: Ints) -> bool:
    """Whether updates that may count at so many `moments` each are too many for all of them."""
    shown = int(moments.sum())
    return shown > FROM and shown > _WORTH * len(moments)


def thinned(wanted: Wanted, moments: Moments, rows: Updates, group: Ints, starts: Ints) -> Thinned | None:
    """The rows among which the first ones are, at each moment. None: a row has a negative count at some moment.

    `group`: of each row. `starts`: the moment from which on it counts, which is one of its group.
    """
    if not len(rows):
        return Thinned(starts, starts, starts)
    found = ranks_of(rows.columns, group, moments.groups, wanted.order)
    of_rank = np.empty(int(found.row.max()) + 1, np.int64)  # a row of each rank
    of_rank[found.row] = np.arange(len(rows))
    peers, rank = found.peers[of_rank], found.row
    held = descended(
        lambda held, touched, *_: held.where(touched | _are_first(held, touched, peers, wanted)),
        moments, rank, starts, rows.diff,
    )  # fmt: skip
    if held is None:
        return None
    now = together(held, Held(starts, rank, rows.diff))  # each moment is a block
    return None if (now.count < 0).any() else Thinned(of_rank[now.rank], now.block, now.count)


def descended(
    kept: Callable[[Held, Mask, Ints, Ints], Held], moments: Moments, rank: Ints, starts: Ints, diff: Ints
) -> Held | None:
    """What matters at each moment of the rows that are there before its updates. None: a row has a negative count.

    `rank`, `starts`, `diff`: of updates, the row, the moment, the copies. `kept`: what matters in blocks of the rows
    that are there when they begin, given these rows, which of them updates touch, and the block and the rank of each
    update.
    """
    group = np.cumsum(moments.was) - 1  # of some moments alone, the first one may have another number than 0
    place = np.arange(len(moments)) - where_true(moments.was)[group]
    shift, inside, held = int(place.max(initial=0)).bit_length(), group, Held(rank[:0], rank[:0], rank[:0])
    ranks = int(rank.max(initial=-1)) + 1
    while shift:
        shift = max(shift - _STEP, 0)
        around, inside = inside, np.cumsum(moments.was | differ([place >> shift], len(place))) - 1
        first = inside[differ([around], len(around))]  # of the blocks in each larger block
        after = np.append(first[1:], inside[-1] + 1)
        block = inside[starts]
        held = together(_spread(held, first[held.block], after[held.block]),
                        _spread(Held(block, rank, diff), block + 1, after[around[starts]]))  # fmt: skip
        if (held.count < 0).any():
            return None
        touched = np.isin(held.block * ranks + held.rank, block * ranks + rank)
        held = kept(held, touched, block, rank)
    return held


@dataclass(frozen=True, slots=True)
class Held:
    """Rows that are there when a block begins, or that come then: the block, their rank, their count."""

    block: Ints
    rank: Ints
    count: Ints

    def where(self, mask: Mask | Ints) -> Held:
        """Some of the rows."""
        return Held(self.block[mask], self.rank[mask], self.count[mask])


def _spread(rows: Held, first: Ints, after: Ints) -> Held:
    """Each row in all blocks from its `first` on, before `after`."""
    counts = after - first
    which = np.arange(len(counts)).repeat(counts)
    block = np.arange(len(which)) + (first - (counts.cumsum() - counts)).repeat(counts)
    return Held(block, rows.rank[which], rows.count[which])


def together(one: Held, other: Held) -> Held:
    """The rows of both in order of blocks and ranks, equal ones added up; none with the count 0."""
    block, rank, count = (np.concatenate(pair) for pair in (
        (one.block, other.block), (one.rank, other.rank), (one.count, other.count)))  # fmt: skip
    if not len(block):
        return one
    order = np.lexsort((rank, block))
    starts = where_true(differ([block[order], rank[order]], len(order)))
    at = order[starts]
    added = Held(block[at], rank[at], np.add.reduceat(count[order], starts))
    return added.where(added.count != 0)


def _are_first(held: Held, touched: Mask, peers: Ints, wanted: Wanted) -> Mask:
    """Which rows may be among the first ones: fewer than are wanted of those that are not touched come before."""
    copies = np.where(touched, 0, np.minimum(held.count, wanted.limit))
    before = copies.cumsum() - copies
    places = np.arange(len(before))
    opening = np.maximum.accumulate(np.where(differ([held.block], len(before)), places, 0))
    last = before
    if wanted.with_ties:  # a row shows if the first of its peers does
        tying = np.maximum.accumulate(np.where(differ([held.block, peers[held.rank]], len(before)), places, 0))
        last = before[tying]
    first: Mask = last - before[opening] < wanted.limit
    return first

"""The rows near the changes of each of many moments, where a window's results depend on few rows on both sides.

A changed row reaches the rows whose frames hold it, and their results depend on the rows of their frames. So with a
*margin* of as many rows on both sides as frames reach in both directions, the changes at a moment can be told from the
changed rows and their margins. Each moment is a group of its own, with two moments: before its changes and after them.

Rows at the ends of the margins have others beside them than in the partition. Their results are wrong, but the same
before and after, as they see no changed row. So they do not show in the differences.

The margins of all moments are found as in `thinned`: a block of moments has the rows that it touches and their margins.
With wide margins these are many rows. So they are found for pieces of the moments, and if they are no fewer than all
rows, all rows it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from halfjoin.engine.reduce.contents import Contents
from halfjoin.engine.reduce.lasting import Lasting
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.sorting import ranks_of
from halfjoin.engine.reduce.thinned import Held, descended, together
from halfjoin.engine.updates.updates import MINIMUM, Ints, Mask, Updates, where_true
from halfjoin.planner.reach import Reach
from halfjoin.sql.relation import SortKey


def margin_of(reach: Reach | None) -> int | None:
    """How many rows on both sides the changes at a moment can be told from; None if it is no such number."""
    return None if reach is None or reach != Reach(reach.before, reach.after) else reach.before + reach.after


def rows_near(margin: int, moments: Moments, lasting: Lasting) -> Ints:
    """How many rows are near the changes of each moment, before and after it, at most."""
    _, moment, _ = lasting.updates(moments)
    changed = np.bincount(moment, minlength=len(moments))
    most = np.minimum(changed * (2 * min(margin, len(lasting.which)) + 1), lasting.sizes(len(moments)) + changed)
    return np.where(moments.was, 0, 2 * most)


def is_worth(near: Ints, sizes: Ints) -> bool:
    """Whether so many rows near the changes of each moment are fewer than all."""
    return int(near.sum()) < int(sizes.sum())


def nearby(order: Sequence[SortKey], margin: int, moments: Moments, rows: Updates, lasting: Lasting) -> Contents:
    """The contents near the changes: before and after each moment that is not what its group was, one after the other.

    `rows` are there at moments as `lasting` says. The contents have moments without keys.
    """
    which, starts, diff = lasting.updates(moments)
    rank = ranks_of(rows.take(lasting.which).columns, moments.group[lasting.start], moments.groups, order).row
    of_rank = np.empty(int(rank.max(initial=-1)) + 1, np.int64)  # a row of each rank
    of_rank[rank] = lasting.which

    def kept(held: Held, touched: Mask, blocks: Ints, ranks: Ints) -> Held:
        near, count = _are_near(held, touched, blocks * len(of_rank) + ranks, len(of_rank), margin)
        return Held(held.block, held.rank, count).where(near)

    before = descended(kept, moments, rank[which], starts, diff)
    assert before is not None  # what lasts has no negative counts
    after = together(before, Held(starts, rank[which], diff))
    number = 2 * np.cumsum(~moments.was) - 2  # of the moment before
    parts = [one.where(~moments.was[one.block]) for one in (before, after)]
    at = np.concatenate([number[parts[0].block], number[parts[1].block] + 1])
    by_moment = np.argsort(at, kind="stable")
    at = at[by_moment]
    found, count = (np.concatenate(pair)[by_moment] for pair in zip(
        *((of_rank[one.rank], one.count) for one in parts), strict=True))  # fmt: skip
    pairs = int(np.count_nonzero(~moments.was))
    time, was = np.full(2 * pairs, MINIMUM), np.tile(np.array([True, False]), pairs)
    time[1::2] = moments.time[~moments.was]
    none = at[:0]
    now = Moments({}, pairs, np.arange(pairs).repeat(2), time, was, none, none)
    return Contents(now, rows, none, none, lasting=Lasting(found, at, at + 1, count))


def _are_near(held: Held, touched: Mask, changed: Ints, ranks: int, margin: int) -> tuple[Mask, Ints]:
    """Which rows are touched or within the margins of those that are, and how many copies of them matter: of a row that
    is not touched, so many that two margins are full. `changed`: block and rank, in one number, of what is touched."""
    key, changed = held.block * ranks + held.rank, np.unique(changed)
    count = np.where(touched, held.count, np.minimum(held.count, 2 * margin))
    ends = np.append(0, np.cumsum(np.where(touched, 0, count)))  # copies of rows that are not touched
    near = touched.copy()
    place = changed.searchsorted(key)  # of the next one that is touched
    for neighbour, inside in ((place - 1, place > 0), (place, place < len(changed))):
        some = where_true(inside & ~touched)
        beside = changed[neighbour[some]]
        some, beside = (one[beside // ranks == held.block[some]] for one in (some, beside))
        edge = ends[key.searchsorted(beside)]
        near[some] |= np.where(beside < key[some], ends[some] - edge, edge - ends[some + 1]) < margin
    return near, count

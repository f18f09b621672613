"""The rows around a place in the order of large groups, with the numbers of rows before and after them.

A percentile is at a place that follows from the number of rows. When a few rows change, the new places are a few rows
away from the old value. So the runs of the input are searched for the old value, and a few entries on both sides of it
are read. An order index counts the rows ahead of any entry, so the rows that are not read need no more than a number.

What is read is a *window*: between its edges, the two rows that bound it, all rows are known. All rows at or before the
lower edge count as copies of this edge, and all at or behind the upper one as copies of that. So the window answers as
the group does, if the place is inside it at each moment. If it is at an edge, the next window is around this edge.

A row with a negative count is an error. So each row that updates take is looked up, unless a PRIMARY KEY has checked
it: there must be as many copies. Where they are not, groups are *plain*: their rows are looked up, all of them, and so
are those of small groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce import front, single
from halfjoin.engine.reduce.front import Front, depth_of
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.percentiles import places
from halfjoin.engine.reduce.reading import Reading
from halfjoin.engine.reduce.sorting import ranks_of
from halfjoin.engine.scalar.values import valid
from halfjoin.engine.updates.updates import (
    MAXIMUM,
    MINIMUM,
    Ints,
    Mask,
    Updates,
    concat,
    constant,
    gather,
    indices_of,
    where_true,
)
from halfjoin.sql.relation import SortKey

_SPARE = 4  # entries to read on each side, besides as many as there are changes
_MORE = 4  # times as many if the place is at both edges
_ROUNDS = 8
_SEARCH = 32  # entries that are looked up in the time of the searches for one row


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a percentile in an order of the values of `subject`, of those that are not NULL; NULLs come last."""

    order: tuple[SortKey, ...]
    subject: str
    function: str
    fraction: float


@dataclass(frozen=True, slots=True)
class _Changes:
    """What closes, without the rows whose value is NULL: values, and numbers of groups and of moments. `opening`: the
    updates of the first moment of their group."""

    values: pa.Array
    time: Ints
    diff: Ints
    group: Ints
    moment: Ints
    opening: Mask


def around(
    place: Place, kept: pa.Array, moments: Moments, updates: Updates, readable: Callable[[], Reading | None],
    before: int, *, checked: bool = False,
) -> Front:  # fmt: skip
    """The rows around the place, in each group at its moments after what it was; those of a group are in order.

    `kept`: the value of each group as it was; NULL if it had none. `updates`: what closes. `readable` gives the groups
    as they were below the time `before`; None if they cannot be read in order. `checked`: updates take only rows that
    are there.
    """
    values, moment = updates.columns[place.subject], moments.moment_of_rows
    there = valid(values)
    own = Updates({place.subject: values}, updates.time, updates.diff).filter(there)
    moment = moment[there]
    change = _Changes(own.columns[place.subject], own.time, own.diff, moments.group[moment], moment,
                      moments.was[moment - 1])  # fmt: skip
    given = readable()
    reading = None if given is None else given.counted()
    plain = np.ones(moments.groups, np.bool_)
    found = list[tuple[Updates, Ints]]()
    if reading is not None:
        search = _Search(place, kept, moments, change, reading, before, checked=checked)
        for _ in range(_ROUNDS):
            if not len(search.waiting):
                break
            found.append(search.round())
            plain[found[-1][1]] = False
    if not found:
        return Front(own.slice(0, 0), change.group[:0], plain)
    return Front(concat([rows for rows, _ in found]), np.concatenate([group for _, group in found]), plain, True, True)


class _Search:
    """The search for windows.

    `waiting`: the numbers of the groups whose windows have not been found; `reading`, `total` (of rows that are not
    NULL), `anchor` (a value inside the window) and `count` (of entries to read on each side) are theirs, in this order.
    """

    def __init__(
        self, place: Place, kept: pa.Array, moments: Moments, change: _Changes, reading: Reading, before: int,
        *, checked: bool,
    ) -> None:  # fmt: skip
        self.place, self.moments, self.change, self.before = place, moments, change, before
        groups, kind = moments.groups, change.values.type
        at = np.full(groups, -1)
        at[change.group[::-1]] = np.arange(len(change.group))[::-1] + groups
        at = np.where(valid(kept), np.arange(groups), at)  # without an old value, a new one will do
        anchors = pa.concat_arrays([kept.cast(kind, safe=False), change.values]).take(pa.array(at, mask=at < 0))
        taken, depth = self._taken()
        sizes = reading.sizes
        searches = np.bincount(change.group[taken], minlength=groups) * _SEARCH
        diffs = np.minimum(np.abs(change.diff), MAXIMUM >> 24)
        count = np.minimum(np.bincount(change.group, diffs, groups), sizes).astype(np.int64) + _SPARE
        self.waiting = where_true((sizes >= front.LARGE) & (at >= 0) & (searches < sizes) & (2 * count < sizes))
        self.reading = reading if len(self.waiting) == groups else reading.of(self.waiting)
        self.anchor = gather(anchors, indices_of(self.waiting))
        self.count = count[self.waiting]
        if self.reading.holds_null(place.subject):
            nulls = {place.subject: pa.nulls(len(self.waiting), kind)}
            self.reading = self.reading.until(self.reading.find(nulls, np.zeros(len(self.waiting), np.bool_)))
        self.total = self.reading.copies(self.reading.begins, self.reading.ends, before)
        if not checked:
            self._refuse(taken, depth)

    def _taken(self) -> tuple[Ints, Ints]:
        """An update of each row that updates take, and how many copies of the row they take at most."""
        change = self.change
        negative = where_true(change.diff < 0)
        if len(negative) < 2:  # there are no equal ones to add up
            return negative, -change.diff[negative]
        code = self.codes(change.values, change.group, self.moments.groups)
        first = np.empty(int(code.max()) + 1, np.int64)
        first[code] = np.arange(len(code))
        depth = depth_of(code, change.time, change.diff, len(first))
        return first[depth > 0], depth[depth > 0]

    def _refuse(self, taken: Ints, depth: Ints) -> None:
        """Give up the groups of which updates take rows that are not there."""
        number = np.full(self.moments.groups, -1)
        number[self.waiting] = np.arange(len(self.waiting))
        mine = number[self.change.group[taken]]
        taken, depth, mine = taken[mine >= 0], depth[mine >= 0], mine[mine >= 0]
        if len(taken):
            some, values = self.reading.of(mine), self.change.values.take(indices_of(taken))
            there = some.copies(*some.equal({self.place.subject: values}), self.before)
            self._keep(np.bincount(mine[there < depth], minlength=len(self.waiting)) == 0)

    def _keep(self, mask: Mask) -> None:
        """Forget the other groups."""
        kept = where_true(mask)
        self.waiting, self.total, self.count = self.waiting[kept], self.total[kept], self.count[kept]
        self.reading, self.anchor = self.reading.of(kept), self.anchor.take(indices_of(kept))

    def round(self) -> tuple[Updates, Ints]:
        """Read windows. Those inside which the place is, at each moment: their rows, and the rows' groups."""
        alone = self._alone() if len(self.waiting) == 1 and len(self.change.diff) <= single.FEW else None
        if alone is not None:
            group = self.waiting.repeat(len(alone))
            self.waiting = self.waiting[:0]
            return alone, group
        length, change = len(self.waiting), self.change
        number = np.full(self.moments.groups, -1)
        number[self.waiting] = np.arange(length)
        some = where_true(number[change.group] >= 0)
        window, mine = _Window(self, some, number[change.group[some]]), number[change.group[some]]
        left, right = self._missed(some, window, number)
        opening = change.opening[some]
        window.add(opening, change.diff[some[opening]])
        missed = left | right
        good = ~(missed | window.wrong)
        there, moved = where_true((window.copies > 0) & good[window.group]), good[mine] & ~opening
        code, time, diff = there, constant(MINIMUM, len(there)), window.copies[there]
        if moved.any():
            code = np.concatenate([there, window.shown[moved]])
            time = np.concatenate([time, change.time[some[moved]]])
            diff = np.concatenate([diff, change.diff[some[moved]]])
            order = np.argsort(code, kind="stable")
            code, time, diff = code[order], time[order], diff[order]
        found = Updates({self.place.subject: window.values(code)}, time, diff), self.waiting[window.group[code]]
        if missed.any():  # the next windows are around the edges
            edge = np.where(left, window.low, window.high)
            self.anchor = window.values(np.where(left == right, window.anchor, edge))
            self.count = np.where(left & right, self.count * _MORE, self.count)
            self._keep(missed & ~window.wrong & (2 * self.count < self.reading.sizes))
        else:
            self.waiting = self.waiting[:0]
        return found

    def _alone(self) -> Updates | None:
        """As `round`, for the only group that waits; None if the place is not inside the window, or rows are wrong."""
        change, name, place = self.change, self.place.subject, self.place
        mine = where_true(change.group == self.waiting[0])
        mine = mine[np.argsort(change.moment[mine], kind="stable")]
        values = pa.concat_arrays([self.anchor, gather(change.values, indices_of(mine))])
        read = self.reading.beside(name, values, self.count.item())
        if read is None:
            return None
        (asked, *keys), runs, arrays = read
        changed = single.Changed(keys, change.time[mine].tolist(), change.diff[mine].tolist(),
                                 int(np.count_nonzero(change.opening[mine])))  # fmt: skip
        window = single.Window(asked, runs, self.total.item())
        size, below, above = np.array(window.at(changed)).T
        first, last = places(place.function, place.fraction, size)
        rows = window.rows(changed)
        if rows is None or bool(((size > 0) & ((first < below) | (last >= size - above))).any()):
            return None
        every = [asked, *keys, *chain.from_iterable([run.keys for run in runs])]
        return single.updates_of(name, rows, [values, *arrays], every)

    def _missed(self, some: Ints, window: _Window, number: Ints) -> tuple[Mask, Mask]:
        """For each group, whether its place is at or before the lower edge, and at or behind the upper edge, at some
        moment. `some`: the changes of the groups."""
        moments, length = self.moments, len(self.waiting)
        moment, diff = self.change.moment[some], self.change.diff[some]
        opens = where_true(moments.was)
        which = where_true(~moments.was & (number[moments.group] >= 0))
        group = number[moments.group[which]]

        def running(diff: Ints) -> Ints:
            sums = _sum(moment, diff, len(moments)).cumsum()
            found: Ints = (sums - sums[opens][moments.group])[which]
            return found

        size = self.total[group] + running(diff)
        first, last = places(self.place.function, self.place.fraction, size)
        left = first < window.below[group] + running(np.where(window.is_below, diff, 0))
        right = last >= size - window.above[group] - running(np.where(window.is_above, diff, 0))
        missed = np.zeros((2, length), np.bool_)
        missed[0, group[left & (size > 0)]] = True
        missed[1, group[right & (size > 0)]] = True
        return missed[0], missed[1]

    def codes(self, values: pa.Array, group: Ints, groups: int) -> Ints:
        """Numbers of values in groups. They ascend from the first value of the first group on."""
        return ranks_of({self.place.subject: values}, group, groups, self.place.order).row


class _Window:
    """What a round reads of each group, by codes: numbers of the values, which ascend from group to group.

    `group`, `copies`: of each code; at the edges `low` and `high`, the copies are of all rows outside, too. There are
    `below` and `above` so many. `shown`: the code of each change, moved to an edge if it is outside.
    """

    def __init__(self, search: _Search, some: Ints, mine: Ints) -> None:
        reading, count, before, name = search.reading, search.count, search.before, search.place.subject
        length, each = len(search.waiting), np.arange(len(search.waiting))
        first, last = reading.equal({name: search.anchor})
        lower = [np.maximum(low, at - count) for low, at in zip(reading.begins, first, strict=True)]
        upper = [np.minimum(high, at + count) for high, at in zip(reading.ends, last, strict=True)]
        begins = [np.concatenate(pair) for pair in zip(lower, last, strict=True)]
        ends = [np.concatenate(pair) for pair in zip(first, upper, strict=True)]
        entries = reading.of(np.concatenate([each, each])).between(begins, ends, before)
        owner, back = entries.probe % length, entries.probe < length
        changed = gather(search.change.values, indices_of(some))
        self._values = pa.concat_arrays([search.anchor, entries.rows.columns[name], changed])
        group = np.concatenate([each, owner, mine])
        code = search.codes(self._values, group, length)
        self.anchor, read, new = code[:length], code[length : length + len(owner)], code[length + len(owner) :]
        self._row = np.empty(int(code.max()) + 1, np.int64)
        self._row[code[::-1]] = np.arange(len(code))[::-1]  # of equal values the first
        self.group = group[self._row]
        # A run has more rows at or before the first entry that was read, and at or behind the last one.
        self.low, self.high = np.full(length, -1), np.full(length, MAXIMUM)
        counts = np.concatenate(ends) - np.concatenate(begins)
        more = np.concatenate([side for low, least in zip(lower, reading.begins, strict=True)
                               for side in (low > least, np.zeros(length, np.bool_))])  # fmt: skip
        edge = (counts.cumsum() - counts)[more & (counts > 0)]
        np.maximum.at(self.low, owner[edge], read[edge])
        edge = where_true(entries.last & ~back)
        np.minimum.at(self.high, owner[edge], read[edge])
        inside = where_true(np.where(back, read > self.low[owner], read < self.high[owner]) & entries.mine)
        owner, back, weight = owner[inside], back[inside], entries.rows.diff[inside]
        ahead, own = reading.copies(reading.begins, first, before), reading.copies(first, last, before)
        self.below = ahead - _sum(owner, np.where(back, weight, 0), length)
        self.above = search.total - ahead - own - _sum(owner, np.where(back, 0, weight), length)
        self.copies = _sum(read[inside], weight, len(self._row))
        self.copies[self.anchor] += own
        lowest, highest = where_true(self.low >= 0), where_true(self.high < MAXIMUM)
        self.copies[self.low[lowest]] += self.below[lowest]
        self.copies[self.high[highest]] += self.above[highest]
        self.wrong = np.zeros(length, np.bool_)
        self.wrong[self.group[self.copies < 0]] = True
        self.is_below, self.is_above = new <= self.low[mine], new >= self.high[mine]
        self.shown = np.minimum(np.maximum(new, self.low[mine]), self.high[mine])

    def add(self, changes: Mask, diff: Ints) -> None:
        """Count some of the changes among the copies."""
        np.add.at(self.copies, self.shown[changes], diff)
        self.wrong[self.group[self.copies < 0]] = True

    def values(self, code: Ints) -> pa.Array:
        """The values of codes."""
        return gather(self._values, indices_of(self._row[code]))


def _sum(group: Ints, values: Ints, groups: int) -> Ints:
    """The sum of the values of each group."""
    found = np.zeros(groups, np.int64)
    np.add.at(found, group, values)
    return found

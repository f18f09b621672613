"""The reduce law: at which moments a reduce looks at which groups, and how the answers become updates.

Reduce law. A reduce acts when times close. For each closing time `t`, and each group with an update at `t`, whichever
batch brought it, and no other: `output diff at t = f(input at or below t) - output at or below t`.

So each touched group has a sequence of *moments*: what it was before the closing times, then each closing time at which
it has an update. The answer at a moment holds until the group's next moment. An answer that comes at one of the closing
times adds rows there; when the next one comes, it takes them away.

One group of numbers, whose sum is kept. It was 5; then a batch closes the times 3 and 7:

>>> updates = Updates({"k": pa.array(["a", "a"]), "v": pa.array([2, -5])}, np.array([3, 7]), np.array([1, 1]))
>>> moments = moments_of(updates, ["k"])
>>> moments.was.tolist(), moments.time[~moments.was].tolist()
([True, False, False], [3, 7])
>>> answers = {"sum": pa.array([5, 5 + 2, 5 + 2 - 5])}
>>> found = moments.changes(answers, np.arange(3), np.ones(3, np.int64))
>>> sorted(zip(found.columns["sum"].to_pylist(), found.time.tolist(), found.diff.tolist()))
[(2, 7, 1), (5, 3, -1), (7, 3, 1), (7, 7, -1)]

Three wrong ways. "After minus before of the batch": rows that arrived while their time was open are in both. To look
only at the groups that this batch touched: what closes now may have come earlier. To look once, at the last closing
time: the output between the closing times would be the old one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from halfjoin.engine.kernels import summing
from halfjoin.engine.reduce.words import differ
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.radix import argsort, of_integers, words
from halfjoin.engine.updates.updates import (
    MINIMUM,
    Ints,
    Mask,
    Updates,
    gather,
    indices_of,
    taken,
    where_true,
)


@dataclass(frozen=True)
class Moments:
    """The moments of the touched groups, side by side: each group's first moment is what it was.

    `keys`: the keys of the groups, one row each. `group`, `time`, `was`: of each moment. `rows`: the input's updates in
    order of their moments; `starts`: where in `rows` the updates of each moment begin, for those that have updates.
    `begins`: whether there is a moment, after the first `was`, that has no updates.
    """

    keys: dict[str, pa.Array]
    groups: int
    group: Ints
    time: Ints
    was: Mask
    rows: Ints
    starts: Ints
    begins: bool = False

    def __len__(self) -> int:
        return len(self.group)

    def of_groups(self, array: pa.Array) -> pa.Array:
        """A value of each group as a value of each moment."""
        return gather(array, indices_of(self.group))

    @cached_property
    def moment_of_rows(self) -> Ints:
        """The moment of each of the input's updates."""
        moment = np.empty(len(self.rows), np.int64)
        counts = np.empty_like(self.starts)
        counts[:-1], counts[-1:] = self.starts[1:], len(self.rows)
        moment[self.rows] = where_true(~self.was)[int(self.begins):].repeat(counts - self.starts)
        return moment

    @property
    def group_of_rows(self) -> Ints:
        """The group of each of the input's updates."""
        return self.group[self.moment_of_rows]

    @property
    def opening_rows(self) -> Mask:
        """Which of the input's updates belong to the first moment of their group after what it was."""
        return self.was[self.moment_of_rows - 1]

    def part(self, first: int, after: int) -> Moments:
        """Some of the moments, for the changes at them: `first` is what its group was, and those before `after` follow.
        They have no updates."""
        was = self.was[first:after].copy()
        was[:1] = True
        return Moments(self.keys, self.groups, self.group[first:after], self.time[first:after], was, self.rows[:0],
                       self.starts[:0])  # fmt: skip

    def interleaved(self) -> Ints:
        """For each moment its place in a list of what all groups were, followed by the other moments."""
        places = np.empty(len(self), np.int64)
        places[self.was] = np.arange(self.groups)
        places[~self.was] = self.groups + np.arange(len(self) - self.groups)
        return places

    def changes(
        self, answers: Mapping[str, pa.Array], moment: Ints, count: Ints, *, distinct: bool = False
    ) -> Updates:
        """The consolidated updates of rows that are the answers at moments: each comes `count` times at its moment, and
        goes at the next moment of its group. What a group was is there already.

        `distinct`: if nothing goes, the updates are consolidated as they are, or the caller does it.
        """
        ends = np.ones(len(self), np.bool_)  # the last moment of each group
        ends[:-1] = self.was[1:]
        comes, goes = where_true(~self.was[moment]), where_true(~ends[moment])
        if distinct and not len(goes) and len(comes) == len(moment):  # as in most first fills
            return Updates(dict(answers), self.time[moment], count)
        rows = np.concatenate([comes, goes])
        time = np.concatenate([self.time[moment[comes]], self.time[moment[goes] + 1]])
        diff = np.concatenate([count[comes], -count[goes]])
        updates = Updates(taken(answers, rows), time, diff)
        return updates if distinct and not len(goes) else consolidate(updates)


def moments_of(updates: Updates, keys: Sequence[str], *, always: bool = False) -> Moments:
    """The moments at which updates touch groups. `always`: there are no keys, and one more moment at the least time, in
    which the single group comes to be there."""
    arrays = [updates.columns[name] for name in keys]
    if not always and _is_one_moment(updates, arrays):
        return _one_moment(updates, dict(zip(keys, arrays, strict=True)))
    by_key, by_time = words(arrays), of_integers(updates.time)
    rows = argsort([*by_key, by_time], len(updates))
    opening = differ([word.numbers[rows] for word in by_key], len(rows))
    time = updates.time[rows]
    starts = where_true(opening | differ([time], len(rows)))
    firsts, group, time = rows[opening], opening.cumsum()[starts] - 1, time[starts]
    begins = always and not (len(time) and time[0] == MINIMUM)
    if begins:
        group, time = np.insert(group, 0, 0), np.insert(time, 0, MINIMUM)
    opens = np.ones(len(group), np.bool_)
    opens[1:] = group[1:] != group[:-1]
    after = np.arange(len(group)) + opens.cumsum()  # each group's moments come after what it was
    was = np.ones(len(group) + np.count_nonzero(opens), np.bool_)
    was[after] = False
    times, numbers = np.full(len(was), MINIMUM), np.empty(len(was), np.int64)
    times[after], numbers[after], numbers[was] = time, group, group[opens]
    by_group = {name: gather(array, indices_of(firsts)) for name, array in zip(keys, arrays, strict=True)}
    return Moments(by_group, len(was) - len(group), numbers, times, was, rows, starts, begins)


def moments_of_sums(updates: Updates, keys: Sequence[str]) -> Moments:
    """As `moments_of`, with the groups in any order."""
    arrays = [updates.columns[name] for name in keys]
    made = summing.moments(arrays, updates.time)
    if made is None:
        return moments_of(updates, keys)
    firsts, rows, starts, group, time, was = made
    return Moments(taken(dict(zip(keys, arrays, strict=True)), firsts), len(firsts), group, time, was, rows, starts)


def _is_one_moment(updates: Updates, keys: Sequence[pa.Array]) -> bool:
    """Whether all updates touch one group at one time. False also if Arrow denies that equal keys are equal (NaN)."""
    time, last = updates.time, len(updates.time) - 1
    if last < 0 or (time.strides != (0,) and not (time == time[0]).all()):
        return False
    return not [key for key in keys if not key.slice(0, last).equals(key.slice(1))]


def _one_moment(updates: Updates, keys: Mapping[str, pa.Array]) -> Moments:
    """The moments of updates that touch one group at one time, as most small batches do."""
    time = np.array([MINIMUM, updates.time[0]])
    rows, first = np.arange(len(updates)), {name: array.slice(0, 1) for name, array in keys.items()}
    return Moments(first, 1, _OF_ONE, time, _WAS_OF_ONE, rows, _OF_ONE[:1])


_OF_ONE, _WAS_OF_ONE = np.zeros(2, np.int64), np.array([True, False])
_OF_ONE.setflags(write=False)
_WAS_OF_ONE.setflags(write=False)

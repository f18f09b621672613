"""The first row of each group in a loop, for one batch time: all rounds that the groups have are looked at together.

Loop law. A group touched at a time is looked at again at each later round in which it has history. For most groups
nothing differs there, and a round of its own would find that out at the cost of a round. With one batch time, rounds
are all that tells updates apart, so the first rows in all of them can be found at once:

    rows at or below a round = the rows of the group in order of rounds, up to there
    what differs in a round  = the first of them, less the first that the output has up to there

What differs in the present round is the output. A later round is looked at again only if something differs there, too.
Whatever touches the group in between has it looked at again anyway, because it joins with the same history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.part import Part
from halfjoin.engine.kernels import summing
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.lookup import group_of, lookup_of, stream_of
from halfjoin.engine.reduce.words import look, ordered_words, places
from halfjoin.engine.updates.lattice import ints
from halfjoin.engine.updates.updates import MINIMUM, Ints, Mask, Updates, constant, gather, indices_of
from halfjoin.planner.group_functions import Top
from halfjoin.planner.plan import ROUND, Reduce, Version
from halfjoin.sql.expr import Column

_NONE = -1  # the place of the first row of a group without rows
_MOST = 1 << 16  # pairs of a round and a row of its group, to look at together; past it, 8 for each row


class History(NamedTuple):
    """Updates of groups, by the number of the group, the round, and the place of the row in the order of all rows that
    are there. Equal rows have equal places."""

    group: Ints
    round: Ints
    place: Ints
    diff: Ints


class Differences(NamedTuple):
    """`now`, `place`, `diff`: the updates of the output in the present round: groups, places of rows, how many come.
    `group`, `round`: what must be looked at again."""

    now: Ints
    place: Ints
    diff: Ints
    group: Ints
    round: Ints


class FirstRow:
    """Finds the output of a reduce that keeps the first row of each group, ordered by at most one column."""

    def __init__(self, plan: Reduce, registry: Registry) -> None:
        assert isinstance(plan.function, Top) and plan.state is not None and plan.groups is not None
        self.order = plan.function.order
        keys = [key.name for key in plan.keys]
        self.values = [column.name for column in plan.columns if column.name not in (*keys, ROUND)]
        self.made, self.rows = (
            lookup_of(key, plan.keys, [*self.values, ROUND], Version.AFTER, registry, adds_up=False)
            for key in (plan.state, plan.groups)
        )

    @classmethod
    def of(cls, plan: Reduce, registry: Registry) -> FirstRow | None:
        """It for a reduce; None if the reduce keeps something else."""
        function = plan.function
        if plan.groups is None or not isinstance(function, Top):
            return None
        found = cls(plan, registry)
        ordered = [key.expr.name for key in function.order if isinstance(key.expr, Column)]
        single = (function.limit, function.offset, function.with_ties) == (1, 0, False)
        return found if single and len(ordered) == len(function.order) <= 1 and found.values == ordered else None

    def round(
        self, touched: Moments, made: Sequence[Part], rows: Sequence[Part], round: int, before: int
    ) -> tuple[Updates, Updates] | None:
        """The output of a round and the groups to look at again, as `RoundReduce.round`; None if it is not so simple.

        `made`, `rows`: the parts of the output and of the input, with all that there is in this round.
        """
        times = touched.time[~touched.was]
        time = int(times[0])
        if (times != time).any():
            return None
        groups = stream_of(touched)
        asked = Updates(groups.columns, constant(time, len(groups)), groups.diff)
        was, there = ([*operator(asked, parts, before, max(time, MINIMUM + 1))]
                      for operator, parts in ((self.made, made), (self.rows, rows)))  # fmt: skip
        if any((piece.time > time).any() for piece in (*was, *there)):
            return None
        place, values = self._places([*there, *was])
        length = sum(map(len, there))
        found = differences(touched.groups, round, _history(there, place[:length]), _history(was, place[length:]))
        if found is None:
            return None
        columns = {name: gather(array, indices_of(found.now)) for name, array in touched.keys.items()}
        columns |= {name: gather(values, indices_of(found.place)) for name in self.values if values is not None}
        columns[ROUND] = pa.array(np.full(len(found.now), round))
        due = {name: gather(array, indices_of(found.group)) for name, array in touched.keys.items()}
        return (
            Updates(columns, constant(time, len(found.now)), found.diff),
            Updates({**due, ROUND: pa.array(found.round)}, constant(time, len(found.group)),
                    constant(1, len(found.group))),
        )  # fmt: skip

    def _places(self, pieces: Sequence[Updates]) -> tuple[Ints, pa.Array | None]:
        """The place of each row in the order, and the value at each place."""
        if not self.values:
            return np.zeros(sum(map(len, pieces)), np.int64), None
        (key,), (name,) = self.order, self.values
        values = pa.concat_arrays([piece.columns[name] for piece in pieces] or [pa.nulls(0)])
        words = [*ordered_words(values, key.descending, key.nulls_first), *look(values)]
        numbers = words[0] if len(words) == 1 else places(words, len(values))
        _, first, place = np.unique(numbers, return_index=True, return_inverse=True)
        return place.ravel(), gather(values, indices_of(first))


def _history(pieces: Sequence[Updates], place: Ints) -> History:
    """The rows that a lookup of groups finds. Rows that cancel may be there, and are added up with all others."""
    none = [np.zeros(0, np.int64)]
    group, round, diff = (
        found[0] if len(found) == 1 else np.concatenate(found or none)
        for found in ([group_of(piece) for piece in pieces], [ints(piece, ROUND) for piece in pieces],
                      [piece.diff for piece in pieces])
    )  # fmt: skip
    return History(group, round, place, diff)


def differences(groups: int, round: int, rows: History, made: History) -> Differences | None:
    """What the output of `groups` groups must change in a round, given all updates of their rows and of their output.

    None: a row counts less than zero times.

    A group had a 7 from round 0, and a 4 in its place from round 2 on, as its output still has. Now a 5 comes in round
    1:

    >>> rows = History(np.zeros(4, np.int64), np.array([0, 2, 2, 1]), np.array([7, 7, 4, 5]), np.array([1, -1, 1, 1]))
    >>> made = History(np.zeros(3, np.int64), np.array([0, 2, 2]), np.array([7, 7, 4]), np.array([1, -1, 1]))
    >>> found = differences(1, 1, rows, made)
    >>> found.place.tolist(), found.diff.tolist()  # in round 1 the 7 goes and the 5 comes
    ([5, 7], [1, -1])
    >>> found.round.tolist()  # so in round 2 it is the 5 that goes
    [2]
    """
    width = 1 + max(int(rows.place.max(initial=0)), int(made.place.max(initial=0)))
    if (found := summing.firsts(groups, round, width, rows, made)) is not None:
        return Differences(*found)
    group = np.concatenate([np.arange(groups), rows.group, made.group])
    at = np.concatenate([np.full(groups, round), np.maximum(rows.round, round), np.maximum(made.round, round)])
    span = int(at.max(initial=round)) + 1
    moments, unseen = _fresh(np.sort(group * span + at)), made.group[:0]  # of each group: this round, and later ones
    if not _few(groups, moments // span, rows.group):
        now = moments % span == round
        moments, unseen = moments[now], moments[~now]
    group, present = moments // span, moments % span == round
    first, odd = _firsts(moments, group * span, span, rows)
    if odd[present].any():
        return None
    # What differs in this round: the first row, less all that is made so far. In a later round: what the first row is
    # more than it is in this round, less what is made after this round.
    moment, entries = _between(moments, np.where(present, group * span, group * span + round + 1), span, made)
    here, later = np.flatnonzero(first != _NONE), np.flatnonzero(~present & (first[present][group] != _NONE))
    moment, place, diff = _added(
        np.concatenate([moment, here, later]),
        np.concatenate([made.place[entries], first[here], first[present][group[later]]]),
        np.concatenate([-made.diff[entries], np.ones(len(here), np.int64), np.full(len(later), -1)]),
    )
    odd[moment] = True
    now = present[moment]
    again = np.concatenate([unseen, moments[odd & ~present]])
    return Differences(group[moment[now]], place[now], diff[now], again // span, again % span)


def _few(groups: int, moments: Ints, rows: Ints) -> bool:
    """Whether the rounds of the groups, each with all rows of its group, are few enough to look at together."""
    most = max(_MOST, 8 * len(rows))
    return len(moments) == groups or int(np.bincount(rows, minlength=groups)[moments].sum()) <= most


def _firsts(moments: Ints, starts: Ints, span: int, rows: History) -> tuple[Ints, Mask]:
    """The place of the first row that is there at each moment, or -1; and whether a row counts less than zero times."""
    moment, entries = _between(moments, starts, span, rows)
    moment, place, count = _added(moment, rows.place[entries], rows.diff[entries])
    odd = np.zeros(len(moments), np.bool_)
    odd[moment[count < 0]] = True
    first = np.full(len(moments), _NONE)
    there = np.flatnonzero(count > 0)[::-1]  # the first one is written last
    first[moment[there]] = place[there]
    return first, odd


def _between(moments: Ints, starts: Ints, span: int, updates: History) -> tuple[Ints, Ints]:
    """The updates of each moment's group in the rounds from a start to the moment: number of the moment, and of the
    update. Moments and starts are numbers `group * span + round`."""
    own = updates.group * span + updates.round
    order = np.argsort(own, kind="stable")
    own = own[order]
    first, end = own.searchsorted(starts), own.searchsorted(moments, "right")
    counts = end - first
    moment = np.arange(len(moments)).repeat(counts)
    return moment, order[np.arange(len(moment)) + (first - (counts.cumsum() - counts)).repeat(counts)]


def _added(moment: Ints, place: Ints, diff: Ints) -> tuple[Ints, Ints, Ints]:
    """Equal moments and places once, in order, with the sum of their diffs, if that is not 0."""
    width = int(place.max(initial=0)) + 1
    keys = moment * width + place
    order = np.argsort(keys)
    keys = keys[order]
    opens = np.flatnonzero(_new(keys))
    sums = np.add.reduceat(diff[order], opens) if len(opens) else diff[:0]
    kept = sums != 0
    keys = keys[opens[kept]]
    return keys // width, keys % width, sums[kept]


def _fresh(ascending: Ints) -> Ints:
    """Each number once."""
    return ascending[_new(ascending)]


def _new(ascending: Ints) -> Mask:
    """Where a new number begins."""
    found = np.ones(len(ascending), np.bool_)
    found[1:] = ascending[1:] != ascending[:-1]
    return found


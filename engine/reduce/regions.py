"""Window functions where a change reaches: a few rows of a partition are read and evaluated, not the partition.

State law. A changed row reaches rows beside it, and with running results all rows behind it until what the results
continue from is what it was. A *region* has the rows that changes at a place reach, and as many rows on both sides as
their results depend on. It is read from the output, which has all rows of the group with their results. So what the
results continue from is in the row before the region, and in the row after it.

The region is evaluated at each moment of its changes as if it were the partition. Rows at its ends, which no change
reaches, may get other results than they have, but the same at all moments. So they do not show in the differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.arrange.order import OrderKey
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.join.closing import Closing
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.reduce import windows
from halfjoin.engine.reduce.contents import Contents, contents_of
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.lasting import Lasting
from halfjoin.engine.reduce.law import Moments, moments_of
from halfjoin.engine.reduce.lookup import GROUP, group_of
from halfjoin.engine.reduce.places import Places
from halfjoin.engine.reduce.reading import Reader
from halfjoin.engine.reduce.running import Beside, Sides
from halfjoin.engine.reduce.shown import near_changes
from halfjoin.engine.reduce.sight import Sight
from halfjoin.engine.reduce.spans import taken
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.reduce.words import look, ordered_words
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Ints, Mask, Updates
from halfjoin.planner.group_functions import Windows
from halfjoin.planner.plan import Reduce
from halfjoin.planner.reach import Reach, sides_of, states_of
from halfjoin.sql.relation import Bound, Frame

LARGE = 2048  # entries; smaller groups are looked up whole, which costs less than to search them
_SPARE = 16  # entries to read besides those that are surely needed
_GROWTH = 4  # times as many entries are read when those at hand were too few


@dataclass(frozen=True, slots=True)
class Side:
    """What results continue from on one side of a region: the columns of the row there that tell it.

    `sums`: those that add up. `number`: the rows from the end of the partition to this row, if they are counted; of
    copies of a row, the one that is nearest has the highest number.
    """

    state: Sequence[str]
    sums: Sequence[tuple[str, Sequence[str]]]  # the kinds and the arguments
    number: str | None


@dataclass(frozen=True, slots=True)
class Regions:
    """Reads and evaluates what changes reach. `names`: the input's columns. `before`, `after`: what results continue
    from."""

    function: Windows
    reach: Reach
    names: Sequence[str]
    before: Side
    after: Side
    reader: Reader
    registry: Registry

    def evaluated(
        self, moments: Moments, updates: Updates, group: Ints, runs: Sequence[Part], closing: Closing
    ) -> tuple[list[Updates], Mask]:
        """The updates of the output that the changes of groups make, and which groups must be looked up whole instead.

        `updates` and `group`: what closes, and the number of each update's group. `runs`: of the output.
        """
        plain, found = np.ones(moments.groups, np.bool_), list[Updates]()
        reading = self.reader.reading(list(moments.keys.values()), moments.groups, runs, closing.netted)
        # If rows have negative counts, or a function failed, the output does not have all rows.
        if reading is None or closing.failing(self.reader.key.arrangement.collection):
            return found, plain
        plain = reading.sizes < LARGE
        mine = ~plain[group]
        if not mine.any():
            return found, plain
        changed = updates.select(self.names).filter(mine)
        reach = self.reach
        margin = reach.before + reach.after + sum(reach.groups) + sum(sum(counts) for _, *counts in reach.given)
        places = Places.of(
            changed, group[mine], reading, self.function.order, peers=reach.peers, margin=margin + 1 + _SPARE,
            to_first=_moves(self.after, moments, updates), to_last=_moves(self.before, moments, updates),
        )  # fmt: skip
        while len(places):
            places = places.apart()
            now = moments_of(changed.with_columns({GROUP: pa.array(places.row)}), [GROUP])
            done, failed, back, ahead, made = self._settled(places, changed, now, closing.before)
            plain[places.group[failed]] = True
            waiting = np.zeros(len(plain), np.bool_)
            waiting[places.group[~done]] = True
            good = ~(waiting | plain)[places.group]
            if isinstance(made, Updates):
                rest = [name for name in made.columns if name != GROUP]
                found.append(made.filter(good[group_of(made)]).select(rest))
            elif made is not None:
                made = made.where(good[now.group[made.numbers]])
                found.append(now.changes(made.columns, made.numbers, made.count))
            places = places.grown(back, ahead, _GROWTH)
            places, kept = places.only((waiting & ~plain)[places.group])
            changed = changed.filter(kept)
        return found, plain

    def _settled(
        self, places: Places, changed: Updates, moments: Moments, before: int
    ) -> tuple[Mask, Mask, Mask, Mask, Groups | Updates | None]:
        """Evaluate the regions at places: the rows with their results at all moments of each place, or their changes
        with the place as `GROUP`.

        Returns which places are done, which cannot be done as their groups must be looked up whole, and which must be
        longer at their begin, and at their end.
        """
        entries = places.entries(before, self.names)
        sight = Sight(self.function.order, self.reach, changed, places.row, entries, len(places))
        failed, back, ahead = sight.wrong.copy(), ~sight.enough_before, ~sight.enough_after
        if not sight.ready.any():
            return sight.ready, failed, back, ahead, None
        rows, group = sight.rows(sight.ready)
        contents = contents_of(moments, rows, group, before)
        failed[moments.group[contents.negative]] = True
        if contents.lasting is not None and (near := self._near(contents, contents.lasting)) is not None:
            return sight.ready & ~failed, failed, back, ahead, near
        at_first = self._beside(self.before, places, sight, sight.before, moments) if self.reach.running else None
        at_last = self._beside(self.after, places, sight, sight.after, moments) if self.reach.remaining else None
        groups = contents.groups
        while True:
            groups = groups.where(~failed[moments.group[groups.numbers]])
            try:
                made = windows.evaluate(self.function, groups, self.registry, Sides(at_first, at_last))
                break
            except Failed as problem:
                failures = problem.failures(len(groups)).only(np.diff(groups.starts) > 0)
                if failures is None:
                    raise
                failed[moments.group[failures.rows]] = True
        done = sight.ready & ~failed
        copies = np.append(0, np.cumsum(made.count))
        first, last = copies[made.starts[:-1]], copies[made.starts[1:]] - 1  # copies of each moment
        if at_last is not None:
            at = first + sight.head[moments.group]
            at = np.where(at > last, -1, copies.searchsorted(at, "right") - 1)
            back[_differing(self.after, made, at, at_last, moments, done & ~sight.begins)] = True
        if at_first is not None:
            at = last - sight.tail[moments.group]
            at = np.where(at < first, -1, copies.searchsorted(at, "right") - 1)
            ahead[_differing(self.before, made, at, at_first, moments, done & ~sight.ends)] = True
        return done & ~back & ~ahead, failed, back, ahead, made

    def _near(self, contents: Contents, lasting: Lasting) -> Updates | None:
        """The changes with the place as `GROUP`; None if they are not told from the rows near the changed ones."""
        place = np.zeros(len(contents.rows), np.int64)
        place[lasting.which] = contents.moments.group[lasting.start]
        rows = contents.rows.with_columns({GROUP: pa.array(place)})
        return near_changes(self.function, replace(contents, rows=rows), self.registry)

    def _beside(self, side: Side, places: Places, sight: Sight, ranks: Ints, moments: Moments) -> Beside:
        """The results that each moment's region continues from."""
        names = list(dict.fromkeys([*side.state, *([] if side.number is None else [side.number])]))
        rows, group = places.reading.values(sight.entries, sight.entries_of(ranks), names)
        rows = consolidate(rows.with_columns({GROUP: pa.array(group)}), by_time=False)
        rows = rows.filter(rows.diff > 0)
        group = group_of(rows)
        order = np.argsort(group, kind="stable")
        if side.number is not None:  # of copies of a row the nearest
            order = np.lexsort([rows.columns[side.number].to_numpy(), group])
        row = np.full(len(places), -1)
        row[group[order]] = order
        return Beside(rows.columns, row[moments.group])


def _moves(side: Side, moments: Moments, updates: Updates) -> Mask:
    """Whether the updates of a group change its sums. Then all sums behind them are others, up to the end."""
    moved = np.zeros(len(moments.starts), np.bool_)
    for kind, args in side.sums:
        added = Totals.lifted(kind, [updates.columns[arg] for arg in args], updates.diff)
        kept = added.take(moments.rows).added(moments.starts).kept()
        zero = Totals.read(kind, pa.nulls(1, kept.type)).kept()[0]
        moved |= pc.not_equal(kept, zero).to_numpy(zero_copy_only=False)
    found = np.zeros(moments.groups, np.bool_)
    found[moments.group[~moments.was][moved]] = True
    return found


def _differing(side: Side, made: Groups, at: Ints, beside: Beside, moments: Moments, asked: Mask) -> Ints:
    """Those of the places asked for where results beyond the region would continue from other ones than before.

    `at`: the row of each moment that they would continue from; -1: the row beside the region.
    """
    moment = np.flatnonzero(asked[moments.group] & ~moments.was)
    was = np.maximum.accumulate(np.where(moments.was, np.arange(len(moments)), 0))[moment]
    rows = np.concatenate([moment, was])
    known = np.where(beside.row < 0, -1, len(made.count) + beside.row)
    rows = np.where(at < 0, known, at)[rows]
    moved = np.zeros(len(moment), np.bool_)
    for name in side.state:
        result = taken(pa.concat_arrays([made.columns[name], beside.results[name]]), rows)
        for word in (*ordered_words(result), *look(result)):
            moved |= word[: len(moment)] != word[len(moment) :]
    return moments.group[moment[moved]]


def regions_of(plan: Reduce, names: Sequence[str], registry: Registry) -> Regions | None:
    """The regions of a window whose functions have a reach. `names`: the columns of its input."""
    function = plan.function
    if not isinstance(function, Windows) or function.reach is None or plan.state is None:
        return None
    others = [column.name for column in function.results]
    reader = Reader(OrderKey(plan.state, function.order, (*names, *others)), [key.name for key in plan.keys], registry)
    before, after = _side(function, Frame("rows"), 0), _side(function, _TO_LAST, 1)
    return Regions(function, function.reach, tuple(names), before, after, reader, registry)


def _side(function: Windows, rows: Frame, number: int) -> Side:
    """What results continue from. `rows`: the frame that numbers rows. `number`: of the side."""
    sums = [one for one in function.running if sides_of(one.frame)[number] == one.frame]
    state = [column.name for column, call in function.calls
             if states_of(call)[number] == call or (number == 0 and call.function == "dense_rank")]  # fmt: skip
    numbers = function.sums_over("count", (), rows)
    return Side(
        [*(one.sums.column.name for one in sums), *state],
        [(one.sums.kind, [arg.name for arg in one.sums.args]) for one in sums],
        None if numbers is None else numbers.name,
    )


_TO_LAST = Frame("rows", Bound("current row"), Bound("following"))

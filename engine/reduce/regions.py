"""Window functions where a change reaches: a few rows of a partition are read and evaluated, not the partition.

State law. A changed row reaches rows beside it, and with running results all rows behind it until what the results
continue from is what it was. A *region* has the rows that a group's changes reach, and as many rows on both sides as
their results depend on. It is read from the output, which has all rows of the group with their results. So what the
results continue from is in the row before the region.

The region is evaluated at each moment of the group as if it were the partition. Rows at its ends, which no change
reaches, may get other results than they have, but the same at all moments. So they do not show in the differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.arrange.order import OrderKey
from halfjoin.engine.arrange.run import Part
from halfjoin.engine.join.dataflow import Closing
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.reduce import windows
from halfjoin.engine.reduce.contents import contents_of
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.lookup import GROUP, group_of
from halfjoin.engine.reduce.reading import Entries, Reader, Reading
from halfjoin.engine.reduce.running import Starts
from halfjoin.engine.reduce.sight import Sight
from halfjoin.engine.reduce.sorting import ranks_of
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.reduce.words import ordered_words
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Ints, Mask, Updates, indices_of, where_true
from halfjoin.planner.group_functions import Windows
from halfjoin.planner.plan import Reduce
from halfjoin.planner.reach import Reach, reach_of
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import WindowCall

LARGE = 2048  # entries; smaller groups are looked up whole, which costs less than to search them
_SPARE = 16  # entries to read besides those that are surely needed
_GROWTH = 4  # times as many entries are read when those at hand were too few


@dataclass(frozen=True, slots=True)
class Regions:
    """Reads and evaluates what changes reach. `names`: the input's columns. `state`: the results to continue from.

    `number`: the result that numbers the rows, if `state` has it.
    """

    function: Windows
    reach: Reach
    names: Sequence[str]
    state: Sequence[str]
    number: str | None
    reader: Reader
    registry: Registry

    def evaluated(
        self, moments: Moments, updates: Updates, group: Ints, runs: Sequence[Part], closing: Closing
    ) -> tuple[list[Groups], Mask]:
        """The rows of regions with their results at all moments; and which groups must be looked up whole.

        `updates` and `group`: what closes, and the number of each update's group. `runs`: of the output.
        """
        plain, found = np.ones(moments.groups, np.bool_), list[Groups]()
        reading = self.reader.reading(list(moments.keys.values()), moments.groups, runs, closing.netted)
        # If rows have negative counts, or a function failed, the output does not have all rows.
        if reading is None or closing.failing(self.reader.key.arrangement.collection):
            return found, plain
        sizes = reading.sizes
        waiting = where_true(sizes >= LARGE)
        if not len(waiting):
            return found, plain
        plain[waiting] = False
        reading, updates = reading.of(waiting), updates.select(self.names)
        reading.seek(self._firsts(updates, group, waiting))
        reach = self.reach.before + self.reach.after + sum(self.reach.groups)
        back = np.full(len(waiting), reach + 1 + _SPARE)
        count = back + np.bincount(group, minlength=moments.groups)[waiting]
        count = np.where(self._moves_sums(moments, updates)[waiting], sizes[waiting], count)
        while len(waiting):
            local = np.full(moments.groups, -1)
            local[waiting] = np.arange(len(waiting))
            mine = local[group] >= 0
            changed, number = updates.filter(mine), local[group[mine]]
            entries = reading.take(count, closing.before, back=back, names=self.names)
            sight = Sight(self.function.order, self.reach, changed, number, entries, len(waiting))
            starts = self._starts(reading, entries, sight) if self.reach.running and sight.ready.any() else None
            done, failed = self._settled(sight, starts, moments, local, closing.before, found)
            plain[waiting[failed]] = True
            back = np.where(sight.enough_before, back, back * _GROWTH)
            count = np.where(sight.enough_after & ~sight.ready, count, count * _GROWTH)
            left = where_true(~done & ~failed)
            waiting, reading, back, count = waiting[left], reading.of(left), back[left], count[left]
        return found, plain

    def _moves_sums(self, moments: Moments, updates: Updates) -> Mask:
        """Whether the updates of a group change its sums. Then all sums behind them are others, up to the last row."""
        moved = np.zeros(len(moments.starts), np.bool_)
        for part in (one.sums for one in self.function.running):
            added = Totals.lifted(part.kind, [updates.columns[arg.name] for arg in part.args], updates.diff)
            kept = added.take(moments.rows).added(moments.starts).kept()
            zero = Totals.read(part.kind, pa.nulls(1, kept.type)).kept()[0]
            moved |= pc.not_equal(kept, zero).to_numpy(zero_copy_only=False)
        found = np.zeros(moments.groups, np.bool_)
        found[moments.group[~moments.was][moved]] = True
        return found

    def _firsts(self, updates: Updates, group: Ints, waiting: Ints) -> dict[str, pa.Array]:
        """The first changed row of each group that waits; of peers only their sort keys."""
        rank = ranks_of(updates.columns, group, int(group.max()) + 1, self.function.order).row
        order = np.argsort(rank)
        places = order[group[order].searchsorted(waiting)]
        names = [key.expr.name for key in self.function.order if isinstance(key.expr, Column)]
        return updates.select(names if self.reach.peers else self.names).take(places).columns

    def _starts(self, reading: Reading, entries: Entries, sight: Sight) -> Starts:
        """The results that each group's region continues from."""
        rows, group = reading.values(entries, sight.befores, self.state)
        rows = consolidate(rows.with_columns({GROUP: pa.array(group)}), by_time=False)
        rows = rows.filter(rows.diff > 0)
        group = group_of(rows)
        order = np.argsort(group, kind="stable")
        if self.number is not None:  # of copies of a row the last
            order = np.lexsort([rows.columns[self.number].to_numpy(), group])
        row = np.full(len(sight.before), -1)
        row[group[order]] = order
        return Starts(rows.columns, row)

    def _settled(
        self, sight: Sight, starts: Starts | None, moments: Moments, local: Ints, before: int, found: list[Groups]
    ) -> tuple[Mask, Mask]:
        """Evaluate the regions at hand, from what they continue from, and add those that need not be longer to `found`.

        `local`: the number in `sight` of each group, -1 for others. Returns which groups of `sight` are done, and which
        must be looked up whole.
        """
        failed, of_moment = sight.wrong.copy(), local[moments.group]
        if not sight.ready.any():
            return sight.ready, failed
        rows, group = sight.rows(sight.ready)
        contents = contents_of(moments, rows, where_true(local >= 0)[group], before)
        failed[of_moment[contents.negative]] = True
        if starts is not None:
            starts = Starts(starts.results, np.append(starts.row, -1)[of_moment])  # of others: the last one
        groups = contents.groups
        while True:
            groups = groups.where(~failed[of_moment[groups.numbers]])
            try:
                made = windows.evaluate(self.function, groups, self.registry, starts)
                break
            except Failed as problem:
                failures = problem.failures(len(groups)).only(np.diff(groups.starts) > 0)
                if failures is None:
                    raise
                failed[of_moment[failures.rows]] = True
        done = sight.ready & ~failed
        if self.reach.running:
            done[of_moment[self._moved(made, moments, (done & ~sight.ends)[of_moment] & (of_moment >= 0))]] = False
        found.append(made.where(done[of_moment[made.numbers]]))
        return done, failed

    def _moved(self, made: Groups, moments: Moments, asked: Mask) -> Ints:
        """Those of the moments asked for at which results behind the region would continue from other ones than before.
        """
        moment = where_true(asked & ~moments.was)
        was = np.maximum.accumulate(np.where(moments.was, np.arange(len(moments)), 0))[moment]
        rows = indices_of(np.concatenate([made.starts[moment + 1], made.starts[was + 1]]) - 1)
        words = [word for name in self.state for word in ordered_words(made.columns[name].take(rows))]
        moved = np.zeros(len(moment), np.bool_)
        for word in words:
            moved |= word[: len(moment)] != word[len(moment) :]
        return moment[moved]


def regions_of(plan: Reduce, names: Sequence[str], registry: Registry) -> Regions | None:
    """The regions of a window whose functions have a reach. `names`: the columns of its input."""
    function = plan.function
    if not isinstance(function, Windows) or function.reach is None or plan.state is None:
        return None
    number = None if function.number is None else function.number.name
    running = [column.name for column, call in function.calls if call.function != "rank" and _runs(call)]
    state = [*(one.sums.column.name for one in function.running), *running]
    others = [column.name for column in function.results]
    reader = Reader(OrderKey(plan.state, function.order, (*names, *others)), [key.name for key in plan.keys], registry)
    return Regions(function, function.reach, tuple(names), tuple(state), number, reader, registry)


def _runs(call: WindowCall) -> bool:
    reach = reach_of(call)
    return reach is not None and reach.running

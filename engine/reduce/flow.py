"""The executable reduce: it takes a batch's closing updates, or a whole history, to updates of its output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.part import Part, as_runs, present
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join.closing import Closing, RunsOf
from halfjoin.engine.kernels import native
from halfjoin.engine.linear.failures import NO_ERRORS
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.reduce import at_once
from halfjoin.engine.reduce.aggregates import aggregated, each_once
from halfjoin.engine.reduce.by_kernel import summed_groups
from halfjoin.engine.reduce.contents import Contents
from halfjoin.engine.reduce.extremes import Extremes, extremes_and_sums
from halfjoin.engine.reduce.front import Front, Wanted
from halfjoin.engine.reduce.in_place import extremes_in_place
from halfjoin.engine.reduce.law import Moments, moments_of, moments_of_sums
from halfjoin.engine.reduce.leaders import leaders, leaders_of
from halfjoin.engine.reduce.lifted import Lifted, lift_all, lift_change
from halfjoin.engine.reduce.lookup import GROUP, group_of, lookup_of, stream_of
from halfjoin.engine.reduce.own import answers
from halfjoin.engine.reduce.quantiles import Quantiles, quantiles_and_sums
from halfjoin.engine.reduce.regions import Regions, regions_of
from halfjoin.engine.reduce.seen import Seen, seen_by
from halfjoin.engine.reduce.shown import of_top, of_windows
from halfjoin.engine.reduce.unmoved import keeps_rows, keeps_values
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.updates.consolidate import cancel, consolidate
from halfjoin.engine.updates.updates import (
    MINIMUM,
    Ints,
    Updates,
    concat,
    constant,
    empty,
    fitting,
    some_below_zero,
    taken,
)
from halfjoin.planner.group_functions import Aggregates, Own, Top, Windows
from halfjoin.planner.plan import Reduce, Version
from halfjoin.sql.expr import Column


class ReduceFlow:
    """An executable reduce. It keeps nothing between batches: what it keeps is its output and its input.

    The interface is that of `join.dataflow.Dataflow`.
    """

    def __init__(self, plan: Reduce, registry: Registry, name: str) -> None:
        self.plan, self.registry, self.name = plan, registry, name
        self.loop = plan.loop
        self.schema = {column.name: arrow_type(column.type) for column in plan.columns}
        self.reads = self.asked = frozenset(plan.collections)
        self._keys = [key.name for key in plan.keys]
        self.always = not plan.keys and isinstance(plan.function, Aggregates)  # its only group is always there
        self.columns = {column.name: arrow_type(column.type) for column in (*plan.keys, *columns_read(plan))}
        self._names = list(self.columns)
        self._regions = regions_of(plan, self._names, registry)
        self._kept = None if plan.state is None or self._regions is not None else lookup_of(
            plan.state, plan.keys, self.schema, Version.BEFORE, registry, adds_up=False)  # fmt: skip
        self._summed = summed_groups(plan, self._kept, self.schema) if self._regions is None else None
        self._rows = None if plan.groups is None else lookup_of(
            plan.groups, plan.keys, self._names, Version.AFTER, registry)  # fmt: skip
        self._seen = () if plan.groups is None else seen_by(plan, self._names, registry)

    def changes(self, staged: Mapping[str, Part], lookup: RunsOf, closing: Closing) -> tuple[Updates | Run, Updates]:
        """The output and error updates at the times that a batch closes, both consolidated. A run has an index, too."""
        updates = closing.updates(self.plan.input)
        if not len(updates):
            return empty(self.schema), NO_ERRORS
        if self._summed is not None and native.on:
            made = self._summed.changes(updates, lookup(self.plan.output, Version.BEFORE), closing)
            if made is not None:
                return made, NO_ERRORS
        if self._rows is None:  # the sums are all that it needs
            return self.added(lift_change(self._sums, self._keys, updates), lookup, closing)
        moments = moments_of(updates, self._keys)
        stream = stream_of(moments)
        if self._regions is not None:
            return self._in_regions(self._regions, stream, updates, moments, lookup, closing)
        was = self._was(moments, stream, lookup, closing)
        kept = self._by_group(was, moments.groups) if isinstance(self.plan.function, Aggregates) else None
        fronts = self._fronts(updates, moments, was, kept, lookup, closing)
        found = [front for front in fronts.values() if front is not None]
        rows, group = self._looked_up(stream, updates, found, lookup, closing) if found else (None, constant(0, 0))
        contents = {seen: None if front is None else seen.contents(moments, front, rows, group, closing.before)
                    for seen, front in fronts.items()}  # fmt: skip
        return self._made(self._lifted(updates), moments, kept, contents, was=was)

    def _in_regions(
        self, regions: Regions, stream: Updates, updates: Updates, moments: Moments, lookup: RunsOf, closing: Closing
    ) -> tuple[Updates, Updates]:
        """The updates of a window that sees no more of large groups than what the changes reach."""
        runs = lookup(self.plan.output, Version.BEFORE)
        found, plain = regions.evaluated(moments, updates, moments.group_of_rows, runs, closing)
        if not plain.any():
            return self._made(None, moments, None, {}, found)
        (seen,) = self._seen
        front = replace(seen.nothing(moments, updates), plain=plain)
        rows, group = self._looked_up(stream, updates, [front], lookup, closing)
        contents = seen.contents(moments, front, rows, group, closing.before)
        return self._made(None, moments, None, {seen: contents}, found, whole=not closing.failing(self.plan.output))

    @property
    def _sums(self) -> Aggregates:
        assert isinstance(self.plan.function, Aggregates)  # no other function adds up
        return self.plan.function

    def added(self, lifted: Lifted, lookup: RunsOf, closing: Closing) -> tuple[Updates, Updates]:
        """As `changes`, for a reduce of sums alone, given what the closing updates add."""
        moments = moments_of_sums(lifted.rows, self._keys)
        was = self._was(moments, stream_of(moments), lookup, closing)
        return self._made(lifted, moments, self._by_group(was, moments.groups), {})

    def read(self, sums: Updates) -> Lifted:
        """What rows of sums add (`Lifted.kept`)."""
        return Lifted.read(self._sums, self._keys, sums)

    def _was(self, moments: Moments, stream: Updates, lookup: RunsOf, closing: Closing) -> Updates:
        """The rows of the output of the groups as they were, with `GROUP`; no rows if the function does not ask."""
        found = list[Updates]()
        if self._kept is not None:
            found = list(self._kept(stream, lookup(self.plan.output, Version.BEFORE), closing.netted,
                                    closing.begins))
        if not found:
            return empty({**self.schema, GROUP: pa.int64()})
        one = isinstance(self.plan.function, Aggregates)  # a group has one row, so only what went can be apart
        return cancel(concat(found), by_time=False) if one else consolidate(concat(found), by_time=False)

    def _by_group(self, rows: Updates, groups: int) -> dict[str, pa.Array]:
        """The values kept for each group, NULL where nothing is kept: the columns of the output that are no keys."""
        columns = {name: rows.columns[name] for name in self.schema if name not in self._keys}
        if groups == len(rows) == 1:
            return columns
        places = np.full(groups, len(rows))  # of a NULL behind the rows
        places[group_of(rows)] = np.arange(len(rows))
        padded = {name: pa.concat_arrays([column, pa.nulls(1, column.type)]) for name, column in columns.items()}
        return taken(padded, places)

    def _fronts(
        self, updates: Updates, moments: Moments, was: Updates, kept: Mapping[str, pa.Array] | None, lookup: RunsOf,
        closing: Closing,
    ) -> dict[Seen, Front | None]:  # fmt: skip
        """What is seen of the groups without a lookup of all their rows; None if the part's values are as they were.

        `was`: the output's rows of the groups. `kept`: for an aggregate, the columns of these rows, group by group.
        """
        fronts = dict[Seen, Front | None]()
        # If rows have negative counts, the output tells nothing of the rows behind its own.
        failing = closing.failing(self.plan.output)
        for number, seen in enumerate(self._seen):
            if seen.wanted is None or failing:
                fronts[seen] = seen.nothing(moments, updates)
                continue
            runs = lookup(self.plan.input, Version.BEFORE)
            match self.plan.function:
                case Aggregates(ordered=ordered):
                    assert kept is not None  # the output has a row for each group
                    values = kept[ordered[number].column.name]
                    if seen.checked and isinstance(seen.wanted, Wanted) and keeps_values(
                        seen.wanted, values, updates, moments
                    ):
                        fronts[seen] = None
                        continue
                    fronts[seen] = seen.front_of_value(moments, updates, values, runs, closing)
                case Top(limit=int() as limit, offset=offset):
                    assert isinstance(seen.wanted, Wanted)  # it is no percentile
                    if seen.checked and keeps_rows(seen.wanted, limit, was, updates, moments):
                        fronts[seen] = None
                        continue
                    known = seen.known_rows(was, group_of(was), moments.groups, offset=offset)
                    fronts[seen] = seen.front(moments, updates, known, runs, closing)
                case _:
                    raise AssertionError("it sees whole groups")
        return fronts

    def _looked_up(
        self, stream: Updates, like: Updates, fronts: Iterable[Front], lookup: RunsOf, closing: Closing
    ) -> tuple[Updates | None, Ints]:
        """All closed rows of the groups that are plain for some front, with the columns of `like`, and their groups.
        None if no group is plain."""
        assert self._rows is not None  # what sees groups can look them up
        plain = np.logical_or.reduce([front.plain for front in fronts])
        if not plain.any():
            return None, constant(0, 0)
        none = like.select(self._names).slice(0, 0).with_columns({GROUP: pa.array([], pa.int64())})
        found = self._rows(stream.filter(plain), lookup(self.plan.input, Version.AFTER), closing.netted, closing.begins)
        rows = concat([none, *found])
        rows = rows.filter(rows.time < closing.after)
        return rows, group_of(rows)

    def fill(
        self, lookup: RunsOf, upper: int, closed: int = MINIMUM, *, gathered: bool = False
    ) -> Iterator[tuple[Updates, Updates]]:
        """The output and error updates of the whole history below `upper`, in one part. Updates below `closed` may be
        added up; then their times are not told apart. `gathered`: the caller adds up equal updates."""
        pieces = self._history(lookup, upper, closed, self._leading(lookup, upper, closed))
        if self._rows is None:
            in_memory = all(part.in_memory for part in lookup(self.plan.input, Version.AFTER))
            yield self.filled(lift_all(self._sums, self._keys, pieces, together=in_memory))
            return
        placed = self._in_place(lookup, upper, closed)
        if placed is not None:
            yield placed
            return
        held = list(pieces)
        many = sum(map(len, held)) >= at_once.FROM
        if many and all(part.in_memory for part in lookup(self.plan.input, Version.AFTER)):
            held = [*map(concat, fitting(held))]  # a group comes once then
        found = self.added_up(held) if many else None
        if found is not None:
            yield found
            return
        updates = concat(held or [empty(self.columns)])
        found = self._placed(updates) if many else None
        if found is not None:
            yield found
            return
        if many and isinstance(self.plan.function, Top) and at_once.is_one(updates.time):
            (seen,) = self._seen
            few = leaders(updates, self._keys, seen.wanted) if isinstance(seen.wanted, Wanted) else None
            updates = updates if few is None else updates.take(few)
        moments = moments_of(updates, self._keys, always=self.always)
        if not len(moments):
            yield empty(self.schema), NO_ERRORS
            return
        updates = updates.take(moments.rows)  # so nobody puts them in order once more
        moments = replace(moments, rows=np.arange(len(updates)))
        group = moments.group_of_rows
        contents = {seen: seen.contents(moments, None, updates, group, MINIMUM) for seen in self._seen}
        yield self._made(self._lifted(updates), moments, None, contents, whole=True, gathered=gathered)

    def _in_place(self, lookup: RunsOf, upper: int, closed: int) -> tuple[Updates, Updates] | None:
        """As `fill`, of sums and extremes of all rows, none of which is copied; None if that cannot be."""
        function, runs = self.plan.function, as_runs(lookup(self.plan.input, Version.AFTER))
        if self._keys or runs is None or not isinstance(function, Aggregates):
            return None
        found = extremes_in_place(function, runs, upper, closed)
        if found is None:
            return None
        lifted = lift_all(function, self._keys, self._history(lookup, upper, closed, apart=True))
        return None if lifted is None else self._at_moments(function, *found.beside(lifted, function))

    def added_up(self, pieces: Iterable[Updates]) -> tuple[Updates, Updates] | None:
        """As `fill`, given the updates of the history, of which only one piece is in memory. None: values other than
        sums and extremes need all of them."""
        function = self.plan.function
        if not isinstance(function, Aggregates):
            return None
        if self._rows is None:
            return self.filled(lift_all(function, self._keys, pieces))
        found = extremes_and_sums(function, self._keys, pieces)
        if found is None:
            return None
        lifted, extremes = found
        made = extremes.each_once(lifted, function)
        if made is not None:
            return made.select(self.schema), NO_ERRORS
        return self._at_moments(function, *extremes.beside(lifted, function))

    def _placed(self, updates: Updates) -> tuple[Updates, Updates] | None:
        """As `added_up`, of all updates together: of percentiles."""
        function = self.plan.function
        if not isinstance(function, Aggregates):
            return None
        found = quantiles_and_sums(function, self._keys, updates)
        return None if found is None else self._at_moments(function, *found)

    def _at_moments(
        self, function: Aggregates, lifted: Lifted, values: Extremes | Quantiles
    ) -> tuple[Updates, Updates]:
        """The output and error updates of groups, given the entries of sums and the other values."""
        moments = moments_of(lifted.rows, self._keys, always=self.always)
        made, failed = aggregated(function, lifted, moments, None, values.at(moments), self.registry)
        return made.select(self.schema), failed

    def filled(self, lifted: Lifted | None) -> tuple[Updates, Updates]:
        """As `fill`, for a reduce of sums alone, given what the history adds; None if it is empty."""
        if lifted is not None and self._keys and at_once.is_one(lifted.rows.time):
            found = each_once(self._sums, lifted)
            if found is not None:
                return found.select(self.schema), NO_ERRORS
        rows = empty({name: self.columns[name] for name in self._keys}) if lifted is None else lifted.rows
        moments = moments_of(rows, self._keys, always=self.always)
        if not len(moments):
            return empty(self.schema), NO_ERRORS
        return self._made(lifted, moments, None, {})

    def _leading(self, lookup: RunsOf, upper: int, closed: int) -> Callable[[Run], Ints] | None:
        """What chooses the rows of a run that may be among the first of their groups, where the others need not be
        copied; None: all rows are needed, or none is copied."""
        if not isinstance(self.plan.function, Top) or not isinstance(wanted := self._seen[0].wanted, Wanted):
            return None
        parts = lookup(self.plan.input, Version.AFTER)
        if closed < upper or not any(part.hidden for part in parts):
            return None
        runs = as_runs(parts)
        if runs is None or any(some_below_zero(run.diffs(_all_left(run, closed), closed)) for run in runs):
            return None
        return lambda run: leaders_of(run, self._keys, wanted, upper, closed)

    def _history(
        self, lookup: RunsOf, upper: int, closed: int, choose: Callable[[Run], Ints] | None = None, *,
        apart: bool | None = None,
    ) -> Iterator[Updates]:  # fmt: skip
        """The input's updates below `upper`, one piece at a time. `choose`: of rows in memory only these. `apart`: who
        reads them adds them up, as sums do (None: if the reduce has only sums), and need not know which ones cancel."""
        summed = self._rows is None if apart is None else apart
        for piece in present(lookup(self.plan.input, Version.AFTER), closed, self._names, choose, apart=summed):
            part = piece.select(self._names).before(upper)
            if len(part):
                yield part.settled(closed) if closed > MINIMUM else part

    def _lifted(self, updates: Updates) -> Lifted | None:
        """What updates add to sums, if this reduce keeps sums."""
        function = self.plan.function
        return lift_change(function, self._keys, updates) if isinstance(function, Aggregates) and len(updates) else None

    def _made(
        self, lifted: Lifted | None, moments: Moments, kept: Mapping[str, pa.Array] | None,
        contents: Mapping[Seen, Contents | None], regions: Sequence[Updates] = (), *, was: Updates | None = None,
        whole: bool = False, gathered: bool = False,
    ) -> tuple[Updates, Updates]:  # fmt: skip
        """The output and error updates of groups at their moments. `regions`: those of a window that are there already.
        `was`: the output's rows of the groups. `whole`: the function has not failed for what the groups were."""
        parts, failed = [contents[one] for one in self._seen if one in contents], NO_ERRORS
        seen = [one for one in parts if one is not None]
        match self.plan.function:
            case Aggregates() as function:
                made, failed = aggregated(function, lifted, moments, kept, parts, self.registry)
            case Windows() as function:
                made = concat([*(of_windows(function, one, self.registry, whole=whole, distinct=gathered)
                                 for one in seen), *regions])  # fmt: skip
            case Top() if not seen:
                made = empty(self.schema)
            case Top() as function:
                made = of_top(function, seen[0], distinct=gathered)
            case Own() as function:
                given = answers(function, seen[0], was, self.registry)
                made = moments.changes(given.columns, given.time, given.diff, distinct=gathered)
        errors = [one for one in (failed, *[one.errors() for one in seen]) if len(one)]
        return made.select(self.schema), consolidate(concat(errors)) if errors else NO_ERRORS


def _all_left(run: Run, closed: int) -> Ints:
    rows = run.left(closed)
    return np.arange(len(run)) if rows is None else rows


def columns_read(plan: Reduce) -> list[Column]:
    """The columns of the input that the function reads, in the order that breaks ties."""
    match plan.function:
        case Aggregates(_, sums, ordered):
            args = [*(arg for part in sums for arg in part.args), *(arg for part in ordered for arg in part.args)]
            keys = [key.expr for part in ordered for key in part.order]
            conditions = [part.condition for part in ordered if part.condition is not None]
            return [column for column in (*args, *keys, *conditions) if isinstance(column, Column)]
        case Windows() as function:
            return list(plan.columns[: len(plan.columns) - len(function.results)])
        case Top():
            return list(plan.columns)
        case Own(_, takes, order):
            keys = [key.expr for key in order]
            return [column for column in (*(one for _, one in takes), *keys) if isinstance(column, Column)]

"""Reads groups in order, from a given row on: a few rows from each run, not the groups.

A group's rows lie in several runs, in order in each of them. To begin at a row, the entries of each run are searched:
in each round, `_SAMPLES` entries divide what is left of a range, and one sort compares all of them with their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.index import KeyColumns, RowNumbers
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.order import Order, OrderKey
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.reduce.bisection import Beside, Key, keys_of, place, span
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.sorting import precede, sort
from halfjoin.engine.updates.codes import codes, is_exact, same
from halfjoin.engine.updates.updates import Ints, Mask, Updates, concat, constant, gather, indices_of, where_true
from halfjoin.planner.plan import ArrangementKey

Begins: TypeAlias = Sequence[Ints]  # for each run, an entry of each group

_SAMPLES = 16  # entries of a range that a round of a search looks at
_FEW = 64  # searches; so few are done one by one


@dataclass(frozen=True, slots=True)
class Entries:
    """What was read. `rows`: of the order's columns, with their diffs. `probe`: the position of the group asked for.

    `mine`: whether the row was there, in this group and not one with the same code. `first`: the run has more rows of
    the group before this one; `last`: after it. `adds`: none of those has a negative diff. `run`, `row`: where it lies.
    """

    rows: Updates
    probe: Ints
    mine: Mask
    first: Mask
    last: Mask
    adds: Mask
    run: Ints
    row: RowNumbers


@dataclass(frozen=True, slots=True)
class _Range:
    """The entries of each group in a run. `order`: of the run, `live`: its rows in any order; made when needed."""

    run: Run
    order: Callable[[], Order]
    live: Callable[[], RowNumbers]
    low: Ints
    high: Ints
    exact: bool  # equal codes mean equal groups; then nobody compares keys

    def within(self, low: Ints, high: Ints) -> _Range:
        """The same run with other entries."""
        return _Range(self.run, self.order, self.live, low, high, self.exact)

    def entries(self, places: Ints, *, ordered: bool) -> tuple[RowNumbers, bool]:
        """The rows at these places, and whether no diff is negative. Unless it must be `ordered`: the order of small
        groups is not made if all their rows are read."""
        if not ordered and self.is_small() and len(places) == int((self.high - self.low).sum()):
            return self.live()[places], False
        order = self.order()
        return order.rows[places], order.adds

    def is_small(self) -> bool:
        """Whether a reading from a place on takes all rows of each group."""
        return int((self.high - self.low).max(initial=0)) <= _SAMPLES

    def copies(self, begins: Ints, ends: Ints, closed: int, before: int) -> Ints:
        """The sums of the diffs between entries. In a run with open times, this adds up the entries."""
        order = self.order()
        if self.run.future is None:
            sums: Ints = ends - begins if order.sums is None else order.sums[ends] - order.sums[begins]
            return sums
        counts = ends - begins
        stops = counts.cumsum()
        rows = order.rows[np.arange(counts.sum()) + (begins - (stops - counts)).repeat(counts)]
        there = np.where(self.run.updates.time[rows] < before, self.run.diffs(rows, closed), 0)
        running = np.concatenate([constant(0, 1), there.cumsum()])
        sums = running[stops] - running[stops - counts]
        return sums

    def beside(self, key: Key, asked: Any, count: int, closed: int) -> Beside:
        """Of the only group, `count` entries on both sides of those whose key is what is asked."""
        order, low, high = self.order(), self.low.item(), self.high.item()
        first, last = span(order.rows, low, high, key, asked)
        begin, end = max(low, first - count), min(high, last + count)
        rows = np.concatenate((order.rows[begin:first], order.rows[last:end]))
        ahead, own = first - low, last - first
        if order.sums is not None:
            start, middle, stop = order.sums[[low, first, last]].tolist()
            ahead, own = middle - start, stop - middle
        weights = self.run.diffs(rows, closed).tolist()
        return Beside(rows, list(map(key, rows.tolist())), weights, first - begin, ahead, own, begin > low, end < high)

    def rows(self, names: Iterable[str], rows: RowNumbers) -> dict[str, pa.Array]:
        indices = indices_of(rows)
        return {name: gather(self.run.updates.columns[name], indices) for name in names}


class Reading:
    """Groups of a collection, each to be read from a place on, at first from its first row. `keys`: of the groups."""

    def __init__(self, reader: Reader, keys: Sequence[pa.Array], ranges: Sequence[_Range], closed: int) -> None:
        self._reader, self._keys, self._ranges, self._closed = reader, keys, ranges, closed
        self._begin: Begins = [one.low for one in ranges]

    @property
    def sizes(self) -> Ints:
        """The entries of each group."""
        found: Ints = np.sum([one.high - one.low for one in self._ranges], axis=0)
        return found

    @property
    def begins(self) -> Begins:
        """The first entry of each group, in each run."""
        return [one.low for one in self._ranges]

    @property
    def ends(self) -> Begins:
        """The entry after the last one of each group, in each run."""
        return [one.high for one in self._ranges]

    def of(self, probes: Ints) -> Reading:
        """The reading of some of the groups, or of the same group several times."""
        compared = [one for one in self._ranges if not one.exact]
        keys = [gather(key, indices_of(probes)) for key in self._keys] if compared else []
        ranges = [one.within(one.low[probes], one.high[probes]) for one in self._ranges]
        made = Reading(self._reader, keys, ranges, self._closed)
        made._begin = [begin[probes] for begin in self._begin]
        return made

    def seek(self, rows: Mapping[str, pa.Array]) -> None:
        """Begin at the first entries that are not less than these rows, one for each group, or a few entries before.

        The rows may have no more than the columns of the sort keys. Then their peers are not less.
        """
        self._begin = self.near(rows)

    def near(self, rows: Mapping[str, pa.Array]) -> Begins:
        """In each run, where `seek` begins."""
        return self._search(rows, _SAMPLES, None)

    def find(self, rows: Mapping[str, pa.Array], after: Mask) -> Begins:
        """In each run, the first entry that is not less than these rows, one for each group; where it is `after`, the
        first that is greater."""
        return self._search(rows, 0, after)

    def _search(self, rows: Mapping[str, pa.Array], width: int, after: Mask | None) -> Begins:
        """The least entries of the ranges in which the first entries lie. These are at most `width` entries wide."""
        if (places := self._one_by_one(rows, width, after)) is not None:
            return places
        names, order = list(rows), self._reader.key.order
        low = np.concatenate([one.low for one in self._ranges])
        high = np.concatenate([one.high for one in self._ranges])
        number = np.arange(len(self._ranges)).repeat([len(one.low) for one in self._ranges])
        probe = np.concatenate([np.arange(len(one.low)) for one in self._ranges])
        while len(wide := where_true(high - low > width)):
            steps = (high - low)[wide, None] * np.arange(1, _SAMPLES + 1) // (_SAMPLES + 1)
            places = low[wide, None] + steps
            sampled = list[dict[str, pa.Array]]()
            for one in np.unique(number[wide]).tolist():
                range = self._ranges[one]
                sampled.append(range.rows(names, range.order().rows[places[number[wide] == one].ravel()]))
            others = {name: pa.concat_arrays([one[name] for one in sampled]) for name in names}
            asked = {name: column.take(indices_of(probe[wide])) for name, column in rows.items()}
            less = precede(asked, others, order, None if after is None else after[probe[wide]]).sum(1)
            edges = np.column_stack([low[wide], places + 1, high[wide]])  # after the last lesser one, it begins
            low[wide] = edges[np.arange(len(wide)), less]
            edges = np.column_stack([places, high[wide]])
            high[wide] = edges[np.arange(len(wide)), less]
        return np.split(low, np.cumsum([len(one.low) for one in self._ranges])[:-1])

    def _compared(self, rows: Mapping[str, pa.Array]) -> tuple[list[Any], list[Key]] | None:
        """What compares these rows with those of each run, one by one; None if that is not possible or too slow."""
        length = len(self._ranges[0].low)
        if length * len(self._ranges) > _FEW:
            return None
        tables = [rows, *(one.run.updates.columns for one in self._ranges)]
        keys = keys_of(tables, self._reader.key.order, list(rows))
        return None if keys is None else (list(map(keys[0], range(length))), keys[1:])

    def _one_by_one(self, rows: Mapping[str, pa.Array], width: int, after: Mask | None) -> Begins | None:
        """The first entries; None if rows are not compared one by one."""
        compared = self._compared(rows)
        if compared is None:
            return None
        asked, keys = compared
        ties = [False] * len(asked) if after is None else after.tolist()
        found = list[Ints]()
        for one, own in zip(self._ranges, keys, strict=True):
            if width and one.is_small():
                found.append(one.low)
                continue
            entries, low, high = one.order().rows, one.low.tolist(), one.high.tolist()
            found.append(np.array([place(entries, *at, own, wanted, after=tie)
                                   for at, wanted, tie in zip(zip(low, high, strict=True), asked, ties, strict=True)],
                                  np.int64))  # fmt: skip
        return found

    def take(self, count: Ints, before: int) -> Entries:
        """From where each group begins, `count` entries of each run, and those within the reach of a search.

        Rows whose times are not below `before` are not there yet.
        """
        begins, ends = self.within(self._begin, self._begin, constant(0, len(count)), count)
        return self.between(begins, ends, before, ordered=False)

    def within(self, firsts: Begins, lasts: Begins, back: Ints, ahead: Ints) -> tuple[Begins, Begins]:
        """In each run, the entries that are `back` before the first one, and `ahead` after the last one and what a
        search has left."""
        pairs = zip(self._ranges, firsts, lasts, strict=True)
        found = [(np.maximum(one.low, first - back), np.minimum(one.high, last + ahead + _SAMPLES))
                 for one, first, last in pairs]  # fmt: skip
        return [begin for begin, _ in found], [end for _, end in found]

    def between(
        self, begins: Begins, ends: Begins, before: int, *, names: Sequence[str] | None = None, ordered: bool = True
    ) -> Entries:
        """The entries from a place of each run up to another, in each group, as `take`. `names`: the columns to read
        (None: all). Unless they must be `ordered`, those of a small group may come in any order."""
        return self._taken(begins, ends, before, self._reader.key.columns if names is None else names, ordered=ordered)

    def _taken(self, begins: Begins, ends: Begins, before: int, names: Sequence[str], *, ordered: bool) -> Entries:
        keys, groups, runs = self._reader.keys, len(begins[0]), len(self._ranges)
        firsts, stops = np.concatenate(begins), np.concatenate(ends)
        counts = stops - firsts
        after = counts.cumsum()
        before_them = after - counts
        probe = np.tile(np.arange(groups), runs).repeat(counts)
        entries = np.arange(len(probe)) + (firsts - before_them).repeat(counts)
        first, last = np.zeros((2, len(probe)), np.bool_)
        some = counts > 0
        first[before_them[some & (firsts > np.concatenate([one.low for one in self._ranges]))]] = True
        last[after[some & (stops < np.concatenate([one.high for one in self._ranges]))] - 1] = True
        edges = [0, *after[groups - 1 :: groups].tolist()] if groups else [0] * (runs + 1)
        parts, places = list[Updates](), list[RowNumbers]()
        adds, mine = np.ones((2, len(probe)), np.bool_)
        for one, low, high in zip(self._ranges, edges[:-1], edges[1:], strict=True):
            if low == high and parts:
                continue
            rows, adds[low:high] = one.entries(entries[low:high], ordered=ordered)
            part = Updates(one.rows(names, rows), one.run.updates.time[rows], one.run.diffs(rows, self._closed))
            if not one.exact:
                given, asked = one.rows(keys, rows), indices_of(probe[low:high])
                for name, key in zip(keys, self._keys, strict=True):
                    mine[low:high] &= same(gather(key, asked), given[name])
            parts.append(part)
            places.append(rows)
        found = concat(parts)
        run = np.arange(runs).repeat(np.diff(edges))
        return Entries(found, probe, mine & (found.time < before), first, last, adds, run, np.concatenate(places))

    def values(self, entries: Entries, positions: Ints, names: Sequence[str]) -> tuple[Updates, Ints]:
        """Columns of some of the entries that were taken, and their groups."""
        parts, probes = [], []
        for number, one in enumerate(self._ranges):
            some = positions[entries.run[positions] == number]
            parts.append(Updates(one.rows(names, entries.row[some]), entries.rows.time[some], entries.rows.diff[some]))
            probes.append(entries.probe[some])
        return concat(parts), np.concatenate(probes)

    def counted(self) -> Reading | None:
        """The reading of the groups, in ranges of which all rows are theirs. None if two groups share a code."""
        ranges = []
        for one in self._ranges:
            if not one.exact:
                if not one.order().whole:
                    return None
                firsts, mine = where_true(one.low < one.high), np.zeros(len(one.low), np.bool_)
                mine[firsts] = True
                given = one.rows(self._reader.keys, one.order().rows[one.low[firsts]])
                for name, key in zip(self._reader.keys, self._keys, strict=True):
                    mine[firsts] &= same(gather(key, indices_of(firsts)), given[name])
                one = one.within(one.low, np.where(mine, one.high, one.low))
            ranges.append(one)
        return Reading(self._reader, self._keys, ranges, self._closed)

    def until(self, ends: Begins) -> Reading:
        """The same groups without the entries from `ends` on."""
        ranges = [one.within(one.low, end) for one, end in zip(self._ranges, ends, strict=True)]
        return Reading(self._reader, self._keys, ranges, self._closed)

    def beside(self, name: str, values: pa.Array, count: int) -> tuple[list[Any], list[Beside], list[pa.Array]] | None:
        """The keys of some values; and of each run, in the only group, `count` entries on both sides of those that
        equal the first value, and their values. None if the keys have no simple form, or some times are open."""
        if any(one.run.future is not None for one in self._ranges):
            return None
        keys = keys_of([{name: values}, *(one.run.updates.columns for one in self._ranges)], self._reader.key.order, ())
        if keys is None:
            return None
        asked = list(map(keys[0], range(len(values))))
        found = [one.beside(key, asked[0], count, self._closed)
                 for one, key in zip(self._ranges, keys[1:], strict=True)]  # fmt: skip
        arrays = [gather(one.run.updates.columns[name], indices_of(some.rows))
                  for one, some in zip(self._ranges, found, strict=True)]  # fmt: skip
        return asked, found, arrays

    def holds_null(self, name: str) -> bool:
        """Whether a column of the runs has NULLs."""
        return any(one.run.updates.columns[name].null_count > 0 for one in self._ranges)

    def copies(self, begins: Begins, ends: Begins, before: int) -> Ints:
        """The number of rows between entries of each run, with their copies; `counted` groups only."""
        found = constant(0, len(begins[0]))
        for one, begin, end in zip(self._ranges, begins, ends, strict=True):
            found = found + one.copies(begin, end, self._closed, before)
        return found

    def equal(self, rows: Mapping[str, pa.Array]) -> tuple[Begins, Begins]:
        """In each run, where the rows that equal these begin, and where they end; one row for each group."""
        compared = self._compared(rows)
        if compared is not None:
            asked, keys = compared
            found = []
            for one, own in zip(self._ranges, keys, strict=True):
                entries, each = one.order().rows, zip(one.low.tolist(), one.high.tolist(), asked, strict=True)
                spans = [span(entries, low, high, own, wanted) for low, high, wanted in each]
                found.append(np.array(spans, np.int64).reshape(-1, 2))
            return [spans[:, 0] for spans in found], [spans[:, 1] for spans in found]
        length = len(next(iter(rows.values())))
        both = self.of(np.tile(np.arange(length), 2))
        twice = {name: pa.concat_arrays([column, column]) for name, column in rows.items()}
        places = both.find(twice, np.arange(2 * length) >= length)
        return [one[:length] for one in places], [one[length:] for one in places]


class Reader:
    """Reads the groups of an arrangement in one order. `keys`: the columns of the arrangement's keys."""

    def __init__(self, key: OrderKey, keys: Sequence[str], registry: Registry) -> None:
        self.key, self.keys = key, keys
        self._columns = key_columns(key.arrangement, registry)
        self._sort = partial(_places, key)

    def reading(self, keys: Sequence[pa.Array], groups: int, runs: Sequence[Part], closed: int) -> Reading | None:
        """The reading of groups with these keys. None if there are no rows, if some are in files, or if the runs do not
        add up what is below `closed`."""
        if not all(run.in_memory for run in runs):
            return None
        probes, exact, ranges = codes(list(keys), groups), not keys or is_exact(keys), []
        for run in cast("Sequence[Run]", runs):
            if not run.orders_below(closed):
                return None
            order = partial(run.order, self.key, self._columns, self._sort)
            low, high, own = run.ranges(self.key.arrangement, self._columns, probes)
            live = partial(_live, run, self.key.arrangement, self._columns)
            ranges.append(_Range(run, order, live, low, high, exact and own))
        return Reading(self, keys, ranges, closed) if ranges else None


def _places(key: OrderKey, rows: Updates, starts: Ints) -> Ints:
    return sort(Groups(rows.columns, constant(1, len(rows)), starts), key.order).positions


def _live(run: Run, key: ArrangementKey, columns: KeyColumns) -> RowNumbers:
    return run.live(key, columns)[1]

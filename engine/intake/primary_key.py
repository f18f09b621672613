"""Checks PRIMARY KEY: at every time each key has at most one row, and a batch deletes only rows that are there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, cast

import numpy as np

from halfjoin.catalog.models import Table
from halfjoin.engine.arrange.index import Index, KeyColumns, RowNumbers, build, find_all, index_of
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.intake.key_pairs import KeyedRows, plain
from halfjoin.engine.intake.upserts import last_of_each
from halfjoin.engine.kernels import indexing, native
from halfjoin.engine.scalar.cells import cell
from halfjoin.engine.system.identity import by_identity
from halfjoin.engine.system.value import value
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes, distinct, is_exact
from halfjoin.engine.updates.consolidate import consolidate, groups
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Ints, Mask, Positions, Updates, concat, where_true
from halfjoin.errors import InvalidRow, key_text
from halfjoin.planner.plan import ArrangementKey
from halfjoin.planner.wants import ALL
from halfjoin.sql.expr import Column
from halfjoin.sql.types import SqlType


@value
class PrimaryKey:
    """A table's key and the arrangement by the key. A batch looks up the table's rows once (`candidates`).

    `names`: the key's columns. A key of a UNIQUE constraint obeys the same rule, for the rows without a NULL in it.
    """

    table: Table
    arrangement: ArrangementKey
    columns: KeyColumns
    names: tuple[str, ...]

    def candidates(
        self, there: Iterable[Part], updates: Updates, names: Iterable[str] | None = None, closed: int = MINIMUM
    ) -> list[Run]:
        """The table's rows that share a key with the updates, and maybe others, as runs in memory. `names`: the columns
        that they must have; None: those of the updates. Rows in files with times below `closed` may be added up."""
        parts = tuple(there)
        if not [part for part in parts if not part.in_memory]:  # then a part is its run
            return cast("list[Run]", list(parts))
        arrays, _ = self.columns(updates)
        names = list(updates.columns if names is None else names)
        found = ((part, part.narrowed(self.arrangement, self.columns, arrays, names)) for part in parts)
        return [run if part.in_memory else run.closed(closed) for part, runs in found for run in runs]

    def check(self, candidates: Sequence[Run], updates: Updates) -> Index:
        """Refuse updates that give a key two rows at some time, or a row a negative count.

        Only keys that are in the table, come twice in the batch, or are deleted can break the rule. Any other key costs
        a search.

        Returns:
            The updates' index by the key, for their run.

        Raises:
            InvalidRow: names the row's number in the batch, and its key.
        """
        made = self._checked(candidates, updates) if native.on else None
        if made is not None and made[1]:
            return made[0]
        arrays, _ = self.columns(updates)
        index = build(arrays, None, len(updates)) if made is None else made[0]
        first = np.ones(len(index), np.bool_)
        first[1:] = index.codes[1:] != index.codes[:-1]
        wanted = index.codes if first.all() else index.codes[first]
        held = self._held(candidates, wanted)
        if not held and len(wanted) == len(updates) and bool((updates.diff == 1).all()):
            return index
        keys = first.cumsum() - 1
        sure = plain(held, KeyedRows(updates, index.rows, keys), len(wanted))
        if not sure.all():
            positions = np.sort(index.rows[~sure[keys]].astype(np.int64))
            theirs = [place.updates.take(place.rows[~sure[place.keys]]) for place in held]
            self._check(concat([updates.slice(0, 0), *theirs]), updates.take(positions), positions)
        return index

    def _checked(self, candidates: Sequence[Run], updates: Updates) -> tuple[Index, bool] | None:
        """The updates' index, and whether they plainly obey the rule: by one call of a kernel. None: there is none for
        some type, or the table holds too many rows of these keys."""
        asked = (*self.names, "", *updates.columns)
        sides = list[object]()
        for run in candidates:
            known = run.sides.get(asked)
            if known is None:
                names = (), (), tuple(updates.columns)
                known = run.side(self.arrangement, self.columns, names, MAXIMUM, ALL, MINIMUM)
                if known is None:
                    return None
                run.sides[asked] = known
            sides += known.opened
        arrays, _ = self.columns(updates)
        columns = [*updates.columns.values()]
        made = indexing.unique(arrays, columns, updates.time, updates.diff, sides, limits.PIECE_ROWS)
        return None if made is None else (index_of(made[0], made[1], is_exact(arrays)), made[2] is None)

    def there(self, candidates: Sequence[Run], first: Updates) -> Updates:
        """The negated row of the table for each key of `first` at its time, if any. `first` must not repeat a key."""
        arrays, _ = self.columns(first)
        held = self._held(candidates, distinct(codes(arrays, len(first))))
        if not held:
            return first.slice(0, 0)
        ended = self._ended(concat([place.updates.take(place.rows) for place in held]), first)
        return ended.filter(ended.diff < 0)

    def rows(self, candidates: Sequence[Run], updates: Updates) -> Updates:
        """What the table holds of the keys of `updates`, at all times. Rows of keys with an equal code may be there."""
        arrays, _ = self.columns(updates)
        held = self._held(candidates, distinct(codes(arrays, len(updates))))
        empty = [run.updates.slice(0, 0) for run in candidates[:1]] or [updates.slice(0, 0)]
        return concat([*(place.updates.take(place.rows) for place in held)] or empty)

    def _held(self, candidates: Sequence[Run], wanted: Ints) -> list[KeyedRows]:
        """The table's rows with these distinct codes. The key's number is the code's position in `wanted`."""
        if native.on:
            pairs = find_all(wanted, [run.index(self.arrangement, self.columns) for run in candidates])
            if pairs is not None:
                return [_place(run, rows, numbers) for run, rows, numbers in _apart(candidates, *pairs)]
        found = []
        for run in candidates:
            for numbers, rows in run.index(self.arrangement, self.columns).find(wanted):
                found.append(_place(run, rows, numbers))
        return found

    def _check(self, held: Updates, updates: Updates, positions: Ints) -> None:
        """The full check. `positions` are the updates' row numbers in the batch.

        The rows in `held` count from before the batch on: netting may have moved a sum to any earlier time.
        """
        before = len(held)
        both = concat([held.not_before(int(updates.time.min()) - 1), updates])
        rows = groups(list(both.columns.values()), len(both))
        missing = _first_outside(rows, both, 0, MAXIMUM, before)
        keys = groups([both.columns[name] for name in self.names], len(both))
        if missing is not None:
            raise self._missing(both, keys, missing, before).with_(row=int(positions[missing - before]))
        double = _first_outside(keys, both, 0, 1, before)
        if double is not None:
            later = _later(both, keys, double, before)
            raise InvalidRow(f"would be a second row with the key {key_text(self._key(both, double))}",
                             remedy=later or "delete the first in the same batch, or submit hj.upserts(rows)",
                             table=self.table.name, row=int(positions[double - before]), key=self._key(both, double),
                             constraint=self._name(), code="23505")

    def _name(self) -> str | None:
        """The name of the constraint or unique index."""
        return next((name for name, columns in self.table.keys.items() if columns == self.names), None)

    def replaced(self, candidates: Sequence[Run], updates: Updates) -> Updates:
        """The updates of upserts: the new rows, and for each the deletion of the row with its key at its time, if any.

        A row with the diff 0 adds only the deletion. If several rows have the same key and time, the last one counts.
        """
        keys = groups([updates.columns[name] for name in self.names], len(updates))
        last = last_of_each(keys, updates.time)
        new = updates.take(last)
        keys = keys[last]
        # A new row ends when the next new row of its key begins.
        follows = where_true(keys[1:] == keys[:-1])
        ended = new.take(follows)
        parts = [new, Updates(ended.columns, new.time[follows + 1], -ended.diff)]
        first = new.take(where_true(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else keys)
        arrays, _ = self.columns(first)  # in the arrangement's order of columns
        held = self._held(candidates, distinct(codes(arrays, len(first))))
        if held:
            parts.append(self._ended(concat([place.updates.take(place.rows) for place in held]), first))
        every = concat(parts)
        return every if every.diff.all() else every.filter(every.diff != 0)

    def _ended(self, held: Updates, first: Updates) -> Updates:
        """Deletions, at the times of `first`, of the rows that its keys have by then, as the sum of `held`.

        Rows that came and went add up to 0. To negate every update instead would double a key's updates per upsert.
        """
        both = concat([first, held])
        numbers = groups([both.columns[name] for name in self.names], len(both))
        start = np.full(int(numbers.max()) + 1, MINIMUM)
        start[numbers[: len(first)]] = first.time
        begins = start[numbers[len(first) :]]
        known = (held.time <= begins) & (begins != MINIMUM)
        return consolidate(Updates(held.columns, begins, -held.diff).filter(known))

    def _key(self, updates: Updates, row: int) -> dict[str, Any]:
        return {name: cell(updates.columns[name], row) for name in self.names}

    def _missing(self, both: Updates, keys: Ints, row: int, held: int) -> InvalidRow:
        key = self._key(both, row)
        text = f"deletes a row that is not there: {key_text(key)}"
        later = _later(both, keys, row, held)
        if later is not None:
            return InvalidRow(text, remedy=later, table=self.table.name, key=key)
        others = where_true((keys == keys[row]) & (both.diff > 0))
        others = others[others < held]
        if len(others):
            there = {name: cell(column, int(others[-1])) for name, column in both.columns.items()}
            given = {name: cell(column, row) for name, column in both.columns.items()}
            unequal = [name for name in there if there[name] != given[name]]
            differing = [f"{name} is {there[name]!r}, not {given[name]!r}" for name in unequal]
            if differing:
                text += f"; in the row with that key {', '.join(differing[:3])}"
        return InvalidRow(text, table=self.table.name, key=key)


def _later(both: Updates, keys: Ints, row: int, held: int) -> str | None:
    """The remedy where the table, in the first `held` updates, has a row of the key of an update that comes later than
    the update, at a time that is open; None where it has none."""
    later = where_true((keys == keys[row]) & (both.diff > 0) & (both.time > both.time[row]))
    later = later[later < held]
    if not len(later):
        return None
    time = int(both.time[later].min())
    return f"a row with that key comes at time {time}, which is still open: submit this at that time or later"


def _apart(
    runs: Sequence[Run], numbers: Ints, rows: RowNumbers, counts: Sequence[int]
) -> Iterable[tuple[Run, RowNumbers, Ints]]:
    """The pairs of each run that has some: its rows, and their keys' numbers."""
    start = 0
    for run, count in zip(runs, counts, strict=True):
        if count:
            yield run, rows[start : start + count], numbers[start : start + count]
            start += count


def _place(run: Run, rows: Positions, numbers: Ints) -> KeyedRows:
    if run.net is None or not len(run.net.rows):  # each row counts as it came
        return KeyedRows(run.updates, rows, numbers)
    diffs = run.diffs(rows, MAXIMUM)
    if (diffs == run.updates.diff[rows]).all():
        return KeyedRows(run.updates, rows, numbers)
    found = run.updates.take(rows)
    return KeyedRows(Updates(found.columns, found.time, diffs), np.arange(len(rows)), numbers)


def arrangement_of(table: Table, names: Sequence[str]) -> ArrangementKey:
    """The arrangement of a table by the columns of a key."""
    key = [(one.name, one.type, not one.not_null) for one in table.columns if one.name in names]
    return _arrangement(table.name, tuple(key))


@lru_cache(maxsize=256)
def _arrangement(table: str, key: tuple[tuple[str, SqlType, bool], ...]) -> ArrangementKey:
    """One object for equal keys, so that a run finds it among its indexes without a comparison."""
    return ArrangementKey(table, tuple(Column(*column) for column in sorted(key, key=itemgetter(0))))


def key_of(table: Table, names: Sequence[str]) -> PrimaryKey:
    """A key of a table, and its arrangement, which is shared."""
    if names is table.primary_key:
        return primary_key(table)
    arrangement = arrangement_of(table, names)
    return PrimaryKey(table, arrangement, key_columns(arrangement, {}), tuple(names))


@by_identity
def primary_key(table: Table) -> PrimaryKey:
    """The PRIMARY KEY of a table that has one."""
    arrangement = arrangement_of(table, table.primary_key)
    return PrimaryKey(table, arrangement, key_columns(arrangement, {}), table.primary_key)


def known(updates: Updates, names: Sequence[str]) -> Mask:
    """The rows without a NULL in a key."""
    mask = np.ones(len(updates), np.bool_)
    for name in names:
        if updates.columns[name].null_count:
            mask &= updates.columns[name].is_valid().to_numpy(zero_copy_only=False)
    return mask


def _first_outside(numbers: Ints, updates: Updates, low: int, high: int, held: int) -> int | None:
    """The first row of the batch (at position `held` or later) in a group whose running count leaves `[low, high]`."""
    order = np.lexsort((updates.time, numbers))
    group, time = numbers[order], updates.time[order]
    running = np.cumsum(updates.diff[order])
    starts = np.concatenate([[True], group[1:] != group[:-1]])
    first = where_true(starts)
    base = np.repeat(np.concatenate([[0], running[first[1:] - 1]]), np.diff(np.append(first, len(group))))
    count = running - base
    settled = np.ones(len(group), np.bool_)  # updates with the same time take effect together
    settled[:-1] = (group[1:] != group[:-1]) | (time[1:] != time[:-1])
    bad = settled & ((count < low) | (count > high))
    if not bad.any():
        return None
    guilty = np.isin(group, np.unique(group[bad])) & (order >= held)
    outside = guilty & ((count < low) | (count > high))  # prefer the row that leaves the range to an earlier one
    return int(order[outside if outside.any() else guilty].min())

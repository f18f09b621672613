"""PRIMARY KEY: at every time each key has at most one row, and only a row that is there can be deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from halfjoin.catalog.models import Table
from halfjoin.engine.codes import codes, same
from halfjoin.engine.collection import Collection
from halfjoin.engine.consolidate import groups
from halfjoin.engine.index import Index, Rows, build
from halfjoin.engine.run import KeyColumns
from halfjoin.engine.updates import Ints, Mask, Updates, concat, constant, empty
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.errors import InvalidRow
from halfjoin.sql.expr import Column


class Held(NamedTuple):
    """Updates of a collection under wanted codes, the code of each, and which of the wanted codes have any."""

    updates: Updates
    codes: Ints
    known: Mask


@dataclass(frozen=True, slots=True)
class PrimaryKey:
    """A table's key and the arrangement by it."""

    table: Table
    arrangement: ArrangementKey
    columns: KeyColumns

    def check(self, collection: Collection, updates: Updates) -> Index:
        """Refuse updates after which some time has two rows of a key, or a row less than none.

        Only rows whose key is there already, comes twice, or is deleted can break the rule; the others cost a search.

        Returns:
            The updates' index by the key, for their run.

        Raises:
            InvalidRow: with the row's number in the batch, and its key.
        """
        arrays, _ = self.columns(updates)
        index = build(arrays, None, len(updates))
        suspect = updates.diff[index.rows] != 1
        twice = index.codes[1:] == index.codes[:-1]
        suspect[1:] |= twice
        suspect[:-1] |= twice
        held = self._held(collection, index.codes, arrays)
        suspect |= held.known
        entries = np.flatnonzero(suspect)  # with an entry all of its code: another row's key may have that too
        if len(entries):
            doubtful = entries[~self._plain(index.codes[entries], index.rows[entries], held, updates)]
            if len(doubtful):
                positions = np.sort(index.rows[doubtful].astype(np.int64))
                theirs = held.updates.filter(np.isin(held.codes, index.codes[doubtful]))
                self._check(theirs, updates.take(positions), positions)
        return index

    def _held(self, collection: Collection, wanted: Ints, keys: Sequence[pa.Array]) -> Held:
        """What is there under the codes (sorted, perhaps repeated) of these keys."""
        first = np.ones(len(wanted), np.bool_)
        first[1:] = wanted[1:] != wanted[:-1]
        distinct = wanted[first]
        known = np.zeros(len(distinct), np.bool_)
        parts, found = [empty(collection.schema)], [distinct[:0]]
        for part in collection.runs:
            run = part.narrowed(self.arrangement, self.columns, keys, collection.schema)
            positions, rows = run.index(self.arrangement, self.columns).find(distinct)
            if len(rows):
                known[positions] = True
                parts.append(run.updates.take(rows))
                found.append(distinct[positions])
        return Held(concat(parts), np.concatenate(found), known[np.cumsum(first) - 1])

    def _plain(self, values: Ints, rows: Rows, held: Held, updates: Updates) -> Mask:
        """The entries (of codes `values`, sorted, and batch rows `rows`) whose key is plainly right.

        Plain: at most one update is there, the row itself; the batch deletes exactly that row, or there is nothing to
        delete; and inserts at most one. Rows are compared, not hashed, so this is the cheap way for most batches.
        """
        first = np.ones(len(values), np.bool_)
        first[1:] = values[1:] != values[:-1]
        starts = np.flatnonzero(first)
        diffs = updates.diff[rows]
        inserts = np.add.reduceat((diffs == 1).astype(np.int64), starts)
        deletes = np.add.reduceat((diffs == -1).astype(np.int64), starts)
        group = np.searchsorted(values[starts], held.codes)
        there = np.bincount(group, minlength=len(starts))
        plain = (there <= 1) & (deletes == there) & (inserts <= 1)
        plain &= np.diff(np.append(starts, len(values))) == inserts + deletes
        if len(group):
            wrong = (held.updates.diff != 1) | (held.updates.time > updates.time[rows][starts][group])
            plain[group[wrong]] = False
        mine = rows[(diffs == -1) & plain[np.cumsum(first) - 1]]  # one for each plain group that has one, in order
        theirs = np.flatnonzero(plain[group])[np.argsort(group[plain[group]])]
        equal = np.ones(len(mine), np.bool_)
        left, right = pa.array(mine), pa.array(theirs)
        for name, column in updates.columns.items():
            equal &= same(column.take(left), held.updates.columns[name].take(right))
        plain[group[theirs[~equal]]] = False
        times = updates.time[rows]
        if updates.time.strides != (0,):  # a key's rows must come at one time
            moved = np.flatnonzero(times != times[starts][np.cumsum(first) - 1])
            plain[(np.cumsum(first) - 1)[moved]] = False
        mask: Mask = plain[np.cumsum(first) - 1]
        return mask

    def _check(self, held: Updates, updates: Updates, positions: Ints) -> None:
        """`check` in full; `positions` are the updates' numbers in the batch."""
        before = len(held)
        both = concat([held, updates])
        rows = groups(list(both.columns.values()), len(both))
        missing = _first_outside(rows, both, 0, np.iinfo(np.int64).max, before)
        keys = groups([both.columns[name] for name in self.table.primary_key], len(both))
        if missing is not None:
            raise InvalidRow(self._missing(both, keys, missing, before, int(positions[missing - before])))
        double = _first_outside(keys, both, 0, 1, before)
        if double is not None:
            raise InvalidRow(
                f"{self.table.name}: row {int(positions[double - before])}: would be a second row with the key "
                f"{self._key(both, double)}; delete the first in the same batch, or submit hj.upserts(rows)"
            )

    def replaced(self, collection: Collection, updates: Updates) -> Updates:
        """Upserts: the new rows, and for each the deletion of the row that has its key at its time, if any.

        Of several new rows with one key and time the last stays.
        """
        keys = groups([updates.columns[name] for name in self.table.primary_key], len(updates))
        order = np.lexsort((np.arange(len(updates)), updates.time, keys))
        last = np.ones(len(order), np.bool_)
        last[:-1] = (keys[order][1:] != keys[order][:-1]) | (updates.time[order][1:] != updates.time[order][:-1])
        new = updates.take(order[last])
        keys = keys[order[last]]
        # A new row ends when the next new row of its key begins.
        follows = np.flatnonzero(keys[1:] == keys[:-1])
        ended = new.take(follows)
        parts = [new, Updates(ended.columns, new.time[follows + 1], constant(-1, len(follows)))]
        first = new.take(np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else keys)
        arrays, _ = self.columns(first)  # in the arrangement's order of columns
        held = self._held(collection, np.sort(codes(arrays, len(first))), arrays).updates
        if len(held):
            parts.append(self._ended(held, first))
        return concat(parts)

    def _ended(self, held: Updates, first: Updates) -> Updates:
        """Deletions, at the times of `first`, of what is held under their keys."""
        both = concat([first, held])
        numbers = groups([both.columns[name] for name in self.table.primary_key], len(both))
        start = np.full(int(numbers.max()) + 1, np.iinfo(np.int64).min)
        start[numbers[: len(first)]] = first.time
        begins = start[numbers[len(first) :]]
        known = (held.time <= begins) & (begins != np.iinfo(np.int64).min)
        return Updates(held.columns, begins, -held.diff).filter(known)

    def _key(self, updates: Updates, row: int) -> str:
        values = ", ".join(repr(updates.columns[name][row].as_py()) for name in self.table.primary_key)
        return f"({', '.join(self.table.primary_key)}) = ({values})"

    def _missing(self, both: Updates, keys: Ints, row: int, held: int, number: int) -> str:
        text = f"{self.table.name}: row {number}: deletes a row that is not there: {self._key(both, row)}"
        others = np.flatnonzero((keys == keys[row]) & (both.diff > 0))
        others = others[others < held]
        if len(others):
            there = {name: column[int(others[-1])].as_py() for name, column in both.columns.items()}
            given = {name: column[row].as_py() for name, column in both.columns.items()}
            unequal = [name for name in there if there[name] != given[name]]
            differing = [f"{name} is {there[name]!r}, not {given[name]!r}" for name in unequal]
            if differing:
                text += f"; in the row with that key {', '.join(differing[:3])}"
        return text


def arrangement_of(table: Table) -> ArrangementKey:
    """The arrangement of a table by its primary key."""
    by_name = {column.name: column.column for column in table.columns}
    keys: tuple[Column, ...] = tuple(by_name[name] for name in sorted(table.primary_key))
    return ArrangementKey(table.name, keys)


def _first_outside(numbers: Ints, updates: Updates, low: int, high: int, held: int) -> int | None:
    """The first row of the batch (from position `held` on) in a group whose running count leaves `[low, high]`."""
    order = np.lexsort((updates.time, numbers))
    group, time = numbers[order], updates.time[order]
    running = np.cumsum(updates.diff[order])
    starts = np.concatenate([[True], group[1:] != group[:-1]])
    first = np.flatnonzero(starts)
    base = np.repeat(np.concatenate([[0], running[first[1:] - 1]]), np.diff(np.append(first, len(group))))
    count = running - base
    settled = np.ones(len(group), np.bool_)  # updates of one time take effect together
    settled[:-1] = (group[1:] != group[:-1]) | (time[1:] != time[:-1])
    bad = settled & ((count < low) | (count > high))
    if not bad.any():
        return None
    guilty = np.isin(group, np.unique(group[bad])) & (order >= held)
    outside = guilty & ((count < low) | (count > high))  # the row that led there, not one before it
    return int(order[outside if outside.any() else guilty].min())

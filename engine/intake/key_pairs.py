"""Finds the keys that a batch plainly keeps unique: it pairs each insertion with the deletion of the same row.

Take the table's updates of a key and the batch's deletions of that key. If they all form such pairs, no row of the key
is left, and the batch may insert one row. This holds for new keys, and for rows that the batch deletes or replaces
exactly, however often they changed before. Rows are compared, not hashed; this is cheap for most batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from halfjoin.engine.updates.codes import same, same_rows
from halfjoin.engine.updates.updates import MINIMUM, Ints, Mask, Positions, Updates, gather, indices_of

_FEW = 16  # rows; so few are paired faster one by one


class KeyedRows(NamedTuple):
    """Some rows of `updates`, and the number of each row's key."""

    updates: Updates
    rows: Positions
    keys: Ints


class _Placed(NamedTuple):
    """A row that cancels with another one of its key."""

    time: int
    diff: int
    updates: Updates
    row: int


def plain(held: Sequence[KeyedRows], batch: KeyedRows, count: int) -> Mask:
    """For each of `count` keys, whether after the batch it plainly has at most one row, and no row a negative count.

    A key may also be a code that several keys share. Rows of different keys do not pair.
    """
    if len(batch.rows) + sum([len(place.rows) for place in held]) <= _FEW:
        return _plain_of_few(held, batch, count)
    diff, time = batch.updates.diff[batch.rows], batch.updates.time[batch.rows]
    doubtful = np.bincount(batch.keys[diff == 1], minlength=count) > 1
    doubtful[batch.keys[np.abs(diff) != 1]] = True
    begins = np.empty(count, np.int64)
    begins[batch.keys] = time
    doubtful[batch.keys[time != begins[batch.keys]]] = True
    gone = (diff == -1).nonzero()[0]
    places = [*held, KeyedRows(batch.updates, batch.rows[gone], batch.keys[gone])]
    keys = np.concatenate([place.keys for place in places])
    if not len(keys):
        return ~doubtful
    diffs = np.concatenate([place.updates.diff[place.rows] for place in places])
    times = np.concatenate([place.updates.time[place.rows] for place in places])
    doubtful[keys[times > begins[keys]]] = True
    times[len(times) - len(gone) :] += 1  # the batch's deletions come last
    # Sort by key, time and diff (deletions first). Then each insertion should stand before its deletion.
    order = np.lexsort((diffs, times, keys))
    ordered = keys[order]
    rank = np.arange(len(order)) - ordered.searchsorted(ordered)
    doubtful[ordered[diffs[order] != 1 - 2 * (rank & 1)]] = True
    doubtful |= (np.bincount(keys, minlength=count) & 1).astype(np.bool_)
    order = order[~doubtful[ordered]]
    _compare(places, order[::2], order[1::2], keys, doubtful)
    return ~doubtful


def _plain_of_few(held: Sequence[KeyedRows], batch: KeyedRows, count: int) -> Mask:
    """As `plain`, one by one."""
    unset = MINIMUM - 1
    sure, begins, comes = [True] * count, [unset] * count, [0] * count
    pairs: list[list[_Placed]] = [[] for _ in range(count)]
    for key, row, time, diff in _rows(batch):
        if begins[key] not in (unset, time):
            sure[key] = False
        begins[key] = time
        if diff == 1:
            comes[key] += 1
        elif diff == -1:
            pairs[key].append(_Placed(time + 1, diff, batch.updates, row))  # the batch's deletions come last
        else:
            sure[key] = False
    for place in held:
        for key, row, time, diff in _rows(place):
            if time > begins[key]:
                sure[key] = False
            pairs[key].append(_Placed(time, diff, place.updates, row))
    return np.array([ok and most < 2 and _cancel(rows) for ok, most, rows in zip(sure, comes, pairs, strict=True)])


def _rows(place: KeyedRows) -> Iterable[tuple[int, int, int, int]]:
    """The key, the row number, the time and the diff of each row."""
    rows, updates = place.rows, place.updates
    return zip(place.keys.tolist(), rows.tolist(), updates.time[rows].tolist(), updates.diff[rows].tolist(),
               strict=True)  # fmt: skip


def _cancel(rows: list[_Placed]) -> bool:
    """Whether rows of one key are pairs of an insertion and the deletion of the same row, one after the other."""
    if len(rows) & 1:
        return False
    rows.sort(key=itemgetter(0, 1))
    for came, gone in zip(rows[::2], rows[1::2], strict=True):
        if came.diff != 1 or gone.diff != -1:
            return False
        for name, column in came.updates.columns.items():
            left, right = column.slice(came.row, 1), gone.updates.columns[name].slice(gone.row, 1)
            if not left.equals(right) and not same(left, right).all():
                return False
    return True


def _compare(places: Sequence[KeyedRows], inserted: Ints, deleted: Ints, keys: Ints, doubtful: Mask) -> None:
    """Mark the keys of pairs that are not the same row. A row's number counts through the rows of all the places."""
    sizes = [len(place.rows) for place in places]
    rows = np.concatenate([place.rows for place in places])
    where = np.arange(len(places)).repeat(sizes)
    between = where[inserted] * len(places) + where[deleted]
    for both in np.bincount(between).nonzero()[0]:
        pairs = (between == both).nonzero()[0]
        left, right = (places[i].updates.columns for i in divmod(int(both), len(places)))
        there, gone = rows[inserted[pairs]], rows[deleted[pairs]]
        equal = same_rows(_at(left, there, left), _at(right, gone, left), len(pairs))
        if not equal.all():
            doubtful[keys[inserted[pairs[~equal]]]] = True


def _at(columns: Mapping[str, pa.Array], rows: Positions, names: Iterable[str]) -> Iterable[pa.Array]:
    """The values of rows, column by column. For a single row, a slice costs a third of a gathered copy."""
    if len(rows) == 1:
        row = rows.item()
        return (columns[name].slice(row, 1) for name in names)
    indices = indices_of(rows)
    return (gather(columns[name], indices) for name in names)

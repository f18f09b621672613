"""Finds the keys that a batch plainly keeps unique: it pairs each insertion with the deletion of the same row.

Take the table's updates of a key and the batch's deletions of that key. If they all form such pairs, no row of the key
is left, and the batch may insert one row. This holds for new keys, and for rows that the batch deletes or replaces
exactly, however often they changed before. Rows are compared, not hashed; this is cheap for most batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from halfjoin.engine.updates.codes import same_rows
from halfjoin.engine.updates.updates import Ints, Mask, Positions, Updates, gather, indices_of


class KeyedRows(NamedTuple):
    """Some rows of `updates`, and the number of each row's key."""

    updates: Updates
    rows: Positions
    keys: Ints


def plain(held: Sequence[KeyedRows], batch: KeyedRows, count: int) -> Mask:
    """For each of `count` keys, whether after the batch it plainly has at most one row, and no row a negative count.

    A key may also be a code that several keys share. Rows of different keys do not pair.
    """
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

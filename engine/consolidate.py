"""Consolidation: equal updates are added up, and those that add up to nothing go away."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from halfjoin.engine.codes import codes, factorize, same_rows
from halfjoin.engine.updates import TOO_MANY, Ints, Mask, Updates, bits, constant, gather, indices_of
from halfjoin.sql.errors import DataError


def consolidate(updates: Updates, *, by_time: bool = True, checked: bool = True) -> Updates:
    """One update per distinct row (and time), diffs summed, zeros dropped.

    `by_time=False` sums over all times, for contents as of a time; the result's times are then without meaning.
    The first of equal updates stands for all, and order is kept. What is only merged is not `checked` again.

    Raises:
        DataError: a sum does not fit into an int64.
    """
    return _survivors(updates, *_sums(updates, by_time, checked=checked))


def cancel(updates: Updates, *, by_time: bool = True) -> Updates:
    """As `consolidate`, but positive duplicates may still stand apart; cheap where few diffs are negative."""
    return _survivors(updates, *cancelled(updates, by_time=by_time))


def cancelled(updates: Updates, *, by_time: bool = True) -> tuple[Ints, Ints]:
    """What `cancel` leaves: positions in order, and their diffs.

    Only rows with the code of a row that has a negative diff can cancel, so where those are few, a hash of the
    fixed-width columns spares the rest of the work.
    """
    negative = updates.diff < 0
    count = int(np.count_nonzero(negative))
    if not count:
        return np.arange(len(updates)), updates.diff
    if count * 4 > len(updates):
        return _sums(updates, by_time)
    narrow = [column for column in updates.columns.values() if not _is_wide(column.type)]
    keys = codes(narrow or list(updates.columns.values()), len(updates))
    wanted = np.unique(keys[negative])
    found = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
    touched = wanted[found] == keys
    suspects = np.flatnonzero(touched)
    positions, diffs = _sums(updates.take(suspects), by_time)
    rest = np.flatnonzero(~touched)
    everything = np.concatenate([rest, suspects[positions]])
    order = np.argsort(everything)
    return everything[order], np.concatenate([updates.diff[rest], diffs])[order]


def _survivors(updates: Updates, positions: Ints, diffs: Ints) -> Updates:
    if len(positions) == len(updates):
        return Updates(updates.columns, updates.time, diffs)
    kept = updates.take(positions)
    return Updates(kept.columns, kept.time, diffs)


def _sums(updates: Updates, by_time: bool, *, checked: bool = False) -> tuple[Ints, Ints]:
    """Positions of the rows that stay, in order, and their summed diffs."""
    order, first = _groups(updates, by_time) if len(updates) > 1 else (np.zeros(0, np.int64), np.zeros(0, np.bool_))
    if len(order) == 0:  # all distinct
        positions = np.flatnonzero(updates.diff != 0)
        return positions, updates.diff[positions] if len(positions) < len(updates) else updates.diff
    starts = np.flatnonzero(first)
    sums = np.add.reduceat(updates.diff[order], starts)
    if checked and bits(updates.diff) + len(order).bit_length() > 63:
        _check_sums(updates.diff[order], starts)
    earliest = np.minimum.reduceat(order, starts)
    alive = sums != 0
    earliest, sums = earliest[alive], sums[alive]
    back = np.argsort(earliest)
    return earliest[back], sums[back]


def _check_sums(diffs: Ints, starts: Ints) -> None:
    """Refuse sums that are none of an int64: their upper halves tell, with what the lower ones carry."""
    upper, lower = (np.add.reduceat(half, starts) for half in (diffs >> 32, diffs & 0xFFFFFFFF))
    upper += lower >> 32
    if (upper != upper.astype(np.int32)).any():
        raise DataError(TOO_MANY)


def groups(columns: list[pa.Array], length: int, time: Ints | None = None) -> Ints:
    """A number per row, equal exactly where all the columns (and the time) are equal."""
    order, first = _groups(Updates({str(i): c for i, c in enumerate(columns)}, time if time is not None else
                                   constant(0, length), constant(1, length)), time is not None)
    if len(order) == 0:
        return np.arange(length)
    numbers = np.empty(length, np.int64)
    numbers[order] = np.cumsum(first) - 1
    return numbers


def _groups(updates: Updates, by_time: bool) -> tuple[Ints, Mask]:
    """An order that puts equal updates together and the mask of each group's first; empty where all are distinct."""
    columns = list(updates.columns.values())
    keys = codes(columns, len(updates))
    timed = by_time and updates.time.strides != (0,)
    if timed:
        keys = codes([pa.array(keys), pa.array(updates.time)], len(updates))
    order = np.argsort(keys)
    ordered = keys[order]
    repeated = ordered[1:] == ordered[:-1]
    suspects = np.flatnonzero(repeated)
    if len(suspects) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.bool_)
    left, right = indices_of(order[suspects]), indices_of(order[suspects + 1])
    equal = same_rows((gather(column, left) for column in columns), (gather(column, right) for column in columns),
                      len(suspects))  # fmt: skip
    if timed:
        equal &= updates.time[order[suspects]] == updates.time[order[suspects + 1]]
    if not equal.all():  # two different rows share a code: sort by what is exact
        return _exact_groups(columns, updates.time if timed else None, len(updates))
    return order, np.concatenate([[True], ~repeated])


def _exact_groups(columns: list[pa.Array], time: Ints | None, length: int) -> tuple[Ints, Mask]:
    numbers = [factorize(column) for column in columns] + ([] if time is None else [time])
    order = np.lexsort(numbers)
    first = np.zeros(length, np.bool_)
    first[0] = True
    for column in numbers:
        first[1:] |= column[order][1:] != column[order][:-1]
    return order, first


def _is_wide(kind: pa.DataType) -> bool:
    return bool(
        pt.is_nested(kind)
        or pt.is_string(kind)
        or pt.is_binary(kind)
        or pt.is_large_string(kind)
        or pt.is_large_binary(kind)
    )

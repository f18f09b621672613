"""Consolidation: adds up equal updates and drops those whose sum is 0.

Sums are exact, so they do not depend on the order of updates, or on how updates were split and merged before. If a sum
does not fit into an int64, the update stays in as few pieces as possible. These pieces depend on the sum only. So a
merge of runs or files loses nothing, and a later batch can bring the sum back into range. Contents have no pieces: if
the weight of a row at a time does not fit into an int64, reading the row is an error.

>>> import pyarrow as pa
>>> rows, times, diffs = pa.array(["fig", "fig", "fig"]), np.array([1, 2, 2]), np.array([1, 2, -2])
>>> [consolidate(Updates({"x": rows}, times, diffs)).table(changes=True).to_pylist()]
[[{'x': 'fig', '__time': 1, '__diff': 1}]]
"""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from halfjoin.engine.kernels import native, summing
from halfjoin.engine.updates.codes import codes, factorize, integers, is_exact, is_integral, same_rows
from halfjoin.engine.updates.updates import (
    MAXIMUM,
    MINIMUM,
    TOO_MANY,
    Ints,
    Mask,
    Updates,
    bits,
    constant,
    gather,
    indices_of,
    some_below_zero,
    where_true,
)
from halfjoin.errors import DataError

FEW = 32  # updates; so few are added up faster one by one
_FEW_FOR_KERNELS = 1 << 14  # updates; a kernel adds so few up faster than it takes to find those that may cancel
_SPARSE = 3  # a table has 2 ** _SPARSE times as many slots as entries, or twice that
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd; products with it have well mixed upper bits (Fibonacci hashing)


def consolidate(updates: Updates, *, by_time: bool = True) -> Updates:
    """One update per distinct row (and time), with the sum of the diffs. Sums of 0 are dropped.

    `by_time=False` sums over all times, for contents as of a time. The times of the result then have no meaning.
    The first of equal updates stands for all of them, and the order stays. A sum by time that does not fit into an
    int64 stays in pieces.

    Raises:
        DataError: `by_time=False`, and a sum does not fit into an int64.
    """
    if len(updates.time) == 1 and updates.diff.item(0):  # as most batches of one row give
        return updates
    return _survivors(updates, *_sums(updates, by_time))


def cancel(updates: Updates, *, by_time: bool = True) -> Updates:
    """Like `consolidate`, but positive duplicates may stay separate. It is cheap if few diffs are negative."""
    return _survivors(updates, *cancelled(updates, by_time=by_time)) if some_below_zero(updates.diff) else updates


def cancelled(updates: Updates, *, by_time: bool = True) -> tuple[Ints, Ints]:
    """The updates that `cancel` leaves: their positions in order, and their diffs.

    A row can cancel only if it shares a code with a row that has a negative diff. If those are few, codes of the
    fixed-width columns find the candidates, and only the candidates are added up.
    """
    if len(updates) < 2:
        return np.arange(len(updates)), updates.diff
    negative = updates.diff < 0
    count = int(np.count_nonzero(negative))
    if not count:
        return np.arange(len(updates)), updates.diff
    if count * 4 > len(updates) or len(updates) <= (_FEW_FOR_KERNELS if native.on else FEW):
        return _sums(updates, by_time)
    keys = narrow_codes(updates)
    touched = sharing(keys, keys[negative])
    suspects = where_true(touched)
    positions, diffs = _sums(updates.take(suspects), by_time)
    there, sums = ~touched, updates.diff.copy()  # marks keep the order, which sorting all of them again would cost
    there[suspects[positions]], sums[suspects[positions]] = True, diffs
    left = where_true(there)
    return left, sums[left]


def narrow_codes(updates: Updates) -> Ints:
    """A code of each row, equal where rows are: of the columns with a fixed width, if there are any."""
    narrow = [column for column in updates.columns.values() if not _is_wide(column.type)]
    return codes(narrow or list(updates.columns.values()), len(updates))


def sharing(keys: Ints, some: Ints) -> Mask:
    """Marks the codes that are among `some`, and a few others."""
    bits = _SPARSE + len(some).bit_length()
    shift = np.uint64(64 - bits)
    there = np.zeros(1 << bits, np.bool_)
    there[(some.view(np.uint64) * _SPREAD) >> shift] = True
    found: Mask = there[(keys.view(np.uint64) * _SPREAD) >> shift]
    return found


def _survivors(updates: Updates, positions: Ints, diffs: Ints) -> Updates:
    if len(positions) == len(updates.time):
        return updates if diffs is updates.diff else Updates(updates.columns, updates.time, diffs)
    kept = updates.take(positions)
    return Updates(kept.columns, kept.time, diffs)


def _sums(updates: Updates, by_time: bool) -> tuple[Ints, Ints]:
    """Positions of the rows that stay, in order, and the sums of their diffs."""
    if native.on:
        made = summing.sums(list(updates.columns.values()), updates.time if by_time else None, updates.diff)
        if made is not None:
            return made if len(made[0]) < len(updates) else (made[0], updates.diff)
    if 1 < len(updates) <= FEW:
        few = _pair_sums(updates, by_time) if len(updates) == 2 else _few_sums(updates, by_time)
        if few is not None:
            return few
    found = _groups(updates, by_time) if len(updates) > 1 else None
    if found is None:
        positions = where_true(updates.diff != 0)
        return positions, updates.diff[positions] if len(positions) < len(updates) else updates.diff
    order, first = found
    starts = where_true(first)
    diffs = updates.diff[order]
    sums = np.add.reduceat(diffs, starts)  # modulo 2**64
    positions = np.minimum.reduceat(order, starts)
    alive = sums != 0
    if bits(updates.diff) + len(order).bit_length() > 63 and len(wide := _wide(diffs, starts)):
        alive[wide] = False
        stops = np.append(starts[1:], len(order))
        parts = [slice(start, stop) for start, stop in zip(starts[wide], stops[wide], strict=True)]
        pieces = [_pieces(order[part], diffs[part]) for part in parts]
        if not by_time:
            raise DataError(_too_many(updates, int(pieces[0][0][0])))
        positions = np.concatenate([positions[alive], *(where for where, _ in pieces)])
        sums = np.concatenate([sums[alive], *(made for _, made in pieces)])
    else:
        positions, sums = positions[alive], sums[alive]
    back = np.argsort(positions)
    return positions[back], sums[back]


def _pair_sums(updates: Updates, by_time: bool) -> tuple[Ints, Ints] | None:
    """As `_few_sums`, of two updates: most small batches replace a row."""
    left, right = updates.diff.tolist()
    if by_time and updates.time[0] != updates.time[1]:
        equal = False
    else:
        unequal = [column for column in updates.columns.values() if not column.slice(0, 1).equals(column.slice(1))]
        if unequal and not [column for column in unequal if _tells_apart(column.type)]:
            return _few_sums(updates, by_time)  # NaN equals NaN, which Arrow denies
        equal = not unequal
    if not equal and left and right:
        return np.arange(2), updates.diff
    sums = [(0, left + right)] if equal else [(0, left), (1, right)]
    kept = [one for one in sums if one[1]]
    if [diff for _, diff in kept if abs(diff) > MAXIMUM]:
        return None
    return np.array([at for at, _ in kept], np.int64), np.array([diff for _, diff in kept], np.int64)


def _tells_apart(kind: pa.DataType) -> bool:
    """Whether values are equal exactly if Arrow finds them equal."""
    return not (pt.is_floating(kind) or pt.is_nested(kind))


def _few_sums(updates: Updates, by_time: bool) -> tuple[Ints, Ints] | None:
    """As `_sums`, one by one; None if some value or sum is not a simple one."""
    rows = list[list[Any]]()
    for column in updates.columns.values():
        if pt.is_integer(column.type):
            rows.append(column.to_pylist())
        elif is_integral(column.type):
            rows.append(integers(column).tolist())
            if column.null_count:
                rows.append(column.is_null().to_pylist())
        elif pt.is_floating(column.type):
            rows.append([None if value is None else "NaN" if value != value else value for value in column.to_pylist()])
        elif pt.is_string(column.type) or pt.is_binary(column.type) or pt.is_decimal(column.type):
            rows.append(column.to_pylist())
        elif pt.is_interval(column.type):
            rows.append(column.view(pa.binary(16)).to_pylist())
        else:
            return None
    rows.append(updates.time.tolist() if by_time else [0] * len(updates))
    sums, first = dict[Any, int](), dict[Any, int]()
    for position, (row, diff) in enumerate(zip(zip(*rows, strict=True), updates.diff.tolist(), strict=True)):
        if row in sums:
            sums[row] += diff
        else:
            sums[row], first[row] = diff, position
    kept = {first[row]: diff for row, diff in sums.items() if diff}
    if kept and (max(kept.values()) > MAXIMUM or min(kept.values()) < -MAXIMUM):
        return None
    return np.array(list(kept), np.int64), np.array(list(kept.values()), np.int64)


def _wide(diffs: Ints, starts: Ints) -> Ints:
    """The groups whose sums do not fit into an int64: the sums of the upper halves, with the carries, show it."""
    upper, lower = (np.add.reduceat(half, starts) for half in (diffs >> 32, diffs & 0xFFFFFFFF))
    upper += lower >> 32
    return where_true(upper != upper.astype(np.int32))


def _pieces(positions: Ints, diffs: Ints) -> tuple[Ints, Ints]:
    """The fewest int64s that add up to the sum, at the first of the positions.

    All pieces but the last are the greatest (or the least) int64, so there are no more pieces than summands.
    """
    total = sum(diffs.tolist())
    most = MAXIMUM if total > 0 else MINIMUM
    count, rest = divmod(total, most)
    parts = np.array([most] * count + ([rest] if rest else []), np.int64)
    return np.sort(positions)[: len(parts)], parts


def _too_many(updates: Updates, position: int) -> str:
    row: dict[str, Any] = {}
    for name, column in updates.columns.items():
        try:
            row[name] = column[position].as_py()
        except (OverflowError, ValueError):  # a date of a year that Python does not have
            row[name] = column.slice(position, 1).to_string(skip_new_lines=True)
    return f"{TOO_MANY}: {textwrap.shorten(str(row), 500)}"


def distinct(columns: list[pa.Array], length: int) -> Ints:
    """The position of one row of each that are equal in all the columns, in any order."""
    made = summing.groups(columns, None, length)
    if made is not None:
        return made[1]
    found = _groups(_untimed(columns, length), False) if length > 1 else None
    return np.arange(length) if found is None else found[0][found[1]]


def groups(columns: list[pa.Array], length: int, time: Ints | None = None) -> Ints:
    """A number per row: equal exactly where all the columns (and the time) are equal."""
    made = summing.groups(columns, time, length)
    if made is not None:
        return made[0]
    updates = _untimed(columns, length)
    found = _groups(updates if time is None else Updates(updates.columns, time, updates.diff), time is not None)
    if found is None:
        return np.arange(length)
    order, first = found
    numbers = np.empty(length, np.int64)
    numbers[order] = np.cumsum(first) - 1
    return numbers


def numbered(columns: list[pa.Array], length: int) -> tuple[Ints, Ints]:
    """As `groups`, with numbers from 0; and the position of one row of each number."""
    made = summing.groups(columns, None, length)
    if made is not None:
        return made
    _, firsts, numbers = np.unique(groups(columns, length), return_index=True, return_inverse=True)
    return numbers, firsts


def _untimed(columns: list[pa.Array], length: int) -> Updates:
    """Rows without names or times."""
    return Updates({str(i): column for i, column in enumerate(columns)}, constant(0, length), constant(1, length))


def _groups(updates: Updates, by_time: bool) -> tuple[Ints, Mask] | None:
    """An order that puts equal updates together, and the mask of the first of each group. None: all are distinct."""
    columns = list(updates.columns.values())
    keys = codes(columns, len(updates))
    timed = by_time and updates.time.strides != (0,) and bool((updates.time != updates.time[:1]).any())
    if timed:
        keys = codes([pa.array(keys), pa.array(updates.time)], len(updates))
    order = np.argsort(keys)
    ordered = keys[order]
    repeated = ordered[1:] == ordered[:-1]
    suspects = where_true(repeated)
    if len(suspects) == 0:
        return None
    first = np.ones(len(order), np.bool_)
    first[1:] = ~repeated
    if is_exact(columns) and not timed:
        return order, first
    left, right = indices_of(order[suspects]), indices_of(order[suspects + 1])
    equal = same_rows((gather(column, left) for column in columns), (gather(column, right) for column in columns),
                      len(suspects))  # fmt: skip
    if timed:
        equal &= updates.time[order[suspects]] == updates.time[order[suspects + 1]]
    if not equal.all():  # two different rows share a code: sort by exact numbers
        return _exact_groups(columns, updates.time if timed else None, len(updates))
    return order, first


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

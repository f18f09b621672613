"""Searches entries for a few rows one by one: that needs no arrays, which cost more than so few comparisons."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from halfjoin.engine.scalar.values import raw
from halfjoin.engine.updates.codes import is_integral
from halfjoin.engine.updates.updates import Positions
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import SortKey

Key: TypeAlias = Callable[[int], Any]  # of a row: values whose order is the order of rows


def keys_of(
    tables: Sequence[Mapping[str, pa.Array]], order: Sequence[SortKey], names: Sequence[str]
) -> list[Key] | None:
    """For each of several tables, the keys of its rows, which can be compared. None if some type has no simple key.

    The order is that of `sorting.sort`: by the sort keys, which are columns, then by the columns `names`.
    """
    sorted_by = {key.expr.name: key for key in order if isinstance(key.expr, Column)}
    if len(sorted_by) < len(order):
        return None
    by = [*sorted_by.items(), *((name, None) for name in names if name not in sorted_by)]
    parts = list[list[Key]]()
    for name, key in by:
        columns = [table[name] for table in tables]
        down, first = (False, False) if key is None else (key.descending, key.nulls_first)
        plain = [_plain(column, down) for column in columns]
        if [column for column in columns if column.null_count]:
            plain = [None if one is None else _nullable(one, column, first)
                     for one, column in zip(plain, columns, strict=True)]  # fmt: skip
        parts.append([one for one in plain if one is not None])
        if len(parts[-1]) < len(tables):
            return None
    return [_together([part[number] for part in parts]) for number in range(len(tables))]


def place(rows: Positions, low: int, high: int, key: Key, asked: Any, *, after: bool) -> int:
    """The first of the entries `[low, high)` whose row is not less than what is asked; or `after` it, greater."""
    row = rows.item
    search = bisect_right if after else bisect_left
    return search(range(high), asked, low, high, key=lambda entry: key(row(entry)))


def span(rows: Positions, low: int, high: int, key: Key, asked: Any) -> tuple[int, int]:
    """Of the entries `[low, high)`, the first whose row equals what is asked, and the one after the last such."""
    first, step = place(rows, low, high, key, asked, after=False), 1
    while first + step <= high and key(rows.item(first + step - 1)) == asked:
        step *= 2
    if step == 1:
        return first, first
    return first, place(rows, first + step // 2, min(first + step - 1, high), key, asked, after=True)


class Beside(NamedTuple):
    """The entries of a run beside those that equal a row: their `rows`, `keys` and diffs (`weights`).

    The first `back` of them come before the equal ones, which count `own` times, the others behind. `ahead`: the sum of
    the diffs of all entries before the equal ones. `more_before`, `more_behind`: whether there are others.
    """

    rows: Positions
    keys: list[Any]
    weights: list[int]
    back: int
    ahead: int
    own: int
    more_before: bool
    more_behind: bool


def _together(parts: Sequence[Key]) -> Key:
    return parts[0] if len(parts) == 1 else lambda row: tuple([part(row) for part in parts])


def _plain(column: pa.Array, descending: bool) -> Key | None:
    """The key of the rows of a column without NULLs."""
    kind = column.type
    if is_integral(kind) and kind.bit_width > 1:  # a boolean has one bit
        item = raw(column).view(f"i{kind.bit_width // 8}").item
        return (lambda row: -item(row)) if descending else item
    if pt.is_floating(kind):
        return _of_floats(raw(column).item, -1 if descending else 1)
    if (pt.is_string(kind) or pt.is_binary(kind)) and not descending:
        return _of_bytes(column)
    return None


def _of_floats(item: Callable[[int], float], sign: int) -> Key:
    """NaN is above all numbers."""

    def key(row: int) -> tuple[int, float]:
        value = item(row)
        return (0, sign * value) if value == value else (sign, 0.0)

    return key


def _of_bytes(column: pa.Array) -> Key:
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset :].item
    held = memoryview(b"" if data is None else data)
    return lambda row: bytes(held[ends(row) : ends(row + 1)])


def _nullable(key: Key, column: pa.Array, first: bool) -> Key:
    """NULL is above all values, or below them."""
    mask = column.buffers()[0]
    if not column.null_count or mask is None:
        return lambda row: (0, key(row))
    bits, offset, null = np.frombuffer(mask, np.uint8).item, column.offset, (-1 if first else 1,)
    return lambda row: (0, key(row)) if bits((row + offset) >> 3) >> ((row + offset) & 7) & 1 else null

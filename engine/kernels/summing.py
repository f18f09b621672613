"""Kernels of groups: which rows are equal, and what they add up to."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.kernels import native
from halfjoin.engine.kernels.native import ARRAY, BUFFER, Ints, RowNumbers, Words, column_of, ints

if native.BUILT:
    from halfjoin.engine.kernels import _native

# Of each sum the position of its column (-1: rows are counted), and the positions of its arguments.
Parts: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]


def groups(columns: list[pa.Array], time: Ints | None, length: int) -> tuple[Ints, Ints] | None:
    """A number for each row, from 0 in order of the rows, equal exactly where the rows are; and the first row of each
    number."""
    made = _native.groups(columns, time, length) if native.on else None
    return None if made is None else (ints(made[0]), ints(made[1]))


class Grouped(NamedTuple):
    """The groups of rows: the first row of each, in order, and for each part its sums: of 64 bits, or the lower and the
    higher 64 bits. `numbers`: of each row's group, if the caller has asked for them."""

    firsts: Ints
    sums: list[Ints | tuple[Words, Ints]]
    numbers: Ints | None


def grouped(
    pieces: list[tuple[list[pa.Array], list[pa.Array], Ints]], parts: list[tuple[int, tuple[int, ...]]], *,
    numbered: bool,
) -> Grouped | None:  # fmt: skip
    """The groups of the rows of pieces by their keys, which come first, and what they add to sums.

    A row adds the product of the first arguments of a part, so many as are told, as often as its diff says; but nothing
    if an argument is NULL. Arguments are positions among the second columns of a piece. None also where a sum does not
    fit 128 bits.
    """
    made = _native.grouped(pieces, parts, numbered) if native.on else None
    if made is None:
        return None
    firsts, sums, numbers = made
    found = list[Ints | tuple[Words, Ints]]()
    for one in sums:
        if len(one) == len(firsts):
            found.append(ints(one))
        else:
            words = np.frombuffer(one, np.uint64).reshape(-1, 2)
            found.append((words[:, 0], words[:, 1].view(np.int64)))
    return Grouped(ints(firsts), found, None if numbers is None else ints(numbers))


def sums(columns: list[pa.Array], time: Ints | None, diff: Ints) -> tuple[Ints, Ints] | None:
    """The first of equal rows, in order, and the sums of their diffs, without sums of 0. None if a sum may not fit an
    int64."""
    made = _native.sums(columns, time, diff) if native.on else None
    return None if made is None else (ints(made[0]), ints(made[1]))


def moments(columns: list[pa.Array], time: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints, NDArray[np.bool_]] | None:
    """Of rows of one time, as `engine.reduce.law.Moments`: the first row of each group; `rows`, `starts`, `group`,
    `time` and `was`. Groups come in the order of their first rows. None also if there are several times, or no row."""
    made = _native.moments(columns, time) if native.on else None
    if made is None:
        return None
    firsts, rows, starts, group, times, was = made
    return ints(firsts), ints(rows), ints(starts), ints(group), ints(times), np.frombuffer(was, np.bool_)


def reduced(
    columns: list[pa.Array], keys: int, parts: Parts, time: Ints, diff: Ints, sides: list[Any],
    types: list[pa.DataType], most: int,
) -> tuple[list[pa.Array], Ints, tuple[Ints, RowNumbers], int, object] | None:  # fmt: skip
    """The rows of groups that go and come when updates of one time are added: columns of these `types`, and diffs; the
    index of the rows by their keys, as `indexed` gives it; how many kept rows were found; and the rows opened by their
    index, as one of `sides`.

    `columns` has so many `keys`, then the arguments of the `parts`, of which the first counts all rows. The sides have
    the rows that are kept for the groups: their keys, then a column for each part. None also if the updates have
    several times, a sum does not fit 128 bits, a group's rows do not cancel, or more than `most` rows are found.
    """
    made = _native.reduced(columns, keys, parts, time, diff, sides, most) if native.on else None
    if made is None:
        return None
    buffers, diffs, (values, rows), found, opened = made
    length = len(diffs) // 8
    arrays = [ARRAY(type, length, [part if part is None else BUFFER(part) for part in parts])
              for type, parts in zip(types, buffers, strict=True)]  # fmt: skip
    return arrays, ints(diffs), (ints(values), np.frombuffer(rows, np.uint32)), found, opened


def totals(
    summed: pa.Array | None, args: list[pa.Array], old: pa.Array | None, diff: Ints, rows: Ints, starts: Ints,
    group: Ints, was: NDArray[np.bool_], begins: bool,
) -> pa.Array | None:  # fmt: skip
    """The sum of a group at each of its moments (`engine.reduce.law.Moments`), as `Totals.kept` gives it.

    `summed`: integers or numerics; None: rows are counted. `args`: a row in which one is NULL adds nothing. `old`: what
    was kept for each group; NULL, or no array, is a sum of nothing.
    """
    if not native.on:
        return None
    parts = _native.totals([] if summed is None else [summed], args, [] if old is None else [old], diff, rows, starts,
                           group, was, begins)  # fmt: skip
    if parts is None:
        return None
    return column_of(pa.int64() if summed is None else pa.binary(), len(group), parts)


def kept(numbers: Ints) -> pa.Array | None:
    """Integers as sums are kept (`engine.scalar.kept`)."""
    parts = _native.kept(numbers) if native.on else None
    return None if parts is None else column_of(pa.binary(), len(numbers), parts)


def read_kept(sums: pa.Array) -> Ints | None:
    """The numbers of kept sums, 0 for NULL; None also where one does not fit an int64."""
    made = _native.read_kept([sums]) if native.on else None
    return None if made is None else ints(made)


def added(values: pa.Array | None, args: list[pa.Array], diff: Ints) -> tuple[Ints, int] | None:
    """What each update adds to a sum of integers or numerics (None: rows are counted), and the greatest absolute value
    of that. A row in which a value or one of `args` is NULL adds nothing. None also where some update adds no int64."""
    made = _native.added([] if values is None else [values], args, diff) if native.on else None
    return None if made is None else (ints(made[0]), made[1])


def added_up(values: pa.Array | None, args: list[pa.Array], diff: Ints) -> int | None:
    """The sum of what `added` gives, of numbers of any size. None also where it does not fit 128 bits."""
    made = _native.added_up([] if values is None else [values], args, diff) if native.on else None
    return None if made is None else int.from_bytes(made, "little", signed=True)


def extreme(column: pa.Array, marks: NDArray[np.bool_] | None, greatest: bool) -> int | None:
    """The row of the least or greatest value of those that are marked (None: all) and not NULL; -1 if there is none.
    None also where one of them is NaN."""
    return _native.extreme([column], marks, greatest) if native.on else None


def float_sums(values: list[pa.Array], diff: Ints, group: Ints, groups: int) -> tuple[int, Ints] | None:
    """The sums of floats, or of products of two, by their groups' numbers, as `engine.scalar.wide` has them: the number
    of the first digit, and the digits x groups. NULL adds nothing. None also if a value is NaN or infinite."""
    made = _native.float_sums(values, diff, group, groups) if native.on else None
    return None if made is None else (made[0], ints(made[1]).reshape(-1, groups))


def firsts(
    groups: int, round: int, width: int, rows: tuple[Ints, ...], made: tuple[Ints, ...]
) -> tuple[Ints, Ints, Ints, Ints, Ints] | None:  # fmt: skip
    """What `engine.loop.first.differences` finds, of histories whose places are below `width`. None also where a row
    counts less than zero times."""
    found = _native.firsts(groups, round, width, rows, made) if native.on else None
    if found is None:
        return None
    now, place, diff, group, later = map(ints, found)
    return now, place, diff, group, later

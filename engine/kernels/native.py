"""Calls the native kernels. Each answers None where there is none for the case; then the caller uses NumPy and Arrow.

The extension is optional: `pip install` builds it where a C compiler is, and goes on where not. So each caller has the
other way, too, and both give the same answer: the laws are tested on both. `HALFJOIN_NATIVE=0` turns the kernels off.
A kernel knows integers, booleans, dates, times, floats, decimals, intervals and texts, with NULLs. It does not know
arrays and other nested values.

Rows of several runs are given as `counts`: so many rows of the first run, then so many of the second.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_VERSION = 5  # of the extension; each change of what its functions take or give raises it, here and in module.c

try:
    from halfjoin.engine.kernels import _native
except ImportError:  # it was not built
    BUILT = False
else:
    BUILT = getattr(_native, "VERSION", 1) == _VERSION  # no: it was built from other sources

Ints = NDArray[np.int64]
RowNumbers = NDArray[np.uint32]
Positions = NDArray[Any]  # int64 or uint32
# Codes in order, the row of each, and the guide: starts of ranges (None: there is no guide), least code, shift.
SortedCodes: TypeAlias = tuple[Ints, RowNumbers, RowNumbers | None, int, int]
Weights: TypeAlias = tuple[Ints, Ints, Ints | None, Ints | None]  # times, diffs; netted rows, and their diffs
Place: TypeAlias = tuple[list[pa.Array], Positions, Ints, Ints, Ints]  # columns; rows, their keys; times, diffs

VARIABLE = "HALFJOIN_NATIVE"
on = BUILT and os.environ.get(VARIABLE, "1") != "0"  # whether kernels are used


@contextmanager
def used(wanted: bool) -> Iterator[None]:
    """Use kernels, or not, for a while; kernels that were not built are not used."""
    global on
    before, on = on, wanted and BUILT
    try:
        yield
    finally:
        on = before


def codes(columns: list[pa.Array], length: int) -> Ints | None:
    """The 64-bit hash of each row, as `engine.updates.codes` defines it."""
    made = _native.codes(columns, length) if on else None
    return None if made is None else _ints(made)


def find(
    probes: Ints, indexes: list[SortedCodes], most: int
) -> tuple[Ints, RowNumbers, list[int]] | None:
    """All pairs (position in `probes`, row) of each index, one index after the other. None if there are more than
    `most`."""
    found = _native.find(probes, indexes, most) if on else None
    return None if found is None else (_ints(found[0]), np.frombuffer(found[1], np.uint32), found[2])


def count(probes: Ints, indexes: list[SortedCodes]) -> Ints | None:
    """The number of entries of each probe in all these indexes."""
    made = _native.count(probes, indexes) if on else None
    return None if made is None else _ints(made)


def equal(
    columns: list[pa.Array], positions: Ints, sources: list[list[pa.Array]], rows: Positions, counts: list[int]
) -> NDArray[np.bool_] | None:
    """For each pair of a position in `columns` and a row, whether all values are equal."""
    mask = _native.equal(columns, positions, sources, rows, counts) if on else None
    return None if mask is None else np.frombuffer(mask, np.bool_)


def gather(sources: list[list[pa.Array]], rows: Positions, counts: list[int]) -> list[pa.Array] | None:
    """The values at rows, of each column."""
    made = _native.gather(sources, rows, counts) if on else None
    return None if made is None else _arrays(sources[0], made, len(rows))


def filtered(
    columns: list[pa.Array], time: Ints, diff: Ints, mask: pa.Array
) -> tuple[list[pa.Array], Ints, Ints] | Literal[True] | None:
    """The rows for which the mask is true, not false or NULL: columns, times and diffs. True: all rows are."""
    made = _native.filtered(columns, time, diff, [mask]) if on else None
    if made is None or made is True:
        return made
    times = _ints(made[1])
    found = _arrays(columns, made[0], len(times))
    return None if found is None else (found, times, _ints(made[2]))


def passing(
    mask: pa.Array, positions: Ints, rows: Positions, counts: list[int]
) -> tuple[Ints, Positions, list[int]] | None:
    """The pairs of positions and rows for which the mask is true, not false or NULL; what is given if all are."""
    return _pairs(_native.passing([mask], positions, rows, counts) if on else None, counts)


def meeting(
    sources: list[list[pa.Array]], constant: pa.Array, allowed: int, positions: Ints, rows: Positions, counts: list[int]
) -> tuple[Ints, Positions, list[int]] | None:
    """As `passing`, for a comparison of each run's only column with a constant, an array of one value.

    `allowed`: the sum of 1 if a lower value passes, 2 if an equal one does, and 4 if a higher one does. NULL does not.
    """
    return _pairs(_native.meeting(sources, [constant], allowed, positions, rows, counts) if on else None, counts)


def joined(
    columns: list[pa.Array], positions: Ints, time: Ints, diff: Ints, sources: list[list[pa.Array]],
    weights: list[Weights], rows: Positions, counts: list[int],
) -> tuple[list[pa.Array], list[pa.Array], Ints, Ints] | None:  # fmt: skip
    """`gather` of both sides of pairs, and `products` with the `weights` of the right side: the columns at positions,
    those of the sources at rows, times and diffs."""
    made = _native.joined(columns, positions, time, diff, sources, weights, rows, counts) if on else None
    if made is None:
        return None
    left, right = _arrays(columns, made[0], len(rows)), _arrays(sources[0], made[1], len(rows))
    return None if left is None or right is None else (left, right, _ints(made[2]), _ints(made[3]))


def weights(sources: list[Weights], rows: Positions, counts: list[int]) -> tuple[Ints, Ints] | None:
    """The times and diffs of rows; a netted row counts as often as netting says."""
    made = _native.weights(sources, rows, counts) if on else None
    return None if made is None else (_ints(made[0]), _ints(made[1]))


def products(positions: Ints, time: Ints, diff: Ints, times: Ints, diffs: Ints) -> tuple[Ints, Ints] | None:
    """The later time and the product of the diffs, of each pair of a position in `time` and `diff` and a partner in
    `times` and `diffs`. None if a product does not fit an int64."""
    made = _native.products(positions, time, diff, times, diffs) if on else None
    return None if made is None else (_ints(made[0]), _ints(made[1]))


def groups(columns: list[pa.Array], time: Ints | None, length: int) -> tuple[Ints, Ints] | None:
    """A number for each row, from 0 in order of the rows, equal exactly where the rows are; and the first row of each
    number."""
    made = _native.groups(columns, time, length) if on else None
    return None if made is None else (_ints(made[0]), _ints(made[1]))


def sums(columns: list[pa.Array], time: Ints | None, diff: Ints) -> tuple[Ints, Ints] | None:
    """The first of equal rows, in order, and the sums of their diffs, without sums of 0. None if a sum may not fit an
    int64."""
    made = _native.sums(columns, time, diff) if on else None
    return None if made is None else (_ints(made[0]), _ints(made[1]))


def pairs(places: list[Place], keys: int) -> NDArray[np.bool_] | None:
    """As `engine.intake.key_pairs.plain`. The first place is the batch."""
    sure = _native.pairs(places, keys) if on else None
    return None if sure is None else np.frombuffer(sure, np.bool_)


def ordered(values: Ints) -> tuple[Ints, RowNumbers] | None:
    """The codes in order, and the position of each; equal codes stay in their order."""
    made = _native.sorted(values) if on else None
    return None if made is None else (_ints(made[0]), np.frombuffer(made[1], np.uint32))


def merged(indexes: list[tuple[Ints, RowNumbers, int]], kept: Ints | None) -> tuple[Ints, RowNumbers] | None:
    """One index of several, each with the number of rows before its run. `kept`: as `engine.arrange.index.merge`."""
    made = _native.merged(indexes, kept) if on else None
    return None if made is None else (_ints(made[0]), np.frombuffer(made[1], np.uint32))


def starts(values: Ints, shift: int) -> RowNumbers | None:
    """Where the ranges of a guide to sorted codes start, as `engine.arrange.guide` defines them."""
    made = _native.starts(values, shift) if on else None
    return None if made is None else np.frombuffer(made, np.uint32)


def moments(columns: list[pa.Array], time: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints, NDArray[np.bool_]] | None:
    """Of rows of one time, as `engine.reduce.law.Moments`: the first row of each group; `rows`, `starts`, `group`,
    `time` and `was`. Groups come in the order of their first rows. None also if there are several times, or no row."""
    made = _native.moments(columns, time) if on else None
    if made is None:
        return None
    firsts, rows, starts, group, times, was = made
    return _ints(firsts), _ints(rows), _ints(starts), _ints(group), _ints(times), np.frombuffer(was, np.bool_)


def totals(
    summed: pa.Array | None, args: list[pa.Array], old: pa.Array | None, diff: Ints, rows: Ints, starts: Ints,
    group: Ints, was: NDArray[np.bool_], begins: bool,
) -> pa.Array | None:  # fmt: skip
    """The sum of a group at each of its moments (`engine.reduce.law.Moments`), as `Totals.kept` gives it.

    `summed`: integers or numerics; None: rows are counted. `args`: a row in which one is NULL adds nothing. `old`: what
    was kept for each group; NULL, or no array, is a sum of nothing.
    """
    if not on:
        return None
    parts = _native.totals([] if summed is None else [summed], args, [] if old is None else [old], diff, rows, starts,
                           group, was, begins)  # fmt: skip
    if parts is None:
        return None
    buffers = [None if part is None else pa.py_buffer(part) for part in parts]
    return pa.Array.from_buffers(pa.int64() if summed is None else pa.binary(), len(group), buffers)


def _arrays(like: list[pa.Array], made: list[Any], length: int) -> list[pa.Array] | None:
    """Columns of these buffers, with the types of `like`. None: the texts of one are too long for one array."""
    buffer, columns = pa.py_buffer, []
    for column, parts in zip(like, made, strict=True):
        if parts is None:
            return None
        buffers = [None if part is None else buffer(part) for part in parts]
        columns.append(pa.Array.from_buffers(column.type, length, buffers))
    return columns


def _pairs(
    made: tuple[Any, Any, list[int]] | None, counts: list[int]
) -> tuple[Ints, Positions, list[int]] | None:
    """Pairs of a position and a row, and their counts; all that were given if the kernel answers `counts` itself."""
    if made is None or made[2] is counts:
        return made
    return _ints(made[0]), np.frombuffer(made[1], np.uint32), made[2]


def _ints(made: bytearray) -> Ints:
    return np.frombuffer(made, np.int64)

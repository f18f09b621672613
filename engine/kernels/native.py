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
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

try:
    from halfjoin.engine.kernels import _native
except ImportError:  # it was not built
    BUILT = False
else:
    BUILT = True

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
    made = _native.count(probes, indexes) if on and hasattr(_native, "count") else None  # older builds have none
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
    if made is None:
        return None
    buffer, length, columns = pa.py_buffer, len(rows), []
    for column, parts in zip(sources[0], made, strict=True):
        if parts is None:  # the texts are too long for one array
            return None
        buffers = [None if part is None else buffer(part) for part in parts]
        columns.append(pa.Array.from_buffers(column.type, length, buffers))
    return columns


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


def _ints(made: bytearray) -> Ints:
    return np.frombuffer(made, np.int64)

"""Kernels of codes and of the indexes over them: make, search, merge and net them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.kernels import native
from halfjoin.engine.kernels.native import NONE, Ints, RowNumbers, SortedCodes, ints

if native.BUILT:
    from halfjoin.engine.kernels import _native


def codes(columns: list[pa.Array], length: int) -> Ints | None:
    """The 64-bit hash of each row, as `engine.updates.codes` defines it."""
    made = _native.codes(columns, length) if native.on else None
    return None if made is None else ints(made)


def find(
    probes: Ints, indexes: list[SortedCodes], most: int
) -> tuple[Ints, RowNumbers, list[int]] | None:
    """All pairs (position in `probes`, row) of each index, one index after the other. None if there are more than
    `most`."""
    found = _native.find(probes, indexes, most) if native.on else None
    return None if found is None else (ints(found[0]), np.frombuffer(found[1], np.uint32), found[2])


def count(probes: Ints, indexes: list[SortedCodes]) -> Ints | None:
    """The number of entries of each probe in all these indexes."""
    made = _native.count(probes, indexes) if native.on else None
    return None if made is None else ints(made)


def unique(
    keys: list[pa.Array], columns: list[pa.Array], time: Ints, diff: Ints, sides: list[Any], most: int
) -> tuple[Ints, RowNumbers, NDArray[np.bool_] | None] | None:
    """The index of a batch by its keys, and for each of its distinct codes whether `engine.intake.key_pairs.plain` says
    that it stays unique (None: all do). The sides gather the same columns. None also where they hold more than `most`
    rows of these keys."""
    made = _native.unique(keys, columns, time, diff, sides, most) if native.on else None
    if made is None:
        return None
    (values, rows), sure = made
    return ints(values), np.frombuffer(rows, np.uint32), None if sure is None else np.frombuffer(sure, np.bool_)


def indexed(
    keys: list[pa.Array], length: int, among: Ints | None = None, most: int = 0
) -> tuple[Ints, RowNumbers] | None:
    """The codes of rows in order, and the row of each; equal codes stay in their order. `among`: rows that have none of
    these codes may be left out; None if more than `most` rows are left."""
    made = _native.indexed(keys, length, among, most) if native.on else None
    return None if made is None else (ints(made[0]), np.frombuffer(made[1], np.uint32))


def ordered(values: Ints) -> tuple[Ints, RowNumbers] | None:
    """The codes in order, and the position of each; equal codes stay in their order."""
    made = _native.sorted(values) if native.on else None
    return None if made is None else (ints(made[0]), np.frombuffer(made[1], np.uint32))


def order(words: list[NDArray[np.uint64]], bits: list[int], length: int) -> Ints | None:
    """The positions of rows in the order of words, numbers of so many bits, the first word first. Equal rows stay in
    their order."""
    made = _native.order([word.view(np.int64) for word in words], bits, length) if native.on else None
    return None if made is None else ints(made)


def merged(indexes: list[tuple[Ints, RowNumbers, int]], kept: Ints | None) -> tuple[Ints, RowNumbers] | None:
    """One index of several, each with the number of rows before its run. `kept`: as `engine.arrange.index.merge`."""
    made = _native.merged(indexes, kept) if native.on else None
    return None if made is None else (ints(made[0]), np.frombuffer(made[1], np.uint32))


def net(
    columns: list[pa.Array], time: Ints, diff: Ints, closed: int, codes: Ints, rows: RowNumbers,
    there: NDArray[np.bool_] | None, netted: Ints, nets: Ints,
) -> tuple[int, NDArray[np.bool_] | None, Ints, Ints] | None:  # fmt: skip
    """The net of a run by its index: `size`, `there`, `rows` and `diffs` of `engine.arrange.netting.Net`; `there` is
    None if nothing has cancelled. What was known of it comes last. None also if a sum does not fit an int64."""
    made = _native.net(columns, time, diff, closed, codes, rows, there, netted, nets) if native.on else None
    if made is None:
        return None
    size, left, others, sums = made
    if left is None:
        return size, None, NONE, NONE
    return size, np.frombuffer(left, np.bool_), ints(others), ints(sums)


def split(
    codes: Ints, rows: RowNumbers, mask: NDArray[np.bool_]
) -> tuple[tuple[Ints, RowNumbers], tuple[Ints, RowNumbers]] | None:
    """An index in two: the entries of the rows in a mask, and the entries of the other rows."""
    made = _native.split(codes, rows, mask) if native.on else None
    if made is None:
        return None
    one, its_rows, other, their_rows = made
    return (ints(one), np.frombuffer(its_rows, np.uint32)), (ints(other), np.frombuffer(their_rows, np.uint32))


def starts(values: Ints, shift: int) -> RowNumbers | None:
    """Where the ranges of a guide to sorted codes start, as `engine.arrange.guide` defines them."""
    made = _native.starts(values, shift) if native.on else None
    return None if made is None else np.frombuffer(made, np.uint32)

"""Kernels of joins: opened runs, half-joins of them, and the columns, times and diffs of what is found or left."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.kernels import native
from halfjoin.engine.kernels.native import (
    ARRAY,
    BUFFER,
    NONE,
    Ints,
    Positions,
    RowNumbers,
    SortedCodes,
    Weights,
    arrays_of,
    ints,
)

if native.BUILT:
    from halfjoin.engine.kernels import _native


def side(
    index: SortedCodes, exact: bool, keys: list[pa.Array], tested: list[pa.Array], fetched: list[pa.Array],
    weights: Weights, mask: NDArray[np.bool_] | None = None,
) -> object | None:  # fmt: skip
    """A run, opened for `half_joins`: its index, the keys to compare (none: nobody compares them), the columns that
    conditions read, those to gather, and what its rows count. `exact`: equal codes mean equal keys. `mask`: the rows
    that may be partners (None: all)."""
    return _native.side(index, exact, keys, tested, fetched, weights, mask) if native.on else None


class Pairs(NamedTuple):
    """Pairs of a position and a row: so many of the first run, then so many of the second."""

    positions: Ints
    rows: RowNumbers
    counts: list[int]


class Link(NamedTuple):
    """One half-join of several in a row. `keys`, `kept`: positions among the columns that come in: what is looked up,
    and what is left beside what the `sides` have fetched, columns of the types `fetched`.

    A bit of `null_safe` says for each key whether NULL matches NULL. `certain`: nobody need compare keys. A partner
    meets all conditions: its tested columns are ordered to the `constants` as `allowed` says
    (`engine.scalar.threshold`).
    """

    sides: list[Any]
    keys: tuple[int, ...]
    null_safe: int
    certain: bool
    kept: tuple[int, ...]
    constants: list[pa.Array]
    allowed: tuple[int, ...]
    fetched: list[pa.DataType]


class Tests(NamedTuple):
    """Thresholds that rows of a stream meet if they may have partners: positions of columns; the rest as in `Link`."""

    columns: tuple[int, ...]
    constants: list[pa.Array]
    allowed: tuple[int, ...]


class Joined(NamedTuple):
    """What links made: the rows after the last of those that are `done`; how many rows all of these have made; and how
    many rows of the stream met its tests."""

    columns: list[pa.Array]
    time: Ints
    diff: Ints
    found: int
    done: int
    entered: int

NO_TESTS = Tests((), [], ())


def half_joins(
    columns: list[pa.Array], time: Ints, diff: Ints, links: list[Link], tests: Tests = NO_TESTS, *, size: int,
    growth: int, closed: int, least: int, most: int, most_bytes: int, apart: bool = False,
) -> Joined | Pairs | None:  # fmt: skip
    """A stream of rows, joined with partners by one link after the other.

    It stops before a link whose stream has `growth` times `size` rows, some of which come and some go (less than 0:
    times those that met the tests), and where a link has no fast way: for a type, with more than `most` pairs or
    `most_bytes` of texts, where a product does not fit an int64. At `least` so many partners with times below `closed`
    are added up where one in eight goes.

    There are only pairs of the first link where it has found them and has no fast way to join them, and where `apart`
    asks for it. None: it has not found them.
    """
    if not native.on:
        return None
    made = _native.half_joins(columns, time, diff, tests, links, size, growth, closed, least,
                              most, most_bytes, apart)  # fmt: skip
    if made is None:
        return None
    if len(made) == 3:
        return Pairs(np.frombuffer(made[0], np.int64), np.frombuffer(made[1], np.uint32), made[2])
    buffers, times, diffs, found, done, entered = made
    if buffers is None:
        return Joined([], NONE, NONE, found, done, entered)
    types = [column.type for column in columns]
    for link in links[:done]:
        types = [*[types[at] for at in link.kept], *link.fetched]
    length = len(times) // 8
    arrays = [ARRAY(type, length, [part if part is None else BUFFER(part) for part in parts])
              for type, parts in zip(types, buffers, strict=True)]  # fmt: skip
    return Joined(arrays, np.frombuffer(times, np.int64), np.frombuffer(diffs, np.int64), found, done, entered)


def gather(sources: list[list[pa.Array]], rows: Positions, counts: list[int]) -> list[pa.Array] | None:
    """The values at rows, of each column."""
    made = _native.gather(sources, rows, counts) if native.on else None
    return None if made is None else arrays_of(sources[0], made, len(rows))


def filtered(
    columns: list[pa.Array], time: Ints, diff: Ints, tested: list[pa.Array], constants: list[pa.Array],
    allowed: tuple[int, ...],
) -> tuple[int, list[pa.Array], Ints | None, Ints | None] | Literal[True] | None:  # fmt: skip
    """How many rows have tested columns that are ordered to the constants as `allowed` says
    (`engine.scalar.threshold`), and their columns, times and diffs; None for times or diffs that are one number that
    stands for all. Without constants, the rows for which the only tested column is true, not false or NULL. True: all.
    """
    made = _native.filtered(columns, time, diff, tested, constants, allowed) if native.on else None
    if made is None or made is True:
        return made
    count, buffers, times, diffs = made
    found = arrays_of(columns, buffers, count)
    if found is None:
        return None
    return count, found, None if times is None else ints(times), None if diffs is None else ints(diffs)


def passing(
    mask: pa.Array, positions: Ints, rows: Positions, counts: list[int]
) -> tuple[Ints, Positions, list[int]] | None:
    """The pairs of positions and rows for which the mask is true, not false or NULL; what is given if all are."""
    made = _native.passing([mask], positions, rows, counts) if native.on else None
    if made is None or made[2] is counts:
        return made
    return ints(made[0]), np.frombuffer(made[1], np.uint32), made[2]


def weights(sources: list[Weights], rows: Positions, counts: list[int]) -> tuple[Ints, Ints] | None:
    """The times and diffs of rows; a netted row counts as often as netting says."""
    made = _native.weights(sources, rows, counts) if native.on else None
    return None if made is None else (ints(made[0]), ints(made[1]))


def products(positions: Ints, time: Ints, diff: Ints, times: Ints, diffs: Ints) -> tuple[Ints, Ints] | None:
    """The later time and the product of the diffs, of each pair of a position in `time` and `diff` and a partner in
    `times` and `diffs`. None if a product does not fit an int64."""
    made = _native.products(positions, time, diff, times, diffs) if native.on else None
    return None if made is None else (ints(made[0]), ints(made[1]))

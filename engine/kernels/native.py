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
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_VERSION = 20  # of the extension; each change of what its functions take or give raises it, here and in module.c

try:
    from halfjoin.engine.kernels import _native
except ImportError:  # it was not built
    BUILT = False
else:
    BUILT = getattr(_native, "VERSION", 1) == _VERSION  # no: it was built from other sources

Ints = NDArray[np.int64]
RowNumbers = NDArray[np.uint32]
Words = NDArray[np.uint64]
Positions = NDArray[Any]  # int64 or uint32
# Codes in order, the row of each, and the guide: starts of ranges (None: there is no guide), least code, shift.
SortedCodes: TypeAlias = tuple[Ints, RowNumbers, RowNumbers | None, int, int]
# Of each sum the position of its column (-1: rows are counted), and the positions of its arguments.
Parts: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
Weights: TypeAlias = tuple[Ints, Ints, Ints | None, Ints | None]  # times, diffs; netted rows, and their diffs

_ARRAY, _BUFFER = pa.Array.from_buffers, pa.py_buffer
_NONE = np.zeros(0, np.int64)
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


def bounds(values: Ints) -> tuple[int, int] | None:
    """The least and the greatest of some values; None if there are none."""
    return _native.bounds(values) if on else None


def sound(columns: list[pa.Array], bounds: list[tuple[int, int]]) -> bool:
    """Whether the values of columns plainly are what SQL has: texts of ASCII without NUL, floats other than -0, dates
    and times between their column's `bounds`, decimals with no more digits than the second of them. False: somebody
    must look closer."""
    return on and _native.sound(columns, bounds)


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


def side(
    index: SortedCodes, exact: bool, keys: list[pa.Array], tested: list[pa.Array], fetched: list[pa.Array],
    weights: Weights, mask: NDArray[np.bool_] | None = None,
) -> object | None:  # fmt: skip
    """A run, opened for `half_joins`: its index, the keys to compare (none: nobody compares them), the columns that
    conditions read, those to gather, and what its rows count. `exact`: equal codes mean equal keys. `mask`: the rows
    that may be partners (None: all)."""
    return _native.side(index, exact, keys, tested, fetched, weights, mask) if on else None


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
    if not on:
        return None
    made = _native.half_joins(columns, time, diff, tests, links, size, growth, closed, least,
                              most, most_bytes, apart)  # fmt: skip
    if made is None:
        return None
    if len(made) == 3:
        return Pairs(np.frombuffer(made[0], np.int64), np.frombuffer(made[1], np.uint32), made[2])
    buffers, times, diffs, found, done, entered = made
    if buffers is None:
        return Joined([], _NONE, _NONE, found, done, entered)
    types = [column.type for column in columns]
    for link in links[:done]:
        types = [*[types[at] for at in link.kept], *link.fetched]
    length = len(times) // 8
    arrays = [_ARRAY(type, length, [part if part is None else _BUFFER(part) for part in parts])
              for type, parts in zip(types, buffers, strict=True)]  # fmt: skip
    return Joined(arrays, np.frombuffer(times, np.int64), np.frombuffer(diffs, np.int64), found, done, entered)


def gather(sources: list[list[pa.Array]], rows: Positions, counts: list[int]) -> list[pa.Array] | None:
    """The values at rows, of each column."""
    made = _native.gather(sources, rows, counts) if on else None
    return None if made is None else _arrays(sources[0], made, len(rows))


def filtered(
    columns: list[pa.Array], time: Ints, diff: Ints, tested: list[pa.Array], constants: list[pa.Array],
    allowed: tuple[int, ...],
) -> tuple[int, list[pa.Array], Ints | None, Ints | None] | Literal[True] | None:  # fmt: skip
    """How many rows have tested columns that are ordered to the constants as `allowed` says
    (`engine.scalar.threshold`), and their columns, times and diffs; None for times or diffs that are one number that
    stands for all. Without constants, the rows for which the only tested column is true, not false or NULL. True: all.
    """
    made = _native.filtered(columns, time, diff, tested, constants, allowed) if on else None
    if made is None or made is True:
        return made
    count, buffers, times, diffs = made
    found = _arrays(columns, buffers, count)
    if found is None:
        return None
    return count, found, None if times is None else _ints(times), None if diffs is None else _ints(diffs)


def passing(
    mask: pa.Array, positions: Ints, rows: Positions, counts: list[int]
) -> tuple[Ints, Positions, list[int]] | None:
    """The pairs of positions and rows for which the mask is true, not false or NULL; what is given if all are."""
    made = _native.passing([mask], positions, rows, counts) if on else None
    if made is None or made[2] is counts:
        return made
    return _ints(made[0]), np.frombuffer(made[1], np.uint32), made[2]


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
    made = _native.grouped(pieces, parts, numbered) if on else None
    if made is None:
        return None
    firsts, sums, numbers = made
    found = list[Ints | tuple[Words, Ints]]()
    for one in sums:
        if len(one) == len(firsts):
            found.append(_ints(one))
        else:
            words = np.frombuffer(one, np.uint64).reshape(-1, 2)
            found.append((words[:, 0], words[:, 1].view(np.int64)))
    return Grouped(_ints(firsts), found, None if numbers is None else _ints(numbers))


def sums(columns: list[pa.Array], time: Ints | None, diff: Ints) -> tuple[Ints, Ints] | None:
    """The first of equal rows, in order, and the sums of their diffs, without sums of 0. None if a sum may not fit an
    int64."""
    made = _native.sums(columns, time, diff) if on else None
    return None if made is None else (_ints(made[0]), _ints(made[1]))


def unique(
    keys: list[pa.Array], columns: list[pa.Array], time: Ints, diff: Ints, sides: list[Any], most: int
) -> tuple[Ints, RowNumbers, NDArray[np.bool_] | None] | None:
    """The index of a batch by its keys, and for each of its distinct codes whether `engine.intake.key_pairs.plain` says
    that it stays unique (None: all do). The sides gather the same columns. None also where they hold more than `most`
    rows of these keys."""
    made = _native.unique(keys, columns, time, diff, sides, most) if on else None
    if made is None:
        return None
    (values, rows), sure = made
    return _ints(values), np.frombuffer(rows, np.uint32), None if sure is None else np.frombuffer(sure, np.bool_)


def indexed(
    keys: list[pa.Array], length: int, among: Ints | None = None, most: int = 0
) -> tuple[Ints, RowNumbers] | None:
    """The codes of rows in order, and the row of each; equal codes stay in their order. `among`: rows that have none of
    these codes may be left out; None if more than `most` rows are left."""
    made = _native.indexed(keys, length, among, most) if on else None
    return None if made is None else (_ints(made[0]), np.frombuffer(made[1], np.uint32))


def ordered(values: Ints) -> tuple[Ints, RowNumbers] | None:
    """The codes in order, and the position of each; equal codes stay in their order."""
    made = _native.sorted(values) if on else None
    return None if made is None else (_ints(made[0]), np.frombuffer(made[1], np.uint32))


def order(words: list[NDArray[np.uint64]], bits: list[int], length: int) -> Ints | None:
    """The positions of rows in the order of words, numbers of so many bits, the first word first. Equal rows stay in
    their order."""
    made = _native.order([word.view(np.int64) for word in words], bits, length) if on else None
    return None if made is None else _ints(made)


def merged(indexes: list[tuple[Ints, RowNumbers, int]], kept: Ints | None) -> tuple[Ints, RowNumbers] | None:
    """One index of several, each with the number of rows before its run. `kept`: as `engine.arrange.index.merge`."""
    made = _native.merged(indexes, kept) if on else None
    return None if made is None else (_ints(made[0]), np.frombuffer(made[1], np.uint32))


def net(
    columns: list[pa.Array], time: Ints, diff: Ints, closed: int, codes: Ints, rows: RowNumbers,
    there: NDArray[np.bool_] | None, netted: Ints, nets: Ints,
) -> tuple[int, NDArray[np.bool_] | None, Ints, Ints] | None:  # fmt: skip
    """The net of a run by its index: `size`, `there`, `rows` and `diffs` of `engine.arrange.netting.Net`; `there` is
    None if nothing has cancelled. What was known of it comes last. None also if a sum does not fit an int64."""
    made = _native.net(columns, time, diff, closed, codes, rows, there, netted, nets) if on else None
    if made is None:
        return None
    size, left, others, sums = made
    if left is None:
        return size, None, _NONE, _NONE
    return size, np.frombuffer(left, np.bool_), _ints(others), _ints(sums)


def split(
    codes: Ints, rows: RowNumbers, mask: NDArray[np.bool_]
) -> tuple[tuple[Ints, RowNumbers], tuple[Ints, RowNumbers]] | None:
    """An index in two: the entries of the rows in a mask, and the entries of the other rows."""
    made = _native.split(codes, rows, mask) if on else None
    if made is None:
        return None
    one, its_rows, other, their_rows = made
    return (_ints(one), np.frombuffer(its_rows, np.uint32)), (_ints(other), np.frombuffer(their_rows, np.uint32))


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
    made = _native.reduced(columns, keys, parts, time, diff, sides, most) if on else None
    if made is None:
        return None
    buffers, diffs, (values, rows), found, opened = made
    length = len(diffs) // 8
    arrays = [_ARRAY(type, length, [part if part is None else _BUFFER(part) for part in parts])
              for type, parts in zip(types, buffers, strict=True)]  # fmt: skip
    return arrays, _ints(diffs), (_ints(values), np.frombuffer(rows, np.uint32)), found, opened


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
    return _column(pa.int64() if summed is None else pa.binary(), len(group), parts)


def kept(numbers: Ints) -> pa.Array | None:
    """Integers as sums are kept (`engine.scalar.kept`)."""
    parts = _native.kept(numbers) if on else None
    return None if parts is None else _column(pa.binary(), len(numbers), parts)


def read_kept(sums: pa.Array) -> Ints | None:
    """The numbers of kept sums, 0 for NULL; None also where one does not fit an int64."""
    made = _native.read_kept([sums]) if on else None
    return None if made is None else _ints(made)


def added(values: pa.Array | None, args: list[pa.Array], diff: Ints) -> tuple[Ints, int] | None:
    """What each update adds to a sum of integers or numerics (None: rows are counted), and the greatest absolute value
    of that. A row in which a value or one of `args` is NULL adds nothing. None also where some update adds no int64."""
    made = _native.added([] if values is None else [values], args, diff) if on else None
    return None if made is None else (_ints(made[0]), made[1])


def added_up(values: pa.Array | None, args: list[pa.Array], diff: Ints) -> int | None:
    """The sum of what `added` gives, of numbers of any size. None also where it does not fit 128 bits."""
    made = _native.added_up([] if values is None else [values], args, diff) if on else None
    return None if made is None else int.from_bytes(made, "little", signed=True)


def extreme(column: pa.Array, marks: NDArray[np.bool_] | None, greatest: bool) -> int | None:
    """The row of the least or greatest value of those that are marked (None: all) and not NULL; -1 if there is none.
    None also where one of them is NaN."""
    return _native.extreme([column], marks, greatest) if on else None


def float_sums(values: list[pa.Array], diff: Ints, group: Ints, groups: int) -> tuple[int, Ints] | None:
    """The sums of floats, or of products of two, by their groups' numbers, as `engine.scalar.wide` has them: the number
    of the first digit, and the digits x groups. NULL adds nothing. None also if a value is NaN or infinite."""
    made = _native.float_sums(values, diff, group, groups) if on else None
    return None if made is None else (made[0], _ints(made[1]).reshape(-1, groups))


def decimals(counts: pa.Array, totals: pa.Array, type: pa.DataType, divided: int | None = None) -> pa.Array | None:
    """Kept sums of integers, in units of the decimal `type`, as its values; NULL where a count is 0 or NULL, or nothing
    is kept. `divided`: the decimals of sums that are to be divided by their counts. None also where a number has too
    many digits."""
    if not on or type.bit_width != 128:
        return None
    made = _native.decimals([counts], [totals], type.precision, divided is not None, divided or 0, type.scale)
    return None if made is None else _column(type, len(totals), made)


def spread(
    name: str, count: pa.Array, sums: list[pa.Array], type: pa.DataType, given: int | None
) -> tuple[pa.Array, NDArray[np.bool_]] | None:
    """What `engine.scalar.spread` makes of a count and kept sums, and which rows are left to it: they are NULL.
    `given`: the decimals of exact values; None of floats."""
    if not on or not (type == pa.float64() if given is None else type.bit_width == 128):
        return None
    digits = (0, 0) if given is None else (type.precision, type.scale)
    made = _native.spread(name, [count, *sums], given is not None, given or 0, *digits)
    if made is None:
        return None
    there, values, left = np.frombuffer(made[0], np.bool_), made[1], np.frombuffer(made[2], np.bool_)
    valid = None if there.all() else pa.array(there).buffers()[1]
    return _ARRAY(type, len(there), [valid, _BUFFER(values)]), left


def firsts(
    groups: int, round: int, width: int, rows: tuple[Ints, ...], made: tuple[Ints, ...]
) -> tuple[Ints, Ints, Ints, Ints, Ints] | None:  # fmt: skip
    """What `engine.loop.first.differences` finds, of histories whose places are below `width`. None also where a row
    counts less than zero times."""
    found = _native.firsts(groups, round, width, rows, made) if on else None
    if found is None:
        return None
    now, place, diff, group, later = map(_ints, found)
    return now, place, diff, group, later


def arithmetic(
    operator: str, left: pa.Array, right: pa.Array, digits: tuple[int, int], length: int, type: pa.DataType
) -> pa.Array | None:
    """The sum, difference or product of decimals or integers in each row, of the decimal `type`, which has room for
    all. An operand of one row stands for all rows. `digits`: the zeros to append to each operand, for a sum or
    difference."""
    made = _native.arithmetic(operator, [left, right], *digits, length) if on else None
    return None if made is None else _column(type, length, made)


def quotients(left: pa.Array, right: pa.Array, length: int, type: pa.DataType) -> pa.Array | None:
    """The quotient of decimals in each row, of the decimal `type`, with the decimals that PostgreSQL gives it. An
    operand of one row stands for all rows. None also where a divisor is 0 or a quotient too long."""
    if not on or max(left.type.bit_width, right.type.bit_width) > 128 or type.scale < 0:
        return None
    made = _native.quotients([left, right], left.type.scale, right.type.scale, type.scale, type.precision,
                             type.bit_width // 8, length)  # fmt: skip
    return None if made is None else _column(type, length, made)


def compared(allowed: int, left: pa.Array, right: pa.Array, digits: tuple[int, int], length: int) -> pa.Array | None:
    """Whether the order of integers or decimals in each row is allowed: 1 less, 2 equal, 4 greater, or a sum of these.
    Operands and `digits` are as in `arithmetic`; one of the digits is 0."""
    made = _native.compared(allowed, [left, right], *digits, length) if on else None
    return None if made is None else _column(pa.bool_(), length, made)


def _arrays(like: list[pa.Array], made: list[Any], length: int) -> list[pa.Array] | None:
    """Columns of these buffers, with the types of `like`. None: the texts of one are too long for one array."""
    if None in made:
        return None
    return [_ARRAY(column.type, length, [part if part is None else _BUFFER(part) for part in parts])
            for column, parts in zip(like, made, strict=True)]  # fmt: skip


def _column(type: pa.DataType, length: int, parts: tuple[bytes | None, ...]) -> pa.Array:
    return _ARRAY(type, length, [None if part is None else _BUFFER(part) for part in parts])


def _ints(made: bytearray) -> Ints:
    return np.frombuffer(made, np.int64)

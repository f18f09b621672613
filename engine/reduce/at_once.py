"""What many updates at one time add to sums, in a few passes over whole columns: for counts, and sums of numbers.

Sums are linear in the diffs. So a piece of a collection needs no consolidation before it is added up: each row adds its
value, as often as it is there. A kernel does so with values of any size, and with floats. Without it, or where each
group has its place, that is exact in 64 bits if the greatest value, as often as the greatest diff, in every row, would
still fit. Where neither is so, rows are lifted one by one (`lifted.lift`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from halfjoin.engine.kernels import summing
from halfjoin.engine.reduce.alone import added_alone
from halfjoin.engine.reduce.by_place import one_number, summed
from halfjoin.engine.reduce.by_rows import FLOATS, by_rows
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.reduce.words import of_word, words
from halfjoin.engine.scalar.values import valid
from halfjoin.engine.scalar.wide import MASK, Wide, most
from halfjoin.engine.updates.updates import Ints, Updates, constant
from halfjoin.planner.group_functions import Sums

FROM = 1 << 12  # updates; fewer are lifted as fast
_LIMIT = 1 << 63
_HALVES = 1 << 30  # rows; of fewer the halves of int64s are an int64 together


def at_once(
    parts: Sequence[Sums], keys: Sequence[str], pieces: Sequence[Updates]
) -> tuple[Updates, tuple[Totals, ...]] | None:
    """The groups that the updates touch, and what they add to each of the sums; None if that takes row by row."""
    rows, updates = sum(map(len, pieces)), pieces[0]
    if rows < FROM or not all(is_one(piece.time) and piece.time[0] == updates.time[0] for piece in pieces):
        return None
    kinds = [updates.columns[name].type for name in keys]
    if not all(tells_apart(kind) or pt.is_floating(kind) for kind in kinds):
        return None
    made = by_rows(parts, keys, pieces) if keys else None
    if made is None:
        made = _added_up(parts, pieces, [[piece.columns[name] for name in keys] for piece in pieces])
    if made is None:
        return None
    by_group = [_one_form(array) for array in made[0]]
    time = constant(int(updates.time[0]), 1 if not keys else len(by_group[0]))
    return Updates(dict(zip(keys, by_group, strict=True)), time, constant(1, len(time))), tuple(made[1])


def _added_up(
    parts: Sequence[Sums], pieces: Sequence[Updates], keys: Sequence[Sequence[pa.Array]]
) -> tuple[list[pa.Array], list[Totals]] | None:
    """The keys of the groups, and what the updates add to each of the sums, by Arrow and NumPy, or without groups."""
    if any(pt.is_floating(array.type) for array in keys[0]):  # Arrow's hashes of their bits are often the same
        return None
    if keys[0] and any(part.kind in FLOATS for part in parts):
        return None
    alone = [None if keys[0] else added_alone(part, pieces) for part in parts]
    exact = {number: one for number, one in enumerate(alone) if one is not None}
    added = [None if number in exact else _added(part, pieces) for number, part in enumerate(parts)]
    wide = {number for number, one in enumerate(added) if isinstance(one, _Wide)}
    for number, one in enumerate(added):
        if one is not None or number in exact:
            continue
        of_floats = None if keys[0] or len(pieces) > 1 else _of_floats(parts[number], pieces[0])
        if of_floats is None:
            return None
        exact[number] = of_floats
    terms = [term for one in added if one is not None for term in (one if isinstance(one, _Wide) else (one,))]
    by_group, sums = _grouped(keys, terms, [*map(len, pieces)])
    rest = iter(sums)
    return by_group, [exact[number] if number in exact else Totals(part.kind, _Wide.sum(next(rest), next(rest))
                                                                   if number in wide else Wide.of(next(rest)))
                      for number, part in enumerate(parts)]  # fmt: skip


def _of_floats(part: Sums, piece: Updates) -> Totals | None:
    """The sum of floats of all rows; None without a kernel."""
    arrays = [piece.columns[arg.name] for arg in part.args]
    return None if part.kept else Totals.of_floats(part.kind, arrays, piece.diff, constant(0, len(piece)), 1)


class _Wide(NamedTuple):
    """What updates add to a sum that may not be an int64: the lower 32 bits of the terms, and the rest of them."""

    low: Sequence[Ints]
    high: Sequence[Ints]

    @classmethod
    def of(cls, terms: Sequence[Ints | int]) -> _Wide | None:
        """The terms in two parts. None: all rows of a piece add the same."""
        some = [one for one in terms if not isinstance(one, int)]
        return cls([one & MASK for one in some], [one >> 32 for one in some]) if len(some) == len(terms) else None

    @staticmethod
    def sum(low: Ints, high: Ints) -> Wide:
        """The sums of groups, given those of the parts."""
        return Wide(np.stack([low, high]), np.zeros(len(low), np.int64), max(most(low), most(high)))


def _added(part: Sums, pieces: Sequence[Updates]) -> Sequence[Ints | int] | _Wide | None:
    """What each update adds to a sum, piece by piece, as `numbers_added`."""
    rows = sum(map(len, pieces))
    found = _terms(part, pieces, rows)
    if found is not None or rows >= _HALVES:
        return found
    terms = _terms(part, pieces, 1)  # each of them must fit alone
    return None if terms is None else _Wide.of(terms)


def _terms(part: Sums, pieces: Sequence[Updates], rows: int) -> Sequence[Ints | int] | None:
    """What each update adds. None if so many `rows` of such numbers may not be an int64 together."""
    found = list[Ints | int]()
    for updates in pieces:
        arrays = [updates.columns[arg.name] for arg in part.args]
        if part.kept and part.kind != "count":
            numbers = summing.read_kept(arrays[0])
            if numbers is None:
                return None
            arrays = [pa.array(numbers)]
        one = numbers_added("integers" if part.kept else part.kind, arrays, updates.diff, rows)
        if one is None:
            return None
        found.append(one)
    return found


def numbers_added(kind: str, arrays: Sequence[pa.Array], diffs: Ints, rows: int) -> Ints | int | None:
    """What each of some updates adds to a sum; a number if all add the same. A row with NULL for an argument adds 0.
    None if so many `rows` of such numbers may not be an int64 together."""
    factors = {"count": 0, "integers": 1, "integer products": 2}.get(kind)
    if factors is None:
        return None
    made = _by_kernel(factors, arrays, diffs, rows)
    if made is not None:
        return made
    diff: Ints | int = int(diffs[0]) if is_one(diffs) else diffs
    values: Ints | int = 1
    for array in arrays[:factors]:
        whole = _whole(array)
        if whole is None or _greatest(values) * _greatest(whole) >= _LIMIT:
            return None
        values = whole if isinstance(values, int) else values * whole
    for array in arrays[factors:]:
        if array.null_count:
            there = valid(array)
            values = there.astype(np.int64) if isinstance(values, int) else np.where(there, values, 0)
    if _greatest(values) * _greatest(diff) * rows >= _LIMIT:
        return None
    return values if isinstance(diff, int) and diff == 1 else values * diff


def _by_kernel(factors: int, arrays: Sequence[pa.Array], diffs: Ints, rows: int) -> Ints | None:
    """As `numbers_added`, where updates do not all add the same, by a kernel; None: the other way."""
    asked = [array for array in arrays[factors:] if array.null_count]
    if factors > 1 or not (factors or asked):
        return None
    made = summing.added(arrays[0] if factors else None, asked, diffs)
    return made[0] if made is not None and made[1] * rows < _LIMIT else None


def _whole(array: pa.Array) -> Ints | None:
    """The values as int64, numerics without their point, 0 for NULL; None if they are wider."""
    if pt.is_decimal128(array.type):
        words = np.frombuffer(array.buffers()[1], "<i8").reshape(-1, 2)[array.offset : array.offset + len(array)]
        low: Ints = words[:, 0]
        if array.null_count:
            there = valid(array)
            low, high = np.where(there, low, 0), np.where(there, words[:, 1], 0)
        else:
            high = words[:, 1]
        return low if bool((high == low >> 63).all()) else None
    if not pt.is_signed_integer(array.type):
        return None
    filled = pc.fill_null(array, 0) if array.null_count else array
    numbers: Ints = filled.to_numpy().astype(np.int64, copy=False)
    return numbers


def _grouped(
    keys: Sequence[Sequence[pa.Array]], added: Sequence[Sequence[Ints | int]], lengths: Sequence[int]
) -> tuple[list[pa.Array], list[Ints]]:
    """The keys of the groups, and for each of `added` its sum in every group. All are given piece by piece."""
    if not keys[0]:
        alone = [sum(one * length if isinstance(one, int) else int(one.sum())
                     for one, length in zip(parts, lengths, strict=True)) for parts in added]  # fmt: skip
        return [], [np.array([one], np.int64) for one in alone]
    found = summed(keys, added)
    if found is not None:
        return found
    columns = [*zip(*keys, strict=True)]
    names = [f"key {number}" for number in range(len(columns))]
    same = [one_number(parts) for parts in added]
    given = {name: pa.chunked_array(column) for name, column in zip(names, columns, strict=True)}
    given |= {f"sum {number}": pa.chunked_array([_repeated(*part) for part in zip(added[number], lengths, strict=True)])
              for number, one in enumerate(same) if one is None}  # fmt: skip
    asked = [(name, "sum") for name in given if name not in names]
    table = pa.table(given).group_by(names, use_threads=False).aggregate([*asked, ([], "count_all")]).combine_chunks()

    def of(name: str) -> pa.Array:
        return pa.concat_arrays(table.column(name).chunks)

    counts = of("count_all").to_numpy()
    return [of(name) for name in names], [
        of(f"sum {number}_sum").to_numpy() if one is None else counts * one for number, one in enumerate(same)
    ]


def _one_form(keys: pa.Array) -> pa.Array:
    """The keys; NaN and 0 have one form."""
    if not pt.is_floating(keys.type):
        return keys
    (word,) = words(keys)
    made = of_word(word, keys.type)
    return pc.if_else(keys.is_valid(), made, pa.scalar(None, keys.type)) if keys.null_count else made


def _repeated(numbers: Ints | int, length: int) -> pa.Array:
    return pa.array(np.ascontiguousarray(constant(numbers, length) if isinstance(numbers, int) else numbers))


def tells_apart(kind: pa.DataType) -> bool:
    """Whether Arrow finds two keys equal exactly if they are."""
    return bool(pt.is_integer(kind) or pt.is_date32(kind) or pt.is_boolean(kind) or pt.is_string(kind)
                or pt.is_timestamp(kind) or pt.is_decimal128(kind))  # fmt: skip


def is_one(numbers: Ints) -> bool:
    """Whether all the numbers are the same."""
    return numbers.strides == (0,) or int(numbers.min()) == int(numbers.max())


def _greatest(numbers: Ints | int) -> int:
    return abs(numbers) if isinstance(numbers, int) else most(numbers)

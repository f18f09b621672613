"""Sums of groups by a kernel: each row is read once, its key is hashed once, and its numbers are added to the sums of
its group, whatever their size. The rows may come in several pieces, and no key is copied but those of the groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from halfjoin.engine.kernels import joining, native, summing
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.scalar.wide import MASK, Wide, most
from halfjoin.engine.updates.updates import TOO_LONG, Ints, Updates
from halfjoin.errors import DataError
from halfjoin.planner.group_functions import Sums

_FACTORS = {"count": 0, "integers": 1, "integer products": 2}
FLOATS = ("floats", "float products")


def by_rows(
    parts: Sequence[Sums], keys: Sequence[str], pieces: Sequence[Updates]
) -> tuple[list[pa.Array], list[Totals]] | None:
    """The keys of the groups, in the order of their first rows, and what the updates add to each sum of theirs. None:
    there is no kernel for some column, or a sum is too great.

    Raises:
        DataError: the texts do not fit into one array.
    """
    floats = [part for part in parts if part.kind in FLOATS]
    if not native.on or not all(part.kind in _FACTORS or (part in floats and not part.kept) for part in parts):
        return None
    given, asked = list[tuple[list[pa.Array], list[pa.Array], Ints]](), list[tuple[int, tuple[int, ...]]]()
    for piece in pieces:
        columns, asked = list[pa.Array](), []
        for part in parts:
            arrays = _arguments(part, piece)
            if arrays is None:
                return None
            if part not in floats:
                factors = 1 if part.kept else _FACTORS[part.kind]  # a kept count is a number to add up
                asked.append((factors, tuple(range(len(columns), len(columns) + len(arrays)))))
                columns += arrays
        given.append(([piece.columns[name] for name in keys], columns, piece.diff))
    made = summing.grouped(given, asked, numbered=bool(floats))
    if made is None:
        return None
    by_group = _keys([one for one, _, _ in given], made.firsts)
    sums = iter(made.sums)
    found = list[Totals]()
    for part in parts:
        one = _of_floats(part, pieces, made) if part in floats else Totals(part.kind, _wide(next(sums)))
        if one is None:
            return None
        found.append(one)
    return by_group, found


def _arguments(part: Sums, piece: Updates) -> list[pa.Array] | None:
    """The columns that a sum reads: kept sums as integers. None: some kept sum is none."""
    arrays = [piece.columns[arg.name] for arg in part.args]
    if not part.kept or part.kind == "count":
        return arrays
    numbers = summing.read_kept(arrays[0])
    return None if numbers is None else [pa.array(numbers)]


def _keys(pieces: Sequence[list[pa.Array]], firsts: Ints) -> list[pa.Array]:
    """The keys at rows of the pieces, in their order."""
    ends = np.cumsum([len(piece[0]) for piece in pieces])
    if len(pieces) == 1:
        counts, rows = [len(firsts)], firsts
    else:
        places = np.searchsorted(firsts, np.concatenate([[0], ends]))
        counts = np.diff(places).tolist()
        rows = firsts - np.repeat(ends - [len(piece[0]) for piece in pieces], counts)
    made = joining.gather([*pieces], rows, counts)
    if made is None:
        raise DataError(TOO_LONG)
    return made


def _wide(sums: Ints | tuple[native.Words, Ints]) -> Wide:
    if not isinstance(sums, tuple):
        return Wide.of(sums)
    low, high = sums
    digits = np.stack([(low & np.uint64(MASK)).view(np.int64), (low >> np.uint64(32)).view(np.int64), high])
    return Wide(digits, np.zeros(len(high), np.int64), max(MASK, most(high)))


def _of_floats(part: Sums, pieces: Sequence[Updates], made: summing.Grouped) -> Totals | None:
    """The sums of floats, given the groups of all rows; None for NaN and infinities."""
    assert made.numbers is not None  # they were asked for
    groups, begins, found = len(made.firsts), 0, list[Totals]()
    for piece in pieces:
        numbers = made.numbers[begins : begins + len(piece)]
        one = Totals.of_floats(part.kind, [piece.columns[arg.name] for arg in part.args], piece.diff, numbers, groups)
        if one is None:
            return None
        begins += len(piece)
        found.append(one)
    if len(found) == 1:
        return found[0]
    order = np.arange(len(found) * groups).reshape(len(found), groups).T.ravel()  # the sums of each group together
    return Totals.concat(found).take(order).added(np.arange(groups) * len(found))

"""Sums of groups whose keys are integers, dates or few texts: each combination of them is one number to group by.

Where the rows nearly fill the range of these numbers, each group has a place in it: counts and sums are arrays over the
range, and each row adds to its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from halfjoin.engine.scalar.values import raw, valid
from halfjoin.engine.updates.updates import Ints, where_true

_FROM = 1 << 10  # places; fewer are added up as fast by hashing
_TEXTS, _OFTEN = 1 << 12, 8  # a sample of texts, and how often one comes there on average
_MOST = 1 << 62


@dataclass(frozen=True, slots=True)
class _Range:
    """Integers or dates as digits: what a key is above `low`. NULL has the last of `count` digits."""

    type: pa.DataType
    low: int
    count: int

    def of(self, keys: pa.Array) -> Ints:
        digits: Ints = raw(keys).astype(np.int64, copy=False) - self.low
        return digits if keys.null_count == 0 else np.where(valid(keys), digits, self.count - 1)

    def keys(self, digits: Ints) -> pa.Array:
        values = (digits + self.low).astype(np.int32 if pt.is_date32(self.type) else np.int64)
        null = digits == self.count - 1
        return pa.array(values, mask=null if null.any() else None).cast(self.type)


@dataclass(frozen=True, slots=True)
class _Words:
    """A few texts as digits: their places in a list. NULL has the last of `count` digits."""

    texts: pa.Array
    count: int

    def of(self, keys: pa.DictionaryArray) -> Ints:
        digits: Ints = raw(keys.indices).astype(np.int64)
        return digits if keys.null_count == 0 else np.where(valid(keys), digits, self.count - 1)

    def keys(self, digits: Ints) -> pa.Array:
        null = digits == self.count - 1
        return self.texts.take(pa.array(digits, mask=null if null.any() else None))


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of combinations of keys, from 0 to before `count`: the keys are digits, the first one the highest.

    `numbers`: those of the rows, piece by piece.
    """

    digits: tuple[_Range | _Words, ...]
    count: int
    numbers: list[Ints]

    def keys(self, numbers: Ints) -> list[pa.Array]:
        """The keys of numbers."""
        found = list[pa.Array]()
        for digit in self.digits[:0:-1]:
            numbers, rest = np.divmod(numbers, digit.count)
            found.append(digit.keys(rest))
        return [self.digits[0].keys(numbers), *reversed(found)]


def numbers_of(columns: Sequence[Sequence[pa.Array]]) -> Numbers | None:
    """The numbers of rows with these columns of keys, each of them piece by piece. None: there is no key, some key is
    neither an integer nor a date nor one of a few texts, or their combinations are too few or too many."""
    ranges, about = _sizes(columns)
    if not _FROM <= about < _MOST:
        return None
    digits, given = list[_Range | _Words](), [*columns]
    for number, one in enumerate(ranges):
        if one is None:
            encoded = pa.chunked_array(columns[number]).dictionary_encode().unify_dictionaries()
            given[number] = encoded.chunks
        digits.append(one or _Words(encoded.chunk(0).dictionary, len(encoded.chunk(0).dictionary) + 1))
    count = prod(digit.count for digit in digits)
    if count >= _MOST:
        return None
    first, *rest = zip(digits, given, strict=True)
    numbers = [first[0].of(piece) for piece in first[1]]
    for digit, pieces in rest:
        numbers = [high * digit.count + digit.of(piece) for high, piece in zip(numbers, pieces, strict=True)]
    return Numbers(tuple(digits), count, numbers)


def is_dense(pieces: Sequence[Sequence[pa.Array]]) -> bool:
    """Whether rows with these keys, given piece by piece, are added up by place (`summed`), as a sample has it."""
    _, about = _sizes([*zip(*pieces, strict=True)])
    return _FROM <= about <= sum(len(piece[0]) for piece in pieces)


def _sizes(columns: Sequence[Sequence[pa.Array]]) -> tuple[list[_Range | None], int]:
    """The ranges of the keys that are numbers, and about how many combinations of keys there are; 0: they have no
    number."""
    ranges = [_range(pieces) if _is_number(pieces[0].type) else None for pieces in columns]
    about = [_words_of(pieces) if one is None else one.count for one, pieces in zip(ranges, columns, strict=True)]
    sizes = [one for one in about if one is not None]
    return ranges, prod(sizes) if columns and len(sizes) == len(columns) else 0


def _is_number(type: pa.DataType) -> bool:
    return bool(pt.is_signed_integer(type) or pt.is_date32(type))


def _range(pieces: Sequence[pa.Array]) -> _Range:
    type = pieces[0].type
    ends = [pc.min_max(piece.view(pa.int32()) if pt.is_date32(type) else piece) for piece in pieces]
    given = [(one["min"].as_py(), one["max"].as_py()) for one in ends if one["min"].is_valid]
    low, high = (min(one for one, _ in given), max(one for _, one in given)) if given else (0, -1)
    return _Range(type, low, high - low + 2)


def _words_of(pieces: Sequence[pa.Array]) -> int | None:
    """The digits of texts, as a sample has them; None if these are not texts, or each comes too seldom."""
    sample = max(pieces, key=len).slice(0, _TEXTS)
    if not pt.is_string(sample.type):
        return None
    found = len(sample.unique())
    return found + 1 if _OFTEN * found <= len(sample) else None


def summed(
    keys: Sequence[Sequence[pa.Array]], added: Sequence[Sequence[Ints | int]]
) -> tuple[list[pa.Array], list[Ints]] | None:
    """The keys of the groups, and for each of `added`, what rows add, its sums. All are given piece by piece. None:
    hashing the keys costs less, or is all there is."""
    found, rows = numbers_of([*zip(*keys, strict=True)]), sum(len(piece[0]) for piece in keys)
    if found is None or found.count > rows:
        return None
    there, sums = _by_place(found.numbers, added, found.count)
    return found.keys(there), sums


def one_number(parts: Sequence[Ints | int]) -> int | None:
    """The number that all rows add; None if they add different ones."""
    first = parts[0]
    return first if isinstance(first, int) and all(isinstance(one, int) and one == first for one in parts) else None


def _by_place(numbers: Sequence[Ints], added: Sequence[Sequence[Ints | int]], count: int) -> tuple[Ints, list[Ints]]:
    counts, same = np.zeros(count, np.int64), [one_number(parts) for parts in added]
    sums = [np.zeros(count, np.int64) if one is None else counts for one in same]
    for number, piece in enumerate(numbers):
        np.add.at(counts, piece, 1)
        for total, one, parts in zip(sums, same, added, strict=True):
            if one is None:
                np.add.at(total, piece, parts[number])
    there = where_true(counts != 0)
    return there, [total[there] * (1 if one is None else one) for total, one in zip(sums, same, strict=True)]

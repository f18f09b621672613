"""Sorts rows that are equal together, by small numbers in few passes.

A pass sorts numbers that have some bits of the row's words above its position. So no two are equal, equal rows stay in
their order, and NumPy sorts plain numbers in a fifth of the time that it takes to sort positions. Where values lie
close to each other, or are few, one pass puts equal rows together. (LSD radix sort: Hollerith 1889; see Knuth, The Art
of Computer Programming 3, 5.2.5.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from halfjoin.engine.kernels import indexing
from halfjoin.engine.updates.codes import factorize, integers, integers_of_floats, is_integral
from halfjoin.engine.updates.updates import Ints

_FEW = 1 << 12  # so few rows are sorted faster by comparing


class Word(NamedTuple):
    """Numbers of rows that are below `2 ** bits`, as uint64."""

    numbers: NDArray[np.uint64]
    bits: int


def words(columns: Sequence[pa.Array]) -> list[Word]:
    """Words of rows: they are equal exactly where the rows are. NULL equals NULL, NaN equals NaN, -0 equals 0."""
    return _joined(map(_word, columns))


def of_integers(values: Ints) -> Word:
    """The word of integers, whose order is theirs."""
    if not len(values) or values.strides == (0,):
        return Word(np.zeros(len(values), np.uint64), 0)
    least, most = int(values.min()), int(values.max())
    if least == most:
        return Word(np.zeros(len(values), np.uint64), 0)
    return Word((values - least).view(np.uint64), (most - least).bit_length())  # modulo 2**64


def argsort(found: Sequence[Word], length: int) -> Ints:
    """The positions of rows in the order of words, the first word first. Equal rows stay in their order."""
    if length < _FEW:
        return np.lexsort([word.numbers for word in found[::-1]]) if found else np.arange(length)
    ordered = indexing.order([word.numbers for word in found], [word.bits for word in found], length)
    if ordered is not None:
        return ordered
    places, positions = np.arange(length, dtype=np.uint64), None
    size = np.uint64((length - 1).bit_length())  # bits of a position
    for word in reversed(_joined(found)):
        for shift in range(0, word.bits, 64 - int(size)):
            sorted = word.numbers if positions is None else word.numbers[positions]
            sorted = sorted >> np.uint64(shift) << size  # bits of later passes are shifted out
            sorted |= places
            sorted.sort()
            sorted &= (np.uint64(1) << size) - np.uint64(1)
            positions = sorted if positions is None else positions[sorted]
    return (places if positions is None else positions).view(np.int64)


def _joined(found: Iterable[Word]) -> list[Word]:
    """The same words, with neighbours in one word where they fit."""
    made: list[Word] = []
    for word in found:
        if made and made[-1].bits + word.bits <= 64:
            last = made.pop()
            if not last.bits or not word.bits:
                made.append(last if last.bits else word)
                continue
            made.append(Word(last.numbers << np.uint64(word.bits) | word.numbers, last.bits + word.bits))
        else:
            made.append(word)
    return made


def _word(column: pa.Array) -> Word:
    if not column.null_count:
        if is_integral(column.type):
            return of_integers(integers(column))
        if pt.is_floating(column.type):
            return of_integers(integers_of_floats(column))
    return of_integers(factorize(column))

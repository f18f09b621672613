"""The least and the greatest values of groups whose keys are integers, dates or few texts: each group has a place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.reduce.by_place import numbers_of
from halfjoin.engine.reduce.words import of_word, only_word
from halfjoin.engine.scalar.values import valid
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Ints, where_true

_SPARSE = 2  # places for each row; among more, to hash the keys costs less


def extremes_by_place(
    keys: Sequence[pa.Array], functions: Sequence[str], columns: Sequence[pa.Array]
) -> tuple[list[pa.Array], list[pa.Array], Ints] | None:
    """The keys of the groups, for each function (`min` or `max`) its value of every group, and how many rows each group
    has. None: the groups have no places, or some values have no word that tells them."""
    found = numbers_of([[key] for key in keys])
    if found is None or found.count > _SPARSE * len(keys[0]):
        return None
    words = [word for word in map(only_word, columns) if word is not None]
    if len(words) < len(columns):
        return None
    (numbers,) = found.numbers
    counts = np.bincount(numbers, minlength=found.count)
    there = where_true(counts != 0)
    values = [_extreme(function, column, word, numbers, found.count, there)
              for function, column, word in zip(functions, columns, words, strict=True)]  # fmt: skip
    return found.keys(there), values, counts[there]


def _extreme(function: str, column: pa.Array, word: Ints, numbers: Ints, count: int, there: Ints) -> pa.Array:
    none = None
    if column.null_count:
        given = valid(column)
        word, numbers = word[given], numbers[given]
        empty = np.ones(count, np.bool_)
        empty[numbers] = False
        none = pa.array(empty[there])
    found = np.full(count, MAXIMUM if function == "min" else MINIMUM)
    (np.minimum if function == "min" else np.maximum).at(found, numbers, word)
    made = of_word(found[there], column.type)
    return made if none is None else pc.if_else(none, pa.scalar(None, made.type), made)

"""The least and the greatest values of groups whose keys are integers, dates or few texts: each group has a place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from halfjoin.engine.reduce.by_place import numbers_of
from halfjoin.engine.scalar.values import raw, valid
from halfjoin.engine.updates.updates import Ints, where_true


def extremes_by_place(
    keys: Sequence[pa.Array], functions: Sequence[str], columns: Sequence[pa.Array]
) -> tuple[list[pa.Array], list[pa.Array], Ints] | None:
    """The keys of the groups, for each function (`min` or `max`) its value of every group, and how many rows each group
    has. None: the groups have no places, or values are not ordered as NumPy orders them. No value may be NaN."""
    if not all(map(_is_plain, columns)):
        return None
    found = numbers_of([[key] for key in keys])
    if found is None or found.count > len(keys[0]):
        return None
    (numbers,) = found.numbers
    counts = np.bincount(numbers, minlength=found.count)
    there = where_true(counts != 0)
    values = [_extreme(function, column, numbers, found.count, there)
              for function, column in zip(functions, columns, strict=True)]  # fmt: skip
    return found.keys(there), values, counts[there]


def _extreme(function: str, column: pa.Array, numbers: Ints, count: int, there: Ints) -> pa.Array:
    values, empty = raw(column), None
    if column.null_count:
        given = valid(column)
        values, numbers = values[given], numbers[given]
        none = np.ones(count, np.bool_)
        none[numbers] = False
        empty = none[there]
    if function == "min":
        found = np.full(count, _limits(values.dtype)[1], values.dtype)
        np.minimum.at(found, numbers, values)
    else:
        found = np.full(count, _limits(values.dtype)[0], values.dtype)
        np.maximum.at(found, numbers, values)
    return pa.array(found[there], mask=empty).view(column.type)


def _limits(dtype: Any) -> tuple[float, float]:
    if dtype.kind == "f":
        return -np.inf, np.inf
    info = np.iinfo(dtype)
    return info.min, info.max


def _is_plain(column: pa.Array) -> bool:
    type = column.type
    if pt.is_signed_integer(type) or pt.is_floating(type):
        return True
    return bool(pt.is_date32(type) or pt.is_time64(type) or pt.is_timestamp(type))

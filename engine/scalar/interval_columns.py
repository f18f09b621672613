"""Converts a column of a batch to intervals: texts, durations and the structs that files have are some, too."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from halfjoin.engine.scalar.python_values import is_string
from halfjoin.engine.scalar.values import raw, valid
from halfjoin.engine.updates.intervals import DAY, IN_FILES, intervals, of_struct, parts
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.functions.text_input_intervals import Interval, interval_of


def interval_column(array: pa.Array) -> pa.Array:
    """The values as intervals. A duration (Python's timedelta) has days and microseconds.

    Raises:
        TypeError: they are of another type. ValueError: a value is none, or has nanoseconds.
    """
    source = array.type
    if pt.is_struct(source) and source == IN_FILES:
        array = of_struct(array)
    elif pt.is_duration(source):
        micros = array.cast(pa.duration("us")).view(pa.int64())
        whole = raw(micros)
        return intervals(0, whole // DAY, whole % DAY, ~valid(micros))
    elif is_string(source):
        found = [None if text is None else _interval_of(text) for text in array.to_pylist()]
        months, days, micros = (np.array([one[i] if one else 0 for one in found], np.int64) for i in range(3))
        return intervals(months, days, micros, np.array([one is None for one in found]))
    if not pt.is_interval(array.type):
        raise TypeError("no intervals")
    if (np.where(valid(array), parts(array)[2], 0) % 1000).any():
        raise ValueError("nanoseconds")
    return array


def _interval_of(text: str) -> Interval:
    try:
        found = interval_of(text)
    except UnsupportedSQL:
        found = None
    if found is None:
        raise ValueError(text)
    return found

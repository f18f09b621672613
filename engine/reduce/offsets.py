"""lag, lead, first_value, last_value and nth_value: the value in another row of the partition or the frame."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.reduce.partitions import Partitions
from halfjoin.engine.reduce.spans import Spans, taken
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import raw, valid
from halfjoin.engine.updates.updates import Ints, Mask, where_true
from halfjoin.sql.relation import WindowCall


def shifted(call: WindowCall, rows: Partitions) -> pa.Array:
    """lag and lead: the value some rows before or after (1), or the default (NULL) outside the partition.

    An offset of NULL gives NULL, a negative one turns the direction round. With IGNORE NULLS only rows with a value are
    counted; an offset of 0 is the row itself.
    """
    values, *more = (rows.values(arg) for arg in call.args)
    offset = np.where(valid(more[0]), raw(more[0]), 0).astype(np.int64) if more else np.ones(len(rows), np.int64)
    offset = -offset if call.function == "lag" else offset
    given = valid(values) if call.ignore_nulls else None
    target = _target(rows, offset, given)
    found = taken(values, target)
    if len(more) == 2:
        found = pc.if_else(pa.array(target < 0), more[1], found)
    if more and more[0].null_count:
        found = pc.if_else(more[0].is_valid(), found, pa.scalar(None, found.type))
    return found


def _target(rows: Partitions, offset: Ints, given: Mask | None) -> Ints:
    """The position that is `offset` rows away, of those that are `given`; -1 outside the partition."""
    if given is None:
        target = rows.place + offset
        return np.where((target >= rows.first) & (target < rows.end), target, -1)
    before = np.concatenate([[0], np.cumsum(given)])
    number = np.where(offset < 0, before[rows.place] + offset, before[rows.place + 1] + offset - 1)
    inside = (number >= before[rows.first]) & (number < before[rows.end])
    found = np.append(where_true(given), -1)[np.where(inside, number, -1)]
    return np.where(offset == 0, rows.place, found)


def of_frame(call: WindowCall, rows: Partitions, frame: Spans) -> pa.Array:
    """first_value, last_value and nth_value: the value in a row of the frame; NULL if there is no such row.

    Raises:
        Failed: the number of nth_value is not positive; the mask marks the rows.
    """
    values = rows.values(call.args[0])
    if call.ignore_nulls:
        given = valid(values)
        frame, values = frame.among(given), values.filter(pa.array(given))
    if call.function == "first_value":
        return taken(values, frame.nth(np.zeros(len(rows), np.int64)))
    if call.function == "last_value":
        return taken(values, frame.nth(frame.sizes - 1))
    number = rows.values(call.args[1])
    null = ~valid(number)
    place = np.where(null, 1, raw(number)).astype(np.int64)
    if (place <= 0).any():
        raise Failed("argument of nth_value must be greater than zero", place <= 0)
    return taken(values, np.where(null, -1, frame.nth(place - 1)))

"""The first rows that no change can have moved: only rows behind them came and went. So no row needs to be read.

This holds where batches take only rows that are there (`planner.plan.Reduce.checked`). Otherwise a row with a negative
count, which is an error, could be anywhere in the order. Only numerics and integers, and what is one inside, such as
dates and times, are compared; and a change that ties with the last of the first rows counts as one that moves it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from halfjoin.engine.reduce.front import Wanted
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.updates.codes import integers, is_integral
from halfjoin.engine.updates.updates import Updates
from halfjoin.sql.expr import Column


def keeps_values(wanted: Wanted, kept: pa.Array, updates: Updates, moments: Moments) -> bool:
    """Whether each update is behind the first value of its group, which is `kept`. So this stays the first value."""
    if wanted.subject is None or len(wanted.order) != 1 or wanted.limit != 1:
        return False
    values = updates.columns[wanted.subject]
    descending = wanted.order[0].descending
    if not _is_simple(values) or kept.null_count:
        return False
    if pt.is_decimal(values.type):
        return moments.groups == 1 and _is_behind(values, kept, descending=descending)
    found, first = integers(values), integers(kept)
    if moments.groups > 1:
        first = first[moments.group_of_rows]
    moved = found >= first if descending else found <= first
    return not moved.any()


def keeps_rows(wanted: Wanted, shown: int, was: Updates, updates: Updates, moments: Moments) -> bool:
    """Whether each update is behind the rows that the output has of the only group: `was`, if these are at least as
    many as it shows (`shown`); otherwise a row behind them comes into sight."""
    key = wanted.order[0] if wanted.order else None
    if key is None or not isinstance(key.expr, Column) or moments.groups != 1 or was.diff.sum() < shown:
        return False
    values, first = updates.columns[key.expr.name], was.columns[key.expr.name]
    if not len(first) or not _is_simple(values) or first.null_count:
        return False
    return _is_behind(values, first, descending=key.descending)


def _is_behind(values: pa.Array, first: pa.Array, *, descending: bool) -> bool:
    """Whether each value comes after each of the first ones."""
    if pt.is_decimal(values.type):
        (low, high), (least, most) = (pc.min_max(one).as_py().values() for one in (values, first))
        return bool(high < least if descending else low > most)
    found, bound = integers(values), integers(first)
    return bool(found.max() < bound.min() if descending else found.min() > bound.max())


def _is_simple(values: pa.Array) -> bool:
    """Whether values are compared here."""
    if values.null_count:
        return False
    return pt.is_decimal(values.type) or (is_integral(values.type) and not pt.is_boolean(values.type))

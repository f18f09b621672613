"""generate_series(start, stop[, step]): inclusive, as in PostgreSQL. `(1, 0)` is empty, and NULL gives nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from halfjoin.engine.linear.tables.exploded import Exploded, repeated
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.arrow_types import sql_type
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Ints, Mask
from halfjoin.sql.expr import Call, Column
from halfjoin.sql.types import INTERVAL, RESULT_ROWS

_US_PER_DAY = 86_400_000_000
_US_PER_MONTH = 30 * _US_PER_DAY  # PostgreSQL counts this much when it orders intervals
_ZERO_STEP = "step size cannot equal zero"
_TOO_MANY = f"generate_series makes {{:,}} rows of one, the most are {RESULT_ROWS:,}"


def generate_series(arguments: list[pa.Array], length: int) -> Exploded:
    """Arguments: start and stop of one integer, timestamp or numeric type of up to 18 digits; step of that type or an
    interval (default 1)."""
    start, stop = arguments[0], arguments[1]
    if pt.is_decimal(start.type):
        return _of_numerics(arguments, start.type)
    step = arguments[2] if len(arguments) > 2 else pa.array(np.ones(length, np.int64))
    known: Mask = pc.and_(pc.and_(start.is_valid(), stop.is_valid()), step.is_valid()).to_numpy(zero_copy_only=False)
    if pt.is_interval(step.type):
        months, days, micros = _interval_parts(step)
        if not months[known].any():  # only months have no fixed length
            return _numbers(start, stop, days * _US_PER_DAY + micros, known)
        return _calendar(start, stop, step, months * _US_PER_MONTH + days * _US_PER_DAY + micros, known)
    return _numbers(start, stop, step.cast(pa.int64()).fill_null(0).to_numpy(), known)


def _of_numerics(arguments: list[pa.Array], type: pa.DataType) -> Exploded:
    """A series of numerics, counted in units of their last decimal."""
    units = [_moved(argument, pa.decimal128(type.precision, 0)).cast(pa.int64()) for argument in arguments]
    step = units[2] if len(units) > 2 else pa.array(np.full(len(units[0]), 10**type.scale))
    known: Mask = pc.and_(pc.and_(units[0].is_valid(), units[1].is_valid()), step.is_valid()).to_numpy(
        zero_copy_only=False)
    found = _numbers(units[0], units[1], step.fill_null(0).to_numpy(), known)
    values = found.columns[0].cast(pa.decimal128(19, 0)).cast(pa.decimal128(type.precision, 0))
    return replace(found, columns=(_moved(values, type),))


def _moved(array: pa.Array, type: pa.DataType) -> pa.Array:
    """Decimals with their point elsewhere: the same digits."""
    return pa.Array.from_buffers(type, len(array), array.buffers(), offset=array.offset)


def _numbers(start: pa.Array, stop: pa.Array, step: Ints, known: Mask) -> Exploded:
    """Series with steps of fixed length. All values are computed at once."""
    low, high = (column.cast(pa.int64()).fill_null(0).to_numpy() for column in (start, stop))
    failed = np.flatnonzero(known & (step == 0))
    rising, falling = known & (step > 0) & (low <= high), known & (step < 0) & (low >= high)
    # The distance between two int64s may need 64 bits. So compute it unsigned, where wrapping around is exact.
    a, b, width = low.view(np.uint64), high.view(np.uint64), np.abs(step).astype(np.uint64)
    width = np.maximum(width, np.uint64(1))
    distance = np.where(rising, b - a, np.where(falling, a - b, np.uint64(0)))
    steps = np.minimum(distance // width, np.uint64(2**62)).astype(np.int64)
    counts = np.where(rising | falling, steps + 1, 0)
    message: str | list[str] = _ZERO_STEP
    if (counts > RESULT_ROWS).any():
        failed = np.flatnonzero((counts > RESULT_ROWS) | (known & (step == 0)))
        message = [_TOO_MANY.format(count) if count else _ZERO_STEP for count in counts[failed].tolist()]
        counts[failed] = 0
    rows, number = repeated(counts, "generate_series")
    values = pa.array(low[rows] + number * step[rows]).cast(start.type)
    return Exploded(rows, (values,), failed=failed if len(failed) else None, message=message)


def _calendar(start: pa.Array, stop: pa.Array, step: pa.Array, sign: Ints, known: Mask) -> Exploded:
    """Series with steps of months. Each value is the one before plus the step, so a clamp to a month's end persists.

    A step of months minus some days can stand still or go back, so the series may never end. Such a row fails.
    """
    kind = sql_type(start.type)
    add = compile(Call("+", (Column("value", kind), Column("step", INTERVAL)), kind))
    failed = np.flatnonzero(known & (sign == 0))
    alive = np.flatnonzero(known & (sign != 0))
    value = start
    rows, values, total = [], [], 0
    while len(alive):
        indices = pa.array(alive)
        current, end = value.take(indices).cast(pa.int64()).to_numpy(), stop.take(indices).cast(pa.int64()).to_numpy()
        inside = np.where(sign[alive] > 0, current <= end, current >= end)
        alive = alive[inside]
        indices = pa.array(alive)
        current_values = value.take(indices)
        rows.append(alive)
        values.append(current_values)
        total += len(alive)
        if total > limits.MOST_ROWS:
            repeated(np.array([total]), "generate_series")
        following = add.evaluate({"value": current_values, "step": step.take(indices)}, len(alive)).values
        moved = following.cast(pa.int64()).fill_null(0).to_numpy() - current[inside]
        ahead = following.is_valid().to_numpy(zero_copy_only=False) & (np.sign(moved) == np.sign(sign[alive]))
        failed = np.append(failed, alive[~ahead])
        value, alive = _scatter(following, alive, len(start)), alive[ahead]
    if not rows:
        return Exploded(np.zeros(0, np.int64), (start.slice(0, 0),), failed=failed if len(failed) else None,
                        message=_ZERO_STEP)
    every = np.concatenate(rows)
    order = np.argsort(every, kind="stable")  # put a row's results together, in their order
    order = order[~np.isin(every[order], failed)]
    made = pa.concat_arrays(values).take(pa.array(order))
    return Exploded(every[order], (made,), failed=np.sort(failed) if len(failed) else None, message=_ZERO_STEP)


def _scatter(values: pa.Array, positions: Ints, length: int) -> pa.Array:
    """An array of `length` with `values` at `positions` and NULL elsewhere."""
    where = np.full(length, -1)
    where[positions] = np.arange(len(positions))
    return values.take(pa.array(where, mask=where < 0))


def _interval_parts(step: pa.Array) -> tuple[Ints, Ints, Ints]:
    """Months, days and microseconds of an interval column. NULL becomes zeros."""
    raw = np.frombuffer(
        step.buffers()[1], np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")]), len(step) + step.offset
    )[step.offset :]
    valid = step.is_valid().to_numpy(zero_copy_only=False)
    months, days, nanos = (np.where(valid, raw[name], 0).astype(np.int64) for name in ("months", "days", "nanos"))
    return months, days, nanos // 1000

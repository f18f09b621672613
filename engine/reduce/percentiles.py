"""Aggregates of sorted values: percentile_cont, percentile_disc and mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.reduce.arguments import Arguments, SortedValues
from halfjoin.engine.reduce.words import differ, words
from halfjoin.engine.scalar import moments
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import raw, valid
from halfjoin.engine.updates.updates import Ints, gather, indices_of, where_true

Fraction: TypeAlias = float | npt.NDArray[np.float64]  # of all groups, or of each
Fractions: TypeAlias = float | list[float | None] | pa.Array | None  # one, an array of them, or one for each group


def percentile_cont(rows: SortedValues, fractions: Fractions) -> pa.Array:
    """The number or interval at a fraction of the way from the first value to the last; it may lie between two values.

    `args`: sorted numbers or intervals without NULLs. An array of fractions gives an array of them.

    Raises:
        Failed: a fraction is not between 0 and 1, or an interval is out of range.
    """
    if pa.types.is_interval(rows.args[0].type):
        return _of_each(fractions, lambda fraction: _between_intervals(rows, fraction), rows)
    values, empty = rows.args[0], rows.sizes == 0

    def at(fraction: Fraction) -> pa.Array:
        if not len(values):
            return pa.nulls(len(rows), pa.float64())
        low, high = places("percentile_cont", fraction, rows.sizes)
        ends = np.concatenate([rows.position(low), rows.position(high)])
        first, last = _floats(values, ends).reshape(2, -1)
        part = fraction * np.maximum(rows.sizes - 1, 0) - low
        with np.errstate(invalid="ignore", over="ignore"):
            between = first + part * (last - first)
        return pa.array(np.where(low == high, first, between), mask=empty)

    return _of_each(fractions, at, rows)


def _floats(values: pa.Array, positions: Ints) -> npt.NDArray[np.floating]:
    """The numbers at these positions as floats."""
    if pa.types.is_floating(values.type):
        return raw(values)[positions]
    return raw(gather(values, indices_of(positions)).cast(pa.float64(), safe=False))


def _between_intervals(rows: SortedValues, fraction: Fraction) -> pa.Array:
    """As PostgreSQL computes it: the lower interval, plus a part of the difference."""
    empty = rows.sizes == 0
    low, high = places("percentile_cont", fraction, rows.sizes)
    first, last = (rows.args[0].take(pa.array(rows.position(side), mask=empty)) for side in (low, high))
    part = pa.array(fraction * np.maximum(rows.sizes - 1, 0) - low)
    return moments.combine(first, moments.scaled(moments.combine(last, first, -1), part, "*"), 1)


def percentile_disc(rows: SortedValues, fractions: Fractions) -> pa.Array:
    """The first value that has at least this fraction of the values at or before it.

    `args`: sorted values without NULLs. An array of fractions gives an array of values.

    Raises:
        Failed: a fraction is not between 0 and 1.
    """
    empty = rows.sizes == 0

    def at(fraction: Fraction) -> pa.Array:
        place, _ = places("percentile_disc", fraction, rows.sizes)
        return rows.args[0].take(pa.array(rows.position(place), mask=empty))

    return _of_each(fractions, at, rows)


def places(function: str, fraction: Fraction, sizes: Ints) -> tuple[Ints, Ints]:
    """The first and the last place, from 0, of the values that a percentile of so many values reads."""
    if function == "percentile_disc":
        place: Ints = np.maximum(np.ceil(fraction * sizes).astype(np.int64), 1) - 1
        return place, place
    exact = fraction * np.maximum(sizes - 1, 0)
    return np.floor(exact).astype(np.int64), np.ceil(exact).astype(np.int64)


def mode(rows: Arguments) -> pa.Array:
    """The most frequent value; of several the first. `args`: sorted values without NULLs."""
    if not len(rows.count):
        return pa.nulls(len(rows), rows.args[0].type)
    runs = where_true(differ([rows.numbers, *words(rows.args[0])], len(rows.count)))
    frequency, group = np.add.reduceat(rows.count, runs), rows.numbers[runs]
    firsts = where_true(differ([group], len(group)))
    most = np.repeat(np.maximum.reduceat(frequency, firsts), np.diff(np.append(firsts, len(runs))))
    best = where_true(frequency == most)[::-1]  # of those of a group, the first one is written last
    found = np.full(len(rows), -1)
    found[group[best]] = runs[best]
    return rows.args[0].take(pa.array(found, mask=found < 0))


def _of_each(fractions: Fractions, at: Callable[[Fraction], pa.Array], rows: SortedValues) -> pa.Array:
    """What `at` gives for the fraction, or an array of what it gives for each of the fractions."""
    if isinstance(fractions, pa.Array):
        return _of_own(fractions, at)
    groups, there = len(rows), rows.sizes > 0  # of no values there is no percentile, whatever the fraction
    listed = fractions if isinstance(fractions, list) else [fractions]
    for fraction in listed:
        if fraction is not None and not 0 <= fraction <= 1 and there.any():
            raise Failed(f"percentile value {fraction:g} is not between 0 and 1", there)
    if isinstance(fractions, float):
        return at(fractions)
    kind = at(0.0).type
    found = [pa.nulls(groups, kind) if fraction is None else at(fraction) for fraction in listed]
    if not isinstance(fractions, list):
        return found[0]
    by_group = np.arange(groups * len(listed)).reshape(len(listed), groups).T.ravel()
    offsets = pa.array(np.arange(groups + 1, dtype=np.int32) * len(listed))
    flat = pa.concat_arrays([pa.nulls(0, kind), *found]).take(pa.array(by_group))
    return pa.ListArray.from_arrays(offsets, flat, mask=pa.array(rows.sizes == 0))


def _of_own(fractions: pa.Array, at: Callable[[Fraction], pa.Array]) -> pa.Array:
    """What `at` gives for the fraction of each group; NULL for a NULL."""
    there = valid(fractions)
    values = np.where(there, raw(fractions), 0.0)
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        messages = np.array([f"percentile value {value:g} is not between 0 and 1" for value in values[bad]], object)
        raise Failed(messages[0], bad, messages=messages)
    return pc.if_else(pa.array(there), at(values), None)

"""Temporal filters: a row is in while a formula over `mz_now()` is true, however often that changes.

Linear law. `lo <= mz_now() AND mz_now() < hi` yields `(row, lo, +1), (row, hi, -1)`, nothing when `hi <= lo` or a
bound is NULL. Any formula of AND, OR and NOT is a step function of time, constant between the bounds of its
comparisons: so it is evaluated at each bound, and where its truth changes an update is made. (Materialize takes
conjunctions only: https://materialize.com/docs/transform-data/patterns/temporal-filters/.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from halfjoin.engine.evaluate import evaluate_all
from halfjoin.engine.failures import Errors
from halfjoin.engine.scalar import compile
from halfjoin.engine.updates import MINIMUM, Ints, Mask, Updates, product
from halfjoin.planner.block import expressions
from halfjoin.planner.linear import Atom, Combination, Formula, Static
from halfjoin.sql.expr import Expr

NEVER = np.iinfo(np.int64).max  # a time that is not reached
_MS_PER_DAY = 86_400_000
_US_PER_MS = 1_000

# Truth in three-valued logic: where it is true, where it is false (unknown: neither).
Truth = tuple[Mask, Mask]
AtTime = Callable[[Ints], Truth]


def temporal_filter(formula: Formula) -> Callable[[Updates, Errors], Updates]:
    """The operator for a formula."""
    scalars = [(compile(expr), expr) for expr in dict.fromkeys(expressions(formula))]

    def run(updates: Updates, errors: Errors) -> Updates:
        arrays, updates = evaluate_all(scalars, updates, errors)
        points: list[Ints] = [updates.time]
        truth = _bind(formula, {expr: array for (_, expr), array in zip(scalars, arrays, strict=True)}, points)
        # Changes before the update's own time have happened by then; only the state they left counts.
        times = np.sort(np.maximum(np.stack(points, axis=1), updates.time[:, None]), axis=1)
        before = np.zeros(len(updates), np.int64)
        rows, when, diffs = [], [], []
        for column in range(times.shape[1]):
            at = np.ascontiguousarray(times[:, column])
            now = truth(at)[0].astype(np.int64)
            changed = np.flatnonzero((now != before) & (at != NEVER))
            rows.append(changed)
            when.append(at[changed])
            diffs.append((now - before)[changed])
            before = now
        result = updates.take(np.concatenate(rows))
        return Updates(result.columns, np.concatenate(when), product(result.diff, np.concatenate(diffs)))

    return run


def _bind(formula: Formula, values: Mapping[Expr, pa.Array], points: list[Ints]) -> AtTime:
    """The formula as a function of time; the times at which it may change are added to `points`."""
    match formula:
        case Static(expr):
            column = values[expr]
            true = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
            false = pc.fill_null(pc.invert(column), False).to_numpy(zero_copy_only=False)
            return lambda at: (true, false)
        case Atom(op, bound):
            start, stop, known = _interval(op, values[bound])
            points += [start, stop]
            if op == "<>":
                return lambda at: (known & ~((start <= at) & (at < stop)), known & (start <= at) & (at < stop))
            return lambda at: (known & (start <= at) & (at < stop), known & ~((start <= at) & (at < stop)))
        case Combination("not", args):
            inner = _bind(args[0], values, points)
            return lambda at: _negated(inner(at))
        case Combination(op, args):
            parts = [_bind(arg, values, points) for arg in args]
            return lambda at: _combine(op, [part(at) for part in parts])


def _negated(truth: Truth) -> Truth:
    return truth[1], truth[0]


def _combine(op: str, truths: list[Truth]) -> Truth:
    """AND is true where all are and false where any is; OR the other way round."""
    trues, falses = [true for true, _ in truths], [false for _, false in truths]
    if op == "and":
        return np.logical_and.reduce(trues), np.logical_or.reduce(falses)
    return np.logical_or.reduce(trues), np.logical_and.reduce(falses)


def _interval(op: str, bound: pa.Array) -> tuple[Ints, Ints, Mask]:
    """The times `[start, stop)` at which `mz_now() op bound` (at which it does not, for `<>`); where it is known."""
    ceiling, after = _whole_times(bound)
    everything = np.full(len(bound), MINIMUM), np.full(len(bound), NEVER)
    known: Mask = bound.is_valid().to_numpy(zero_copy_only=False)
    match op:
        case "<":
            return everything[0], ceiling, known
        case "<=":
            return everything[0], after, known
        case ">":
            return after, everything[1], known
        case ">=":
            return ceiling, everything[1], known
        case _:  # "=" and "<>"; empty where the bound is between two times
            return ceiling, after, known


def _whole_times(bound: pa.Array) -> tuple[Ints, Ints]:
    """The least time `>= bound` and the least time `> bound`; beyond int64 is as good as its end."""
    kind = bound.type
    if pt.is_decimal(kind):
        wide = bound.cast(pa.decimal256(76, kind.scale))  # rounding up may take one digit more
        floor, ceiling = (_saturated(f(wide)) for f in (pc.floor, pc.ceil))
    elif pt.is_timestamp(kind):
        micros = _int64(bound)
        floor, ceiling = micros // _US_PER_MS, -(-micros // _US_PER_MS)
    elif pt.is_date(kind):
        floor = ceiling = _int64(bound.cast(pa.int32())) * _MS_PER_DAY
    else:
        floor = ceiling = _int64(bound)
    return ceiling, np.where(floor == NEVER, NEVER, floor + (floor != NEVER))


def _int64(column: pa.Array) -> Ints:
    values: Any = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return np.asarray(values, np.int64)


def _saturated(column: pa.Array) -> Ints:
    wide = pa.decimal256(76, 0)
    whole = column.cast(wide)
    low, high = (pa.scalar(value).cast(wide) for value in (int(MINIMUM), int(NEVER)))
    return _int64(pc.if_else(pc.less(whole, low), low, pc.if_else(pc.greater(whole, high), high, whole)))

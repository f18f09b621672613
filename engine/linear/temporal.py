"""Temporal filters: a row passes while a formula over `mz_now()` is true, however often the formula changes.

Linear law. `lo <= mz_now() AND mz_now() < hi` yields `(row, lo, +1), (row, hi, -1)`, and nothing if `hi <= lo` or a
bound is NULL. Any formula of AND, OR and NOT is a step function of time. It is constant between the bounds of its
comparisons. So the filter evaluates the formula at each bound, and makes an update where the result changes.
(Materialize takes conjunctions only: https://materialize.com/docs/transform-data/patterns/temporal-filters/.)

>>> import halfjoin as hj
>>> engine = hj.Engine(clock="own")
>>> engine.execute("CREATE TABLE t (k bigint, lo bigint, hi bigint)")
>>> engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k FROM t WHERE lo <= mz_now() AND mz_now() < hi")
>>> applied = engine.apply({"t": [{"k": 1, "lo": 3, "hi": 6}, {"k": 2, "lo": 6, "hi": 3}]}, time=4)
>>> applied = engine.advance(to=8)
>>> [engine.read("v", as_of=time).num_rows for time in range(4, 8)]
[1, 1, 0, 0]

Wrong ways. Without "nothing if `hi <= lo`" the second row would have a negative count from 3 to 6. If each comparison
were its own operator, OR would be wrong: where both sides are true, the row would be there twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from halfjoin.engine.linear.failures import Errors
from halfjoin.engine.scalar import Result, compile
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Ints, Mask, Updates, product
from halfjoin.planner.block import expressions
from halfjoin.planner.linear import Atom, Combination, Formula, Static
from halfjoin.sql.expr import Expr

_MS_PER_DAY = 86_400_000
_US_PER_MS = 1_000


class Truth(NamedTuple):
    """For each row, whether the formula is true, is false, or fails. Otherwise it is unknown (NULL).

    `failed` is None if no row can fail.
    """

    true: Mask
    false: Mask
    failed: Mask | None = None


AtTime = Callable[[Ints], Truth]
AliveFrom = Callable[[Updates, int], Mask]


def temporal_filter(formula: Formula) -> Callable[[Updates, Errors], Updates]:
    """The operator for a formula. A row is an error exactly at the times at which the formula fails for it."""
    scalars = [(compile(expr), expr) for expr in dict.fromkeys(expressions(formula))]

    def run(updates: Updates, errors: Errors) -> Updates:
        results = {expr: scalar.evaluate(updates.columns, len(updates)) for scalar, expr in scalars}
        points: list[Ints] = [updates.time]
        truth = _bind(formula, results, points)
        # Changes before the update's own time are over by then. Only the state after them counts.
        times = np.sort(np.maximum(np.stack(points, axis=1), updates.time[:, None]), axis=1)
        steps = [truth(np.ascontiguousarray(times[:, column])) for column in range(times.shape[1])]
        if any(step.failed is not None for step in steps):
            failing = [np.zeros(len(updates), np.bool_) if step.failed is None else step.failed for step in steps]
            _report(*_changes(updates, times, failing), results, errors)
        return _changes(updates, times, [step.true for step in steps])[0]

    return run


def alive_from(formula: Formula) -> AliveFrom:
    """For each row, whether a formula is true, or fails, at some time at or above a given one."""
    scalars = [(compile(expr), expr) for expr in dict.fromkeys(expressions(formula))]

    def run(updates: Updates, begins: int) -> Mask:
        results = {expr: scalar.evaluate(updates.columns, len(updates)) for scalar, expr in scalars}
        start = np.full(len(updates), begins)
        points: list[Ints] = [start]
        truth = _bind(formula, results, points)
        found: Mask = np.zeros(len(updates), np.bool_)
        for point in points:  # between these the formula is constant
            then = truth(np.maximum(point, start))
            found |= then.true if then.failed is None else then.true | then.failed
        return found

    return run


def _changes(updates: Updates, times: NDArray[np.int64], states: Sequence[Mask]) -> tuple[Updates, Ints]:
    """An update where a row's state turns on (+1) or off (-1), and the positions of these rows in `updates`."""
    before = np.zeros(len(updates), np.int64)
    rows, when, diffs = [], [], []
    for column, state in enumerate(states):
        at, now = times[:, column], state.astype(np.int64)
        changed = np.flatnonzero((now != before) & (at != MAXIMUM))
        rows.append(changed)
        when.append(at[changed])
        diffs.append((now - before)[changed])
        before = now
    positions = np.concatenate(rows)
    found = updates.take(positions)
    return Updates(found.columns, np.concatenate(when), product(found.diff, np.concatenate(diffs))), positions


def _report(failing: Updates, positions: Ints, results: Mapping[Expr, Result], errors: Errors) -> None:
    """Report each failing row as one error, by the formula's first expression that fails for it at any time."""
    left: Mask = np.ones(len(failing), np.bool_)
    for expr, result in results.items():
        if result.failures is None:
            continue
        rows = np.flatnonzero(left & np.isin(positions, result.failures.rows))
        left[rows] = False
        messages = result.failures.messages[np.searchsorted(result.failures.rows, positions[rows])]
        errors.report(failing, rows, messages, expr)


def _bind(formula: Formula, results: Mapping[Expr, Result], points: list[Ints]) -> AtTime:
    """The formula as a function of time. Adds the times at which it may change to `points`."""
    match formula:
        case Static(expr):
            column, failed = results[expr].values, _failed(results[expr])
            true = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
            false = pc.fill_null(pc.invert(column), False).to_numpy(zero_copy_only=False)
            return lambda at: Truth(true, false, failed)
        case Atom(op, bound):
            (start, stop, known), failed = _interval(op, results[bound].values), _failed(results[bound])
            points += [start, stop]

            def at_time(at: Ints) -> Truth:
                inside = (start <= at) & (at < stop)
                true, false = known & inside, known & ~inside
                return Truth(false, true, failed) if op == "<>" else Truth(true, false, failed)

            return at_time
        case Combination("not", args):
            inner = _bind(args[0], results, points)
            return lambda at: _negated(inner(at))
        case Combination(op, args):
            parts = [_bind(arg, results, points) for arg in args]
            return lambda at: _combine(op, [part(at) for part in parts])


def _failed(result: Result) -> Mask | None:
    if result.failures is None:
        return None
    failed = np.zeros(len(result.values), np.bool_)
    failed[result.failures.rows] = True
    return failed


def _negated(truth: Truth) -> Truth:
    return Truth(truth.false, truth.true, truth.failed)


def _combine(op: str, truths: list[Truth]) -> Truth:
    """AND is true where all are true, and false where any is false, even if others fail. OR is the mirror image."""
    gather_true, gather_false = (np.logical_and, np.logical_or) if op == "and" else (np.logical_or, np.logical_and)
    true: Mask = gather_true.reduce([truth.true for truth in truths])
    false: Mask = gather_false.reduce([truth.false for truth in truths])
    failures = [truth.failed for truth in truths if truth.failed is not None]
    decided = false if op == "and" else true
    return Truth(true, false, np.logical_or.reduce(failures) & ~decided if failures else None)


def _interval(op: str, bound: pa.Array) -> tuple[Ints, Ints, Mask]:
    """The times `[start, stop)` at which `mz_now() op bound` is true (`<>`: false), and the rows with a known bound."""
    ceiling, after = _whole_times(bound)
    everything = np.full(len(bound), MINIMUM), np.full(len(bound), MAXIMUM)
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
        case _:  # "=" and "<>"; empty if the bound is between two times
            return ceiling, after, known


def _whole_times(bound: pa.Array) -> tuple[Ints, Ints]:
    """The least time `>= bound` and the least time `> bound`. Times beyond int64 become its least or greatest value."""
    kind = bound.type
    if pt.is_decimal(kind):
        wide = bound.cast(pa.decimal256(76, kind.scale))  # rounding up may need one more digit
        floor, ceiling = (_saturated(f(wide)) for f in (pc.floor, pc.ceil))
    elif pt.is_timestamp(kind):
        micros = _int64(bound)
        floor, ceiling = micros // _US_PER_MS, -(-micros // _US_PER_MS)
    elif pt.is_date(kind):
        floor = ceiling = _int64(bound.cast(pa.int32())) * _MS_PER_DAY
    else:
        floor = ceiling = _int64(bound)
    return ceiling, np.where(floor == MAXIMUM, MAXIMUM, floor + (floor != MAXIMUM))


def _int64(column: pa.Array) -> Ints:
    values: Any = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return np.asarray(values, np.int64)


def _saturated(column: pa.Array) -> Ints:
    wide = pa.decimal256(76, 0)
    whole = column.cast(wide)
    low, high = (pa.scalar(value).cast(wide) for value in (int(MINIMUM), int(MAXIMUM)))
    return _int64(pc.if_else(pc.less(whole, low), low, pc.if_else(pc.greater(whole, high), high, whole)))

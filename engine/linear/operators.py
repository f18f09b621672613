"""Executes linear operators: the steps of `planner.linear` on batches of updates.

Linear law. An update `(row, time, diff)` yields `(row2, max(time, time2), diff * diff2)` for each
`(row2, time2, diff2)` of the operator's logic. Each step is a pure function of updates to updates and failing rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from halfjoin.engine.kernels import native
from halfjoin.engine.linear.copies import apart
from halfjoin.engine.linear.evaluate import evaluate_all, expect
from halfjoin.engine.linear.failures import Errors
from halfjoin.engine.linear.needed import needed_after
from halfjoin.engine.linear.tables import Registry, ordinality, table_function
from halfjoin.engine.linear.temporal import temporal_filter
from halfjoin.engine.scalar import arrow_type, compile
from halfjoin.engine.scalar.bounds import sizes
from halfjoin.engine.scalar.threshold import threshold_of
from halfjoin.engine.updates.updates import ARRAY_BYTES, TOO_LONG, Updates, product
from halfjoin.errors import DataError
from halfjoin.planner.fallibility import explode_fallible, step_fallible
from halfjoin.planner.linear import Explode, Extend, Filter, Keep, Linear, Reports, Step, Temporal
from halfjoin.sql.expr import Column, Expr, conjunction
from halfjoin.sql.functions import fallible, render
from halfjoin.sql.functions.chance import draws

Operator = Callable[[Updates, Errors], Updates]


@dataclass(frozen=True, slots=True)
class LinearOperator:
    """A compiled `Linear`. A call appends errors to its list, or drops them if `reports` is None.

    `reports` is also None if no step can fail.
    """

    steps: tuple[Operator, ...]
    reports: Reports | None
    spec: Linear

    def __call__(self, updates: Updates, errors: list[Updates]) -> Updates:
        """The output updates, not consolidated."""
        if not self.steps:
            return updates
        sink = Errors(errors, self.reports)
        for step in self.steps:
            if not len(updates.time):
                break
            updates = step(updates, sink)
        return updates


def compile_linear(spec: Linear, registry: Registry) -> LinearOperator:
    """Make a linear operator executable. `registry` has the user's table functions."""
    reports, steps = spec.reports if any(map(step_fallible, spec.steps)) else None, list[Operator]()
    needed = needed_after(spec.steps, reports)
    for number, step in enumerate(spec.steps):
        before, then = spec.steps[number - 1 : number], spec.steps[number + 1 : number + 2]
        following = then[0] if then else None
        if _draws(step):
            steps.append(apart)
        if isinstance(step, Keep) and before and isinstance(before[0], Extend):
            steps[-1] = _projection(before[0], step)
        else:
            steps.append(_compile_step(step, following, needed[number], registry))
    return LinearOperator(tuple(steps), reports, spec)


def _draws(step: Step) -> bool:
    match step:
        case Filter(exprs) | Explode(args=exprs):
            return any(map(draws, exprs))
        case Extend(items):
            return any(draws(expr) for _, expr in items)
        case _:
            return False


def _compile_step(step: Step, then: Step | None, needed: frozenset[str] | None, registry: Registry) -> Operator:
    match step:
        case Filter(predicates):
            return _filter(predicates, needed)
        case Extend(items):
            return _extend(items)
        case Keep(columns):
            return lambda updates, _: updates.select(columns)
        case Explode():
            return _explode(step, then.columns if isinstance(then, Keep) else None, registry)
        case Temporal(formula):
            return temporal_filter(formula)


def _filter(predicates: tuple[Expr, ...], needed: frozenset[str] | None) -> Operator:
    """Evaluate infallible predicates first. The others see only the rows that are left.

    A row is an error only if some predicate fails and no predicate is false, whatever their order. The last predicate
    copies only columns that are `needed` (None: all).
    """
    found = [(predicate, threshold_of(predicate)) for predicate in predicates]
    tests = [test for _, test in found if test is not None]
    failing = [test is None and fallible(predicate) for predicate, test in found]  # a comparison cannot fail
    risky = conjunction(tuple(predicate for predicate, fails in zip(predicates, failing, strict=True) if fails))
    last = compile(risky) if any(failing) else None
    others = [compile(one) for (one, test), fails in zip(found, failing, strict=True) if test is None and not fails]
    safe = cache(lambda: [compile(one) for one, fails in zip(predicates, failing, strict=True) if not fails])
    names, constants = [test.column for test in tests], [test.constant for test in tests]
    allowed = tuple(test.allowed for test in tests)

    def run(updates: Updates, errors: Errors) -> Updates:
        wanted = None if needed is None else [name for name in updates.columns if name in needed]
        early = wanted if last is None and not others else None
        left = updates.meeting(names, constants, allowed, early) if tests and native.on else None
        waiting, updates = (safe(), updates) if left is None else (others, left)
        for number, scalar in enumerate(waiting, 1):
            if not len(updates):
                return updates
            result = scalar.evaluate(updates.columns, len(updates))
            expect(result, scalar.expr)
            updates = updates.where(result.values, wanted if last is None and number == len(waiting) else None)
        if last is not None and len(updates):
            result = last.evaluate(updates.columns, len(updates))
            if result.failures is not None:
                errors.report(updates, result.failures.rows, result.failures.messages, risky)
            updates = updates.where(result.values, wanted)
        return updates

    return run


def _extend(items: tuple[tuple[Column, Expr], ...], kept: Sequence[str] | None = None) -> Operator:
    """Add computed columns. A row for which one fails is dropped; it is one error, by the first that fails. Only
    columns `kept` by the next step (None: all) go on.

    -0.0 becomes 0.0: rows with the two zeros are equal, so later expressions must not tell them apart.
    """
    names = [column.name for column, _ in items]
    scalars = [(compile(expr), expr) for _, expr in items]
    floats = [number for number, (scalar, _) in enumerate(scalars) if pt.is_floating(scalar.arrow_type)]

    def run(updates: Updates, errors: Errors) -> Updates:
        values, updates = evaluate_all(scalars, updates, errors)
        for number in floats:
            values[number] = pc.add(values[number], pa.scalar(0.0, values[number].type))
        columns = dict(updates.columns)
        columns.update(zip(names, values, strict=True))
        if kept is not None:
            columns = {name: columns[name] for name in kept}
        return Updates(columns, updates.time, updates.diff)

    return run


def _renames(step: Extend) -> bool:
    """Whether a step gives columns other names, and computes nothing. Of floats it computes one zero."""
    return all(isinstance(expr, Column) and not pt.is_floating(arrow_type(column.type)) for column, expr in step.items)


def _projection(step: Extend, keep: Keep) -> Operator:
    """Both steps at once. If the first one only renames columns of the types that the names stand for, columns are the
    same arrays."""
    extend = _extend(step.items, keep.columns)
    if not _renames(step):
        return extend
    source = {column.name: expr.name for column, expr in step.items if isinstance(expr, Column)}
    types = [(source[column.name], arrow_type(column.type)) for column, _ in step.items if column.name in keep.columns]
    pairs = [(name, source.get(name, name)) for name in keep.columns]

    def run(updates: Updates, errors: Errors) -> Updates:
        columns = updates.columns
        for name, kind in types:
            if columns[name].type != kind:
                return extend(updates, errors)
        return Updates({new: columns[name] for new, name in pairs}, updates.time, updates.diff)

    return run


def _explode(step: Explode, kept: tuple[str, ...] | None, registry: Registry) -> Operator:
    """Repeat each row per result. Only columns `kept` by the next step (None: all) are repeated: texts may be long."""
    function = table_function(step, registry)
    scalars = [(compile(arg), arg) for arg in step.args]
    call = step.call  # only for error texts
    names, fails = [column.name for column in step.outputs], explode_fallible(step)

    def run(updates: Updates, errors: Errors) -> Updates:
        arguments, updates = evaluate_all(scalars, updates, errors)
        made = function(arguments, len(updates))
        if made.failed is not None:
            if not fails:
                raise DataError(f"{made.messages[0]} in {render(call)}")
            errors.report(updates, made.failed, made.messages, call)
        if kept is not None:
            updates = updates.select(name for name in updates.columns if name in kept)
        for column in updates.columns.values():
            if column.nbytes * len(made.rows) > ARRAY_BYTES and float(sizes(column)[made.rows].sum()) > ARRAY_BYTES:
                raise DataError(f"{TOO_LONG}, once for each result, in {render(call)}")
        repeated = updates.take(made.rows)
        columns = dict(zip(names, made.columns, strict=True))
        if step.ordinality is not None:
            columns[step.ordinality.name] = pa.array(ordinality(made.rows))
        time = repeated.time if made.time is None else np.maximum(repeated.time, made.time)
        diff = repeated.diff if made.diff is None else product(repeated.diff, made.diff)
        return Updates({**repeated.columns, **columns}, time, diff)

    return run

"""Compiled stages of a path: filters on partners alone run before rows are joined."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.engine.join.half_join import HalfJoinOperator, compile_half_join
from halfjoin.engine.linear.operators import LinearOperator, compile_linear
from halfjoin.engine.linear.tables import Registry
from halfjoin.planner.linear import Filter, Keep, Linear, Step
from halfjoin.planner.liveness import makes, reads
from halfjoin.planner.plan import Stage
from halfjoin.sql.expr import Expr, columns_of
from halfjoin.sql.functions import fallible


def compile_stage(stage: Stage, registry: Registry) -> tuple[HalfJoinOperator, LinearOperator]:
    """The half-join, which makes no row or column that the next steps would drop, and the rest of those steps.

    Filters come first in a linear operator, so no other step sees a row that a filter drops. A filter that may fail
    stays in its place.
    """
    fetched = {name for _, name in stage.half_join.fetch}
    left, asked = _split(stage.then.steps, fetched)
    steps, wanted = _without_unused(left)
    half_join = compile_half_join(stage.half_join, registry, asked, wanted)
    return half_join, compile_linear(Linear(steps, stage.then.reports), registry)


def _split(steps: Sequence[Step], fetched: set[str]) -> tuple[list[Step], list[Expr]]:
    """The steps, and apart from them the predicates of leading filters that read only fetched columns."""
    left: list[Step] = []
    asked: list[Expr] = []
    for number, step in enumerate(steps):
        match step:
            case Filter(predicates):
                mine = [p for p in predicates if not fallible(p) and columns_of(p) <= fetched]
                asked += mine
                rest = tuple(predicate for predicate in predicates if predicate not in mine)
                left += [Filter(rest)] if rest else []
            case Keep():
                left.append(step)
            case _:
                return [*left, *steps[number:]], asked
    return left, asked


def _without_unused(steps: Sequence[Step]) -> tuple[tuple[Step, ...], frozenset[str] | None]:
    """The steps without columns that only moved predicates needed; and the columns that they need (None: all)."""
    needed: frozenset[str] | None = None
    pruned: list[Step] = []
    for step in reversed(steps):
        if isinstance(step, Keep):
            pruned.append(Keep(tuple(name for name in step.columns if needed is None or name in needed)))
            needed = reads(pruned[-1])
        else:
            pruned.append(step)
            needed = None if needed is None else (needed - frozenset(makes(step))) | reads(step)
    return tuple(reversed(pruned)), needed

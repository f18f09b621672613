"""Compiled stages of a path: filters on partners alone run before rows are joined."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.engine.join.compared import compared_of
from halfjoin.engine.join.half_join import HalfJoinOperator, compile_half_join
from halfjoin.engine.linear.operators import LinearOperator, compile_linear
from halfjoin.engine.linear.tables import Registry
from halfjoin.planner.linear import Keep, Linear, Step
from halfjoin.planner.liveness import makes, reads
from halfjoin.planner.plan import Stage
from halfjoin.planner.wants import leading, want_of


def compile_stage(
    stage: Stage, registry: Registry, names: Sequence[str] = (), later: Sequence[Stage] = (),
    final: Linear | None = None,
) -> tuple[HalfJoinOperator, LinearOperator]:  # fmt: skip
    """The half-join, which makes no row or column that the next steps would drop, and the rest of those steps.

    `names`: the columns of the rows that come. `later`, `final`: the stages and the operator that follow, if known.

    Filters come first in a linear operator, so no other step sees a row that a filter drops. A filter that may fail
    stays in its place.
    """
    fetched = {name for _, name in stage.half_join.fetch}
    left, asked = leading(stage.then.steps, fetched)
    steps, wanted = _without_unused(left)
    compared = compared_of(stage.half_join, names, left, later, final)
    half_join = compile_half_join(
        stage.half_join, registry, asked, wanted, frozenset((want_of(stage),)), compared=compared
    )
    return half_join, compile_linear(Linear(steps, stage.then.reports), registry)


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
    while pruned and isinstance(pruned[-1], Keep):  # the lookup makes no other columns
        pruned.pop()
    return tuple(reversed(pruned)), needed

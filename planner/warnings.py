"""What the author of a view should know about its cost: cross products, and indexes larger than what is looked for."""

from __future__ import annotations

from halfjoin.planner.linear import Filter, Linear, Step
from halfjoin.planner.liveness import reads
from halfjoin.planner.plan import HalfJoin, ViewPlan
from halfjoin.sql.expr import Expr
from halfjoin.sql.functions import fallible, render


def warnings(plan: ViewPlan) -> tuple[str, ...]:
    """The warnings, each once, in the order of the paths."""
    found: dict[str, None] = {}
    for branch in plan.branches:
        for path in branch.paths:
            for stage in path.stages:
                for text in (*_cross_product(path.alias, stage.half_join), *_filtered(stage.half_join, stage.then)):
                    found[text] = None
    return tuple(found)


def _cross_product(changed: str, half_join: HalfJoin) -> list[str]:
    if half_join.arrangement.keys or half_join.arrangement.collection.startswith("="):
        return []
    return [
        f"a change of {changed} is combined with every row of {half_join.alias}: no equality joins them (cross product)"
    ]


def _filtered(half_join: HalfJoin, then: Linear) -> list[str]:
    """An index holds all rows of a collection, also those that a filter of this input throws away."""
    if half_join.arrangement.collection.startswith("="):
        return []
    own = {name for _, name in half_join.fetch}
    predicates = [render(p) for step in then.steps for p in _predicates(step) if reads(Filter((p,))) <= own]
    if not predicates:
        return []
    return [
        f"{half_join.alias} is filtered by {' AND '.join(predicates)}, but arranged whole: a materialized view of the "
        "filtered rows would make the arrangement smaller"
    ]


def _predicates(step: Step) -> list[Expr]:
    return [p for p in step.predicates if not fallible(p)] if isinstance(step, Filter) else []

"""Warns the author of a view about its cost: cross products, and indexes much larger than what the view looks for."""

from __future__ import annotations

from collections.abc import Iterator

from halfjoin.planner.estimates import Estimates
from halfjoin.planner.failing_rows import ordinary
from halfjoin.planner.linear import Filter
from halfjoin.planner.liveness import reads
from halfjoin.planner.names import arrangement_name
from halfjoin.planner.plan import InputKind, Join, Stage
from halfjoin.planner.wants import ALL, wants
from halfjoin.sql.functions import render

_SMALL = 1000  # rows; the size of an index on fewer does not matter


def warnings(join: Join, estimates: Estimates) -> tuple[str, ...]:
    """The warnings, each once, in the order of the paths."""
    found: dict[str, None] = {}
    looked_for = wants(join)
    for branch in join.branches:
        for path in branch.paths:
            for stage in ordinary(path):
                asks = stage.half_join.kind is not InputKind.PLAIN  # present, absent or padded
                if stage.half_join.arrangement.constant is None and not asks:
                    found |= dict.fromkeys(_cross_product(path.alias, stage))
                    whole = looked_for[stage.half_join.arrangement] == ALL
                    if whole and stage.half_join.arrangement.collection not in estimates.nodes:
                        found |= dict.fromkeys(_filtered(stage, estimates))
    return tuple(found)


def _cross_product(changed: str, stage: Stage) -> Iterator[str]:
    if not stage.half_join.arrangement.keys:
        alias = stage.half_join.alias
        yield f"a change of {changed} meets every row of {alias}: no equality joins them (cross product)"


def _filtered(stage: Stage, estimates: Estimates) -> Iterator[str]:
    """Warn of an index made for this view that also holds all the rows that the view filters out: where a filter may
    fail, or where the view looks for them elsewhere."""
    key = stage.half_join.arrangement
    if not key.keys or estimates.exists(key) or (estimates.is_known(key.collection)
                                                 and estimates.rows(key.collection) < _SMALL):  # fmt: skip
        return
    own = {name for _, name in stage.half_join.fetch}
    steps = (step for step in stage.then.steps if isinstance(step, Filter))
    predicates = [p for step in steps for p in step.predicates if reads(Filter((p,))) <= own]
    if predicates:
        asked = " AND ".join(map(render, predicates))
        yield (
            f"{arrangement_name(key)} holds every row of {key.collection}, though {asked} is asked for: "
            "a materialized view of those rows would be smaller"
        )

"""Estimates what a change of one row costs: the lookups of its path, and the rows that they find."""

from __future__ import annotations

from dataclasses import dataclass

from halfjoin.planner.estimates import Estimates, selectivity
from halfjoin.planner.plan import InputKind, Path


@dataclass(frozen=True, slots=True)
class StageCost:
    """One half-join, per changed row: lookups made, rows found, rows left after the steps that follow it."""

    lookups: float
    found: float
    left: float


@dataclass(frozen=True, slots=True)
class PathCost:
    """A path, per changed row."""

    stages: tuple[StageCost, ...]
    lookups: float  # of all stages, plus 1 for the changed row itself
    found: float
    results: float


def path_cost(path: Path, estimates: Estimates) -> PathCost:
    """Expected work for one changed row of the path's input."""
    size = selectivity(path.source)
    sources = {path.alias: path.collection}
    stages = []
    for stage in path.stages:
        half_join = stage.half_join
        found = size * estimates.fan_out(half_join.arrangement, half_join.probe, sources)
        asked = half_join.kind in (InputKind.PRESENT, InputKind.ABSENT)  # they give a row once, however many they find
        left = (min(size, found) if asked else found) * selectivity(stage.then)
        stages.append(StageCost(size, found, left))
        sources[half_join.alias] = half_join.arrangement.collection
        size = left
    return PathCost(
        tuple(stages), 1.0 + sum(stage.lookups for stage in stages), sum(stage.found for stage in stages), size
    )

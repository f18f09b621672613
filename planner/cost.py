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


def share_of_source(path: Path, estimates: Estimates) -> float:
    """The estimated share of the input's rows that pass its own conditions."""
    return selectivity(path.source, estimates.values(_columns_of_source(path)))


def _columns_of_source(path: Path) -> dict[str, tuple[str, str]]:
    """For each column of the changed rows, the collection and its name there."""
    return {name: (path.collection, column) for column, name in path.fetch}


def path_cost(path: Path, estimates: Estimates) -> PathCost:
    """Expected work for one changed row of the path's input."""
    columns = _columns_of_source(path)
    values, size = estimates.values(columns), share_of_source(path, estimates)
    sources = {path.alias: path.collection}
    stages = []
    for stage in path.stages:
        half_join = stage.half_join
        columns.update((name, (half_join.arrangement.collection, column)) for column, name in half_join.fetch)
        found = size * estimates.fan_out(half_join.arrangement, half_join.probe, sources)
        asked = half_join.kind in (InputKind.PRESENT, InputKind.ABSENT)  # they give a row once, however many they find
        left = (min(size, found) if asked else found) * selectivity(stage.then, values)
        stages.append(StageCost(size, found, left))
        sources[half_join.alias] = half_join.arrangement.collection
        size = left
    return PathCost(
        tuple(stages), 1.0 + sum(stage.lookups for stage in stages), sum(stage.found for stage in stages), size
    )

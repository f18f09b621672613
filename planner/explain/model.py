"""What an explanation says, before it is laid out: the paths, their lookups, the arrangements, the expected cost."""

from __future__ import annotations

from dataclasses import dataclass

from halfjoin.catalog.facts import Facts
from halfjoin.planner.cost import StageCost, path_cost
from halfjoin.planner.estimates import Estimates
from halfjoin.planner.explain.names import arrangement_name, collection_name
from halfjoin.planner.explain.steps import Words
from halfjoin.planner.plan import ArrangementKey, Branch, Path, Stage, Version, ViewPlan


@dataclass(frozen=True, slots=True)
class Arrangement:
    """An index that lookups use. `state`: "existing", "new" (made with the view),
    "constant" (rows of VALUES) or "whole" (all rows are read, so there is no index).
    """

    name: str
    state: str
    unique: bool
    shared_with: tuple[str, ...]

    @property
    def text(self) -> str:
        """`existing, unique, shared with v1, v2`."""
        words = [self.state, *(["unique"] if self.unique else [])]
        return ", ".join([*words, *([f"shared with {', '.join(self.shared_with)}"] if self.shared_with else [])])


@dataclass(frozen=True, slots=True)
class Lookup:
    """One half-join. `lookups`, `found` and `left` are expected numbers of rows for each changed row of the path."""

    input: str
    arrangement: Arrangement
    by: tuple[str, ...]  # what the key is looked up by, in the order of the key; empty for a cross product
    candidates: bool  # rows found are candidates, which the steps check
    after: bool  # with the batch's own changes of the input, or before them
    fetch: tuple[str, ...]
    steps: tuple[str, ...]
    lookups: float
    found: float
    left: float


@dataclass(frozen=True, slots=True)
class PathModel:
    """How a change of one input becomes changes of the view."""

    input: str
    collection: str
    constant: bool  # never changes, so the path only ever fills
    fills: bool
    source: tuple[str, ...]
    lookups: tuple[Lookup, ...]
    final: tuple[str, ...]
    expected_lookups: float
    expected_found: float
    expected_results: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """A view's plan in words and numbers."""

    name: str
    columns: tuple[tuple[str, str], ...]  # name, type
    joins: tuple[tuple[PathModel, ...], ...]
    arrangements: tuple[Arrangement, ...]
    warnings: tuple[str, ...]


def explanation(plan: ViewPlan, facts: Facts, name: str) -> Explanation:
    """What there is to say about the plan of view `name`; sizes and sharing are as of now."""
    estimates = Estimates(facts, {constant.name: len(constant.rows) for constant in plan.constants}, name)
    keys = sorted((key for key in plan.arrangements if key.keys), key=arrangement_name)
    return Explanation(
        name,
        tuple((column.name, str(column.type)) for column in plan.columns),
        tuple(_join(branch, estimates, name) for branch in plan.branches),
        tuple(_arrangement(key, estimates, name) for key in keys),
        plan.warnings,
    )


def _join(branch: Branch, estimates: Estimates, name: str) -> tuple[PathModel, ...]:
    """The paths that something ever runs: a constant's only if it fills the view."""
    return tuple(
        _path(path, position == branch.fill, estimates, name)
        for position, path in enumerate(branch.paths)
        if position == branch.fill or path.collection not in estimates.constants
    )


def _path(path: Path, fills: bool, estimates: Estimates, name: str) -> PathModel:
    cost, words = path_cost(path, estimates), Words()
    stages = zip(path.stages, cost.stages, strict=True)
    return PathModel(
        path.alias,
        collection_name(path.collection),
        path.collection in estimates.constants,
        fills,
        words.operator(path.source),
        tuple(_lookup(stage, part, words, estimates, name) for stage, part in stages),
        words.operator(path.final, "give"),
        sum(stage.lookups for stage in cost.stages),
        cost.found,
        cost.results,
    )


def _lookup(stage: Stage, cost: StageCost, words: Words, estimates: Estimates, name: str) -> Lookup:
    half_join = stage.half_join
    return Lookup(
        half_join.alias,
        _arrangement(half_join.arrangement, estimates, name),
        tuple(map(words.expr, half_join.probe)),
        half_join.arrangement.through is not None,
        half_join.version is Version.AFTER,
        tuple(name for _, name in half_join.fetch),
        words.operator(stage.then),
        cost.lookups,
        cost.found,
        cost.left,
    )


def _arrangement(key: ArrangementKey, estimates: Estimates, name: str) -> Arrangement:
    if key.collection in estimates.constants:
        return Arrangement(arrangement_name(key), "constant", False, ())
    if not key.keys:
        return Arrangement(arrangement_name(key), "whole", False, ())
    users = estimates.facts.users(key)
    others = tuple(sorted(user for user in users or () if user != name))
    state = "new" if users is None else "existing"
    return Arrangement(arrangement_name(key), state, estimates.is_unique(key), others)

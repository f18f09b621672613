"""The contents of an explanation, before layout: the paths, their lookups, the arrangements, the expected cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from halfjoin.planner.cost import StageCost, path_cost
from halfjoin.planner.estimates import Estimates
from halfjoin.planner.explain.reduces import reduce_steps
from halfjoin.planner.explain.steps import Words, call_text
from halfjoin.planner.explain.wanted import in_words
from halfjoin.planner.facts import Facts, Kept
from halfjoin.planner.linear import Explode
from halfjoin.planner.names import arrangement_name, collection_name, input_name
from halfjoin.planner.plan import ArrangementKey, Branch, Join, Node, Path, Reduce, Stage, Version, ViewPlan
from halfjoin.planner.wants import ALL, Wants, all_wants
from halfjoin.sql.functions import render

_SHOWN = 12  # rounds


@dataclass(frozen=True, slots=True)
class Arrangement:
    """An index that lookups use. `state`: "existing", "new" (made with the view),
    "constant" (rows of VALUES, or of the call `made`) or "whole" (all rows are read, so there is no index). `only`: the
    rows that it has once it is large, as a condition; nothing if it has all rows, or if others share it.
    """

    name: str
    state: str
    unique: bool
    shared_with: tuple[str, ...]
    only: str = ""
    made: str = ""

    @property
    def text(self) -> str:
        """`existing, unique, shared with v1, v2`; `new, once large only rows where x > 5`."""
        words = [self.state, *([f"the rows of {self.made}"] if self.made else []), *(["unique"] if self.unique else [])]
        words += [f"shared with {', '.join(self.shared_with)}"] if self.shared_with else []
        return ", ".join([*words, *([f"once large only rows where {self.only}"] if self.only else [])])


@dataclass(frozen=True, slots=True)
class LookupStep:
    """One half-join. `lookups`, `found` and `left` are expected numbers of rows for each changed row of the path, if
    all rows take the order that is shown. `otherwise` has a line for each other order that begins here."""

    input: str
    kind: str  # how the input is looked up: plain, present, absent or padded (`planner.plan.InputKind`)
    arrangement: Arrangement
    by: tuple[str, ...]  # the probes, in the order of the key; empty for a cross product
    candidates: bool  # rows found are candidates, which the steps check
    after: bool  # True: with the batch's own changes of the input; False: without them
    fetch: tuple[str, ...]
    steps: tuple[str, ...]
    lookups: float
    found: float
    left: float
    otherwise: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """The arrangement's name, after the input's kind unless that is plain."""
        return self.arrangement.name if self.kind == "plain" else f"{self.kind} {self.arrangement.name}"

    @property
    def lines(self) -> tuple[str, ...]:
        """What else rows may look up here, and the steps after the lookup."""
        others = (f"or, for a row with fewer partners there: {order}" for order in self.otherwise)
        return (*others, *self.steps)


@dataclass(frozen=True, slots=True)
class PathModel:
    """How a change of one input becomes changes of the view."""

    input: str
    collection: str
    constant: bool  # the input never changes, so the path can only fill
    fills: bool
    source: tuple[str, ...]
    lookups: tuple[LookupStep, ...]
    final: tuple[str, ...]
    expected_lookups: float
    expected_found: float
    expected_results: float

    @property
    def chooses(self) -> bool:
        """Whether rows may take several orders."""
        return any(lookup.otherwise for lookup in self.lookups)


@dataclass(frozen=True, slots=True)
class BindingModel:
    """A binding of a recursive query, with the user's names: updates and bytes that are kept, and the updates that the
    last batch made in each round. `most`: rounds before it is an error."""

    name: str
    columns: tuple[str, ...]
    most: int | None
    updates: int
    bytes: int
    rounds: tuple[int, ...]

    @property
    def steps(self) -> tuple[str, ...]:
        """Lines that say so."""
        ends = "" if self.most is None else f", at most {self.most:,} rounds"
        lines = (f"the recursive query {self.name} ({', '.join(self.columns)}){ends}",
                 f"keeps {self.updates:,} updates, {self.bytes:,} bytes")  # fmt: skip
        if not self.rounds:
            return lines
        shown = [f"{count:,}" for count in self.rounds[:_SHOWN]]
        more = ", ..." if len(self.rounds) > _SHOWN else ""
        last = f"the last batch made {sum(self.rounds):,} updates in {len(self.rounds):,} rounds: "
        return (*lines, last + ", ".join(shown) + more)


@dataclass(frozen=True, slots=True)
class NodeModel:
    """A node. `joins` describe a join; `steps` say what a reduce or a loop does."""

    name: str
    kind: str  # "join", "reduce" or "loop"
    columns: tuple[tuple[str, str], ...]  # name, type
    joins: tuple[tuple[PathModel, ...], ...]
    steps: tuple[str, ...]
    shared_with: tuple[str, ...]  # other views that use it
    binding: BindingModel | None = None  # set if it is a binding of a recursive query


@dataclass(frozen=True, slots=True)
class Explanation:
    """A view's plan in words and numbers: the node whose output is the view, and the nodes below it, in order."""

    name: str
    columns: tuple[tuple[str, str], ...]  # name, type
    joins: tuple[tuple[PathModel, ...], ...]
    steps: tuple[str, ...]
    nodes: tuple[NodeModel, ...]
    arrangements: tuple[Arrangement, ...]
    warnings: tuple[str, ...]


def explanation(plan: ViewPlan, facts: Facts, name: str) -> Explanation:
    """The explanation of the plan of view `name`, with sizes and sharing as of now."""
    estimates = Estimates(facts, {}, name)
    for node in plan.nodes:
        if isinstance(node, Reduce):
            estimates = estimates.with_node(node.output, estimates.rows(node.input), node.identifying)
    every = dict.fromkeys(key for join in plan.joins for key in join.arrangements if key.keys)
    wanted = all_wants(plan.nodes)
    made = {one.name: call_text(one.made) for join in plan.joins for one in join.constants if one.made is not None}
    (*below, own) = (_node(node, estimates, name) for node in plan.nodes)
    return Explanation(
        name, own.columns, own.joins, own.steps, tuple(below),
        tuple(_arrangement(key, estimates, name, wanted[key], made.get(key.collection, ""))
              for key in sorted(every, key=arrangement_name)),
        plan.warnings,
    )  # fmt: skip


def _node(node: Node, estimates: Estimates, view: str) -> NodeModel:
    columns = tuple((column.name, str(column.type)) for column in node.columns)
    others = tuple(sorted(user for user in estimates.facts.node_users(node.output) if user != view))
    binding = _binding(node, estimates.facts.kept(node.output)) if node.named else None
    told = () if binding is None else binding.steps
    match node:
        case Join(name, _, branches):
            estimates = estimates.with_constants(node.constants)
            made = {one.name: one.made for one in node.constants}
            joins = tuple(_join(branch, estimates, view, made) for branch in branches)
            return NodeModel(name, "join", columns, joins, told, others, binding)
        case Reduce(name, _, input, keys, function):
            by = f"by {', '.join(map(render, keys))}" if keys else "as one group"
            lines = (*told, f"reduce {input} {by}", *reduce_steps(function))
            return NodeModel(name, "reduce", columns, (), lines, others, binding)


def _binding(node: Node, kept: Kept | None) -> BindingModel:
    name, *columns = node.named
    kept = Kept(0, 0) if kept is None else kept
    most = None if node.last is None else node.last + 1
    return BindingModel(name, tuple(columns), most, kept.updates, kept.bytes, kept.rounds)


def _join(branch: Branch, estimates: Estimates, name: str, made: Mapping[str, Explode | None]) -> tuple[PathModel, ...]:
    """The paths that can run. A constant's path runs only if it fills the view."""
    return tuple(
        _path(path, position == branch.fill, estimates, name, made.get(path.collection))
        for position, path in enumerate(branch.paths)
        if position == branch.fill or not path.constant
    )


def _path(path: Path, fills: bool, estimates: Estimates, name: str, made: Explode | None) -> PathModel:
    cost, words = path_cost(path, estimates), Words()
    stages = zip(path.stages, cost.stages, strict=True)
    return PathModel(
        input_name(path.alias, path.collection),
        collection_name(path.collection, path.alias if path.constant else None),
        path.constant,
        fills,
        (*([] if made is None else [f"the rows of {call_text(made)}"]), *words.operator(path.source)),
        tuple(_lookup(stage, part, words, estimates, name) for stage, part in stages),
        words.operator(path.final, "give"),
        sum(stage.lookups for stage in cost.stages),
        cost.found,
        cost.results,
    )


def _lookup(stage: Stage, cost: StageCost, words: Words, estimates: Estimates, name: str) -> LookupStep:
    half_join = stage.half_join
    return LookupStep(
        input_name(half_join.alias, half_join.arrangement.collection),
        half_join.kind.value,
        _arrangement(half_join.arrangement, estimates, name),
        tuple(map(words.expr, half_join.probe)),
        half_join.arrangement.through is not None,
        half_join.version is Version.AFTER,
        tuple(name for _, name in half_join.fetch),
        words.operator(stage.then),
        cost.lookups,
        cost.found,
        cost.left,
        tuple(", then ".join(map(partial(_named, words), order)) for order in stage.otherwise),
    )


def _named(words: Words, stage: Stage) -> str:
    """`edge(src) AS e3 by e1.src`."""
    half_join = stage.half_join
    name, own = arrangement_name(half_join.arrangement), input_name(half_join.alias, half_join.arrangement.collection)
    shown = name if name.partition("(")[0] == own else f"{name} AS {own}"
    return f"{shown} by {', '.join(map(words.expr, half_join.probe))}"


def _arrangement(
    key: ArrangementKey, estimates: Estimates, name: str, wants: Wants = ALL, made: str = ""
) -> Arrangement:
    if key.constant is not None:
        return Arrangement(arrangement_name(key), "constant", False, (), made=made)
    if not key.keys:
        return Arrangement(arrangement_name(key), "whole", False, ())
    users = estimates.facts.users(key)
    others = tuple(sorted(user for user in users or () if user != name))
    state = "new" if users is None else "existing"
    only = "" if others else in_words(wants)
    return Arrangement(arrangement_name(key), state, estimates.is_unique(key), others, only)

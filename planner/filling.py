"""Makes no more paths than a query needs: one that fills each join, and those of inputs whose rows may be errors.

A query is filled once, so the paths of the other inputs are never run. Which path costs least is known without them: no
path costs less than to read the rows with which it begins. So the inputs are taken in the order of that, and the rest
is left out as soon as it is more than the whole of the best path so far (branch and bound).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from halfjoin.planner import kinds
from halfjoin.planner.agenda import Agenda
from halfjoin.planner.block import Block, Input, inputs_of
from halfjoin.planner.estimates import Estimates
from halfjoin.planner.fallibility import step_fallible
from halfjoin.planner.known import Arranged, beginning, filling_cost, known_of, known_of_path
from halfjoin.planner.linear import Step
from halfjoin.planner.paths import in_order, path_maker
from halfjoin.planner.plan import ArrangementKey, Branch, InputKind, Join, KnownKeys, Path
from halfjoin.planner.within import narrowed


def filling(
    block: Block, number: int, estimates: Estimates, chosen: set[ArrangementKey], arranged: Arranged,
    own: Collection[str],
) -> Branch:  # fmt: skip
    """As `paths.branch`, of a query. The paths are in the order of their inputs, with the known keys of these. `own`:
    the nodes of the query."""
    steps = {i: _first_steps(block, block.inputs[i]) for i in in_order(block)}
    known: dict[int, KnownKeys | None] = {i: None if item.constant is not None or item.collection in own else
             known_of(item.collection, steps[i], {one.name: item.bare(one.name) for one in item.columns}, estimates,
                      arranged) for i, item in enumerate(block.inputs)}  # fmt: skip
    asking = frozenset[str]().union(*(inputs_of(match.probe, block.owners) for item in block.inputs
                                      if item.kind is InputKind.PRESENT for match in item.on))  # fmt: skip
    plain = [i for i in in_order(block) if block.inputs[i].kind is InputKind.PLAIN]
    begins = {i: beginning(block.inputs[i].collection, known[i], estimates)[1] for i in plain}
    maker, made = path_maker(block, number, estimates, chosen, fills=True), dict[int, Path]()
    paths, costs = dict[int, Path](), dict[int, float]()

    def make(i: int) -> Path:
        return narrowed(maker(i), own, estimates, arranged)

    for i in plain:
        item = block.inputs[i]
        if item.alias in asking and item.constant is None and item.collection not in own:
            made[i] = make(i)
            known[i] = known_of_path(made[i], estimates, arranged)
            begins[i] = beginning(item.collection, known[i], estimates)[1]
    for i in sorted(plain, key=begins.__getitem__):
        if not costs or begins[i] <= min(costs.values()):
            paths[i] = replace(made.get(i) or make(i), known=known[i])
            costs[i] = filling_cost(paths[i], own, estimates)
    for i in in_order(block):
        if i not in paths and any(map(step_fallible, steps[i])):
            paths[i] = replace(make(i), known=known[i])
    best, left = min(costs, key=costs.__getitem__), sorted(paths)
    return Branch(tuple(paths[i] for i in left), left.index(best))


def join_with_known(join: Join, own: Collection[str], estimates: Estimates, arranged: Arranged) -> Join:
    """A kept join, as a query needs it: with the known keys of its inputs. `own`: the nodes of the query."""
    estimates = estimates.with_constants(join.constants)

    def told(path: Path) -> Path:
        path = narrowed(path, own, estimates, arranged)
        asked = not path.constant and path.collection not in own
        return replace(path, known=known_of_path(path, estimates, arranged)) if asked else path

    def branch(one: Branch) -> Branch:
        paths = tuple(map(told, one.paths))
        plain = [number for number, path in enumerate(paths)
                 if path.kind is InputKind.PLAIN and number not in one.whole]  # fmt: skip
        return replace(one, paths=paths, fill=min(plain, key=lambda i: filling_cost(paths[i], own, estimates)))

    return replace(join, branches=tuple(map(branch, join.branches)))


def _first_steps(block: Block, item: Input) -> list[Step]:
    """The steps that an input's rows pass before anything is looked up."""
    return Agenda(block).arrive(item, report=True) if item.kind is InputKind.PLAIN else kinds.source(item)

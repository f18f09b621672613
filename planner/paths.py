"""The delta paths of one join: for each input the order in which a change of it looks up the others.

Delta law. A result tuple is produced once, by the path of the component that arrived last; if several arrived in the
same batch, by the one with the highest number. So path `i` looks input `j < i` up after the batch's updates went in,
and `j > i` before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from halfjoin.planner import identity
from halfjoin.planner.agenda import Agenda
from halfjoin.planner.block import Block, Input
from halfjoin.planner.cost import path_cost
from halfjoin.planner.estimates import Estimates, selectivity
from halfjoin.planner.linear import Linear, Reports, Step
from halfjoin.planner.liveness import Draft, finished
from halfjoin.planner.lookups import Lookup, Lookups
from halfjoin.planner.plan import ArrangementKey, Branch, HalfJoin, Path, Version

_ALIKE = 4.0  # sizes within this factor count as equal, since they are guesses


def branch(block: Block, number: int, estimates: Estimates, chosen: set[ArrangementKey]) -> Branch:
    """One path per input of the view's block with that number.

    `chosen` collects the arrangements of this plan, which later paths prefer. Paths are made in the order of the
    aliases, so that the order in which FROM lists the inputs decides nothing.
    """
    order = sorted(range(len(block.inputs)), key=lambda i: block.inputs[i].alias)
    shares = {item.alias: _share(block, item) for item in block.inputs}
    lookups = Lookups(block, estimates, chosen)
    paths = {i: _path(block, number, i, estimates, lookups, shares) for i in order}
    fill = min(order, key=lambda i: estimates.rows(paths[i].collection) * path_cost(paths[i], estimates).lookups)
    return Branch(tuple(paths[i] for i in range(len(block.inputs))), fill)


def _path(block: Block, branch: int, start: int, estimates: Estimates, lookups: Lookups,
          shares: Mapping[str, float]) -> Path:
    agenda = Agenda(block)
    first = block.inputs[start]
    source = agenda.arrive(first, report=True) + agenda.spread()
    numbers = {item.alias: number for number, item in enumerate(block.inputs)}
    waiting = [item for item in block.inputs if item is not first]
    stages: list[tuple[HalfJoin, Sequence[Step]]] = []
    while waiting:
        best = _best(lookups.ways(agenda, waiting), estimates, shares)
        item, number = best.input, numbers[best.input.alias]
        waiting = [other for other in waiting if other is not item]
        lookups.choose(best.arrangement)
        half_join = HalfJoin(
            number, item.alias, best.arrangement, tuple(pair.probe for pair in best.pairs),
            tuple(pair.null_safe for pair in best.pairs), Version.AFTER if number < start else Version.BEFORE, (),
        )  # fmt: skip
        if best.arrangement.through is None:  # otherwise the rows found are candidates, still to be filtered
            for pair in best.pairs:
                agenda.links.join(pair.equality, pair.member, pair.partner)
        then = agenda.arrive(item, report=False, used=tuple(pair.member for pair in best.pairs)) + agenda.spread()
        stages.append((half_join, then))
    alone, complete = (Reports(branch, tuple(sorted(names)))
                       for names in (identity.of_input(block, first), identity.of_complete_rows(block)))
    draft = Draft(start, source, stages, agenda.finish(), alone, complete)
    return finished(draft, block.inputs, [column.name for column, _ in block.outputs])


def _best(ways: Sequence[Lookup], estimates: Estimates, shares: Mapping[str, float]) -> Lookup:
    """The next input: by a unique key, not a cross product, and finding about as few rows as any other; among those
    one whose arrangement exists, by a longer key, with selective predicates, of fewer rows."""

    def growth(way: Lookup) -> float:
        return way.fan_out * shares[way.input.alias]

    def kind(way: Lookup) -> tuple[bool, bool]:
        return not way.unique, not way.pairs

    first = min(map(kind, ways))
    rivals = [way for way in ways if kind(way) == first]
    least = min(map(growth, rivals))
    rivals = [way for way in rivals if growth(way) <= _ALIKE * least]
    return min(rivals, key=lambda way: (
        not way.exists, -len(way.pairs), shares[way.input.alias], estimates.rows(way.input.collection), way.input.alias,
    ))  # fmt: skip


def _share(block: Block, item: Input) -> float:
    """The share of an input's rows that its own predicates let through."""
    return selectivity(Linear(tuple(Agenda(block).arrive(item, report=False))))

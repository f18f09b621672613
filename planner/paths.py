"""Makes the delta paths of one join: for each input, the order in which a change of it looks up the others.

Delta law. A result tuple is produced once, by the path of the component that arrived last; if several arrived in the
same batch, by the one with the highest number. So path `i` looks input `j < i` up after the batch's updates went in,
and `j > i` before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from halfjoin.planner import identity, kinds
from halfjoin.planner.agenda import Agenda
from halfjoin.planner.block import Block
from halfjoin.planner.choices import Choices, every_stage
from halfjoin.planner.cost import path_cost
from halfjoin.planner.cycles import Links as CycleLinks
from halfjoin.planner.cycles import cyclic
from halfjoin.planner.estimates import Estimates, selectivity
from halfjoin.planner.kinds import PathJoin
from halfjoin.planner.late import computing_late
from halfjoin.planner.linear import Filter, Linear, Reports, Step
from halfjoin.planner.liveness import Draft, DraftStage, finished
from halfjoin.planner.lookups import Lookups, LookupWay
from halfjoin.planner.plan import ArrangementKey, Branch, HalfJoin, InputKind, Path, Version

_ALIKE = 4.0  # sizes within this factor count as equal, since they are guesses


def branch(block: Block, number: int, estimates: Estimates, chosen: set[ArrangementKey]) -> Branch:
    """One path per input of the block. `number` is the block's number in the view.

    `chosen` collects the arrangements of this plan, and later paths prefer them. Paths are made in the order of the
    aliases, so the order of the inputs in FROM decides nothing.

    Raises:
        UnsupportedSQL: see `kinds.check`.
    """
    make = path_maker(block, number, estimates, chosen)
    plain = [i for i in in_order(block) if block.inputs[i].kind is InputKind.PLAIN]
    paths = {i: make(i) for i in in_order(block)}
    fill = min(plain, key=lambda i: estimates.rows(paths[i].collection) * path_cost(paths[i], estimates).lookups)
    return Branch(tuple(paths[i] for i in range(len(block.inputs))), fill)


def in_order(block: Block) -> list[int]:
    """The numbers of the inputs in the order of their aliases."""
    return sorted(range(len(block.inputs)), key=lambda i: block.inputs[i].alias)


def path_maker(
    block: Block, number: int, estimates: Estimates, chosen: set[ArrangementKey], *, fills: bool = False,
    part_of: Block | None = None,
) -> Callable[[int], Path]:  # fmt: skip
    """What makes the path of an input, given its number; the rest is as in `branch`. `fills`: of a query, whose paths
    take all rows of an input, and not changes of it. `part_of`: the block makes some of the rows of this one, and tells
    failing rows apart as that does."""
    kinds.check(block)
    shares, seen = _Shares(block, estimates), _seen(PathJoin(block), estimates, chosen)

    def make(i: int) -> Path:
        plain = block.inputs[i].kind is InputKind.PLAIN
        own = seen if plain else _seen(kinds.seen_from(block, block.inputs[i]), estimates, chosen)
        return _path(block, own, number, i, estimates, shares, fills=fills, apart=part_of or block)

    return make


class _Seen(NamedTuple):
    """What paths see of a block: all paths from plain inputs see the same."""

    join: PathJoin
    lookups: Lookups
    cycles: Mapping[str, CycleLinks]


def _seen(join: PathJoin, estimates: Estimates, chosen: set[ArrangementKey]) -> _Seen:
    return _Seen(join, Lookups(join.block, estimates, chosen), cyclic(join.block, join.is_plain, estimates))


def _path(block: Block, seen: _Seen, branch: int, start: int, estimates: Estimates, shares: Mapping[str, float], *,
          fills: bool, apart: Block) -> Path:
    view, lookups = seen.join, seen.lookups
    agenda = Agenda(view.block)
    first = view.block.inputs[start]
    source = agenda.arrive(first, report=True)
    then = agenda.spread()
    appearing = None
    if first.kind is not InputKind.PLAIN:
        source, appearing = kinds.source(block.inputs[start]), (kinds.asked(block.inputs[start], start), then)
    numbers = {item.alias: number for number, item in enumerate(block.inputs)}

    def take(agenda: Agenda, way: LookupWay) -> DraftStage:
        half_join = _half_join(way, numbers[way.input.alias], start)
        if way.arrangement.through is None:  # otherwise the rows found are candidates, still to be filtered
            for pair in way.pairs:
                agenda.links.join(pair.equality, pair.member, pair.partner)
        after: list[Step] = [Filter(way.input.conditions)] if way.input.conditions else []
        after += agenda.arrive(way.input, report=False, used=tuple(pair.member for pair in way.pairs))
        return DraftStage(half_join, after + agenda.spread(), unique=way.unique)

    def best(ways: Sequence[LookupWay]) -> LookupWay:
        return _best(ways, estimates, shares)

    def drops(way: LookupWay) -> bool:
        """Whether a lookup of one row drops some of all rows, by conditions on it: it costs less than to ask for keys.
        """
        return fills and way.unique and shares[way.input.alias] < 1

    choices = Choices(seen.cycles, lookups, estimates, take, best)
    stages: list[DraftStage] = []
    while len(agenda.bound) < len(numbers):
        waiting = [item for item in view.block.inputs if item.alias not in agenda.bound]
        ready = [item for item in waiting if not view.is_plain(item) and kinds.is_ready(agenda, item)]
        ways = lookups.ways(agenda, filter(view.is_plain, waiting)) if fills or not ready else []
        way = best(ways) if ways else None
        if ready and (way is None or not drops(way)):  # those that may drop a row come first
            item = min(ready, key=lambda item: (item.kind is InputKind.PADDED, item.alias))
            half_join = kinds.looked_up(agenda, item, numbers[item.alias], _version(numbers[item.alias], start))
            found = [DraftStage(half_join, agenda.arrive(item, report=False) + agenda.spread())]
        else:
            assert way is not None
            chosen = choices.stages(agenda, waiting) if way.input.alias in choices.links and not way.unique else None
            if chosen is None:
                found = [take(agenda, way)]
            else:
                found, agenda = chosen
        for stage in every_stage(found):
            lookups.choose(stage.half_join.arrangement)
        stages += found
    alone, complete = (Reports(branch, tuple(sorted(names))) for names in (
        identity.of_input(apart, apart.inputs[start]), identity.of_complete_rows(apart)))  # fmt: skip
    draft = Draft(start, source if appearing else source + then, stages, agenda.finish(), alone, complete, appearing,
                  block.dares)
    return finished(computing_late(draft), block.inputs, [column.name for column, _ in block.outputs])


def _half_join(way: LookupWay, number: int, start: int) -> HalfJoin:
    """The half-join of an input that this path looks up as a plain one, still without `fetch`."""
    probe, null_safe = tuple(pair.probe for pair in way.pairs), tuple(pair.null_safe for pair in way.pairs)
    return HalfJoin(number, way.input.alias, way.arrangement, probe, null_safe, _version(number, start), ())


def _version(number: int, start: int) -> Version:
    return Version.AFTER if number < start else Version.BEFORE


def _best(ways: Sequence[LookupWay], estimates: Estimates, shares: Mapping[str, float]) -> LookupWay:
    """The input to look up next: by a unique key, not a cross product, finding about as few rows as any other. Among
    those: an existing arrangement, a longer key, more selective predicates, fewer rows."""

    if len(ways) == 1:
        return ways[0]

    def growth(way: LookupWay) -> float:
        return way.fan_out * shares[way.input.alias]

    def kind(way: LookupWay) -> tuple[bool, bool]:
        return not way.unique, not way.pairs

    first = min(map(kind, ways))
    rivals = [way for way in ways if kind(way) == first]
    least = min(map(growth, rivals))
    rivals = [way for way in rivals if growth(way) <= _ALIKE * least]
    return min(rivals, key=lambda way: (
        not way.exists, -len(way.pairs), shares[way.input.alias], estimates.rows(way.input.collection), way.input.alias,
    ))  # fmt: skip


class _Shares(dict[str, float]):
    """The share of each input's rows that its own predicates let through, by its alias; computed when it is asked for.
    """

    def __init__(self, block: Block, estimates: Estimates) -> None:
        super().__init__()
        self._block, self._estimates = block, estimates

    def __missing__(self, alias: str) -> float:
        (item,) = (item for item in self._block.inputs if item.alias == alias)
        values = self._estimates.values({one.name: (item.collection, item.bare(one.name)) for one in item.columns})
        self[alias] = found = selectivity(Linear(tuple(Agenda(self._block).arrive(item, report=False))), values)
        return found

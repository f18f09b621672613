"""Where a path has several orders, sends each row to the one whose first half-join finds the fewest partners for it.

Counting looks at the ends of a key's entries in an index, not at the entries: the cost is that of two searches for each
order. A row without partners in one of them has no result, so it goes no further. See `planner.choices` for the idea.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from halfjoin.engine.arrange.part import Part
from halfjoin.engine.join.chain import Chain, Known, chain_of, names_after
from halfjoin.engine.join.half_join import HalfJoinOperator
from halfjoin.engine.join.presence import PresenceOperator, compile_presence
from halfjoin.engine.join.stages import compile_stage
from halfjoin.engine.linear.operators import LinearOperator, compile_linear
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Updates, both_ways, is_wide, where_true
from halfjoin.planner.linear import Linear, Step
from halfjoin.planner.plan import HalfJoin, InputKind, Stage

_MANY = 8  # partners for each row; to find so many costs more than to add up the rows
_NOWHERE = -1  # the order of a row without partners


@dataclass(frozen=True, slots=True)
class CompiledStage:
    """A compiled `Stage`: the lookup, the steps after it, and other orders of this stage and some after it.

    `entering`: the columns of the rows that come. `chain`: this and the next half-joins, where one call does them.
    """

    lookup: HalfJoinOperator | PresenceOperator
    then: LinearOperator
    entering: tuple[str, ...]
    otherwise: tuple[Stages, ...] = ()
    chain: Chain | None = None


Stages = tuple[CompiledStage, ...]


def orders(
    stream: Updates, stages: Stages, parts_of: Callable[[HalfJoin], Sequence[Part]], closed: int, begins: int
) -> Iterator[tuple[Updates, Stages]]:
    """The rows of the stream by the order that they take, and all stages of that order up to the end of the path.

    Where two inputs have equally many partners, a row takes the order that comes first, as the plan shows it. If rows
    of history that cancel would find many partners, they are added up before.
    """
    every = [stages, *((*order, *stages[len(order) :]) for order in stages[0].otherwise)]
    found = _counts(stream, every, parts_of, closed, begins)
    many = int(found.min(0).sum()) >= _MANY * len(stream) and not is_wide(stream.diff)
    if many and both_ways(stream.diff):
        rows = consolidate(stream)
        if len(rows) < len(stream):
            stream, found = rows, _counts(rows, every, parts_of, closed, begins)
    least = found.argmin(0)
    least[found.min(0) == 0] = _NOWHERE
    for number, order in enumerate(every):
        chosen = where_true(least == number)
        if len(chosen):
            yield stream if len(chosen) == len(stream) else stream.take(chosen), order


def _counts(
    stream: Updates, every: Sequence[Stages], parts_of: Callable[[HalfJoin], Sequence[Part]], closed: int, begins: int
) -> NDArray[np.int64]:
    """For each order, how many partners each row of the stream finds first."""
    counts = []
    for one in every:
        lookup = one[0].lookup
        assert isinstance(lookup, HalfJoinOperator)  # the inputs of a choice are plain
        counts.append(lookup.counts(stream, parts_of(lookup.spec), closed, begins))
    return np.array(counts)


def compiled(
    stages: Sequence[Stage], registry: Registry, names: Sequence[str], final: Linear | None = None
) -> Stages:
    """The stages of an order that rows may take, executable. `names`: the columns of the rows that come. `final`: the
    operator after the last stage; None: there are stages between that are not known here."""
    found = list[CompiledStage]()
    for number, stage in enumerate(stages, 1):
        orders_of = tuple(compiled(order, registry, names) for order in stage.otherwise)
        lookup: HalfJoinOperator | PresenceOperator
        if stage.half_join.kind is InputKind.PLAIN:
            later = stages[number:]
            known = final is not None and not any(one.otherwise for one in later)
            lookup, then = compile_stage(stage, registry, names, *((later, final) if known else ()))
            kept = names if lookup.wanted is None else [name for name in names if name in lookup.wanted]
            joined = (*kept, *(name for _, name in lookup.made))
        else:  # the next steps see its default row too, so none moves before the lookup
            lookup, then = compile_presence(stage.half_join, registry), compile_linear(stage.then, registry)
            joined = (*names, *(name for _, name in stage.half_join.fetch))
        found.append(CompiledStage(lookup, then, tuple(names), orders_of))
        names = names_after(joined, then.spec.steps)
    rests = defaultdict[int, Known](dict)  # by where chains end
    return tuple(replace(stage, chain=_chain(found, number, rests)) for number, stage in enumerate(found))


def _chain(every: Sequence[CompiledStage], first: int, rests: Mapping[int, Known]) -> Chain | None:
    """The chain that begins with a stage. A row chooses its order anew before each stage that has several."""
    stages = every[first:]
    links = list[tuple[HalfJoinOperator, Sequence[Step]]]()
    for stage in stages:
        if isinstance(stage.lookup, PresenceOperator) or (links and stage.otherwise):
            break
        links.append((stage.lookup, stage.then.spec.steps))
    return chain_of(stages[0].entering, links, rests[first + len(links)])

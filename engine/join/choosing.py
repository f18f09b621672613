"""Where a path has several orders, sends each row to the one whose first half-join finds the fewest partners for it.

Counting looks at the ends of a key's entries in an index, not at the entries: the cost is that of two searches for each
order. A row without partners in one of them has no result, so it goes no further. See `planner.choices` for the idea.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from halfjoin.engine.arrange.run import Part
from halfjoin.engine.join.half_join import HalfJoinOperator
from halfjoin.engine.join.presence import PresenceOperator
from halfjoin.engine.join.stages import compile_stage
from halfjoin.engine.linear.operators import LinearOperator
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.updates.updates import Updates, where_true
from halfjoin.planner.plan import HalfJoin, Stage


@dataclass(frozen=True, slots=True)
class CompiledStage:
    """A compiled `Stage`: the lookup, the steps after it, and other orders of this stage and some after it."""

    lookup: HalfJoinOperator | PresenceOperator
    then: LinearOperator
    otherwise: tuple[Stages, ...] = ()


Stages = tuple[CompiledStage, ...]


def orders(
    stream: Updates, stages: Stages, parts_of: Callable[[HalfJoin], Sequence[Part]], closed: int
) -> Iterator[tuple[Updates, Stages]]:
    """The rows of the stream by the order that they take, and all stages of that order up to the end of the path.

    Two inputs with equally many partners: the row takes the order that comes first, as the plan shows it.
    """
    (first, *_), every = stages, [stages]
    every += [(*order, *stages[len(order) :]) for order in first.otherwise]
    counts = []
    for one in every:
        lookup = one[0].lookup
        assert isinstance(lookup, HalfJoinOperator)  # the inputs of a choice are plain
        counts.append(lookup.counts(stream, parts_of(lookup.spec), closed))
    found = np.array(counts)
    least = found.argmin(0)
    least[found.min(0) == 0] = -1
    for number, order in enumerate(every):
        rows = where_true(least == number)
        if len(rows):
            yield stream if len(rows) == len(stream) else stream.take(rows), order


def compiled(stages: Sequence[Stage], registry: Registry) -> Stages:
    """The stages of an order that rows may choose, executable."""
    return tuple(
        CompiledStage(*compile_stage(stage, registry), tuple(compiled(order, registry) for order in stage.otherwise))
        for stage in stages
    )

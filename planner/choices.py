"""Plans the steps at which each row of a path chooses the next input: the one with the fewest partners for that row.

A fixed order of lookups goes by averages. In a cyclic join, such as the triangles of a graph, a row at a hub finds very
many partners, of which the last lookup drops nearly all. So where the equalities are cyclic (`planner.cycles`), a path
has several orders: the row counts its partners in each input that could be next, takes those of the input with the
fewest, and the others only confirm them, by all their equalities together. Then the work is at most what the join can
give for collections of these sizes, if each input has at most two links (Ammar, McSherry, Salihoglu, Joglekar 2018:
"Distributed Evaluation of Subgraph Queries Using Worst-Case Optimal Low-Memory Dataflows"; Ngo, Porat, Ré, Rudra 2012).

Delta law. Which version of an input is looked up depends on the input and on where the path begins, not on the order.
The result of each order is the same sum of products, so rows may take different ones.

Wrong: to confirm by a shorter key, because it finds few rows on average. A hub is not an average.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from halfjoin.planner.agenda import Agenda
from halfjoin.planner.block import Input
from halfjoin.planner.cycles import Links
from halfjoin.planner.estimates import Estimates, selectivity
from halfjoin.planner.linear import Linear
from halfjoin.planner.liveness import DraftStage
from halfjoin.planner.lookups import Lookups, LookupWay

SMALL = 64  # rows; a lookup in no more than these is never worth a choice
_MOST_ORDERED = 48  # half-joins of a path for which all orders of the inputs are open to a row
_ALIKE = 16.0  # orders that are expected to find so many times the rows of the first one are left out

Take = Callable[[Agenda, LookupWay], DraftStage]
Best = Callable[[Sequence[LookupWay]], LookupWay]


class _TooMany(Exception):
    """All orders of the inputs together have too many half-joins."""


class _Order(NamedTuple):
    """An order of some inputs: its stages, the agenda after them, and the inputs that it leaves."""

    stages: list[DraftStage]
    agenda: Agenda
    left: list[Input]


class Choices:
    """The choices of one path. `links`: of the inputs in the cyclic part. `take` makes the stage of a lookup, `best`
    chooses one of several: that is the order that is shown, and that a runner without choices takes."""

    def __init__(
        self, links: Mapping[str, Links], lookups: Lookups, estimates: Estimates, take: Take, best: Best
    ) -> None:
        self.links, self.lookups, self.estimates, self.take, self.best = links, lookups, estimates, take, best
        self._left = 0  # half-joins that may still be planned

    def stages(self, agenda: Agenda, waiting: Sequence[Input]) -> tuple[list[DraftStage], Agenda] | None:
        """The stages of all inputs in the cyclic part that are connected with what is bound, and the agenda after them.
        None if there is nothing to choose.

        If there are few inputs, all their orders are open: a row at a hub on one side of a four-cycle goes round the
        other way. Otherwise the next link is the same for all rows, and they choose who proposes its values.
        """
        inputs = [item for item in waiting if item.alias in self.links]
        begun = _Order([], agenda.copy(), inputs)
        self._left = _MOST_ORDERED
        try:
            order = self._ordered(begun, everywhere=True)
        except _TooMany:
            order = self._ordered(begun, everywhere=False)
        return (order.stages, order.agenda) if any(stage.otherwise for stage in order.stages) else None

    def _ordered(self, begun: _Order, everywhere: bool) -> _Order:
        """An order of all inputs that are left and connected, with choices. `everywhere`: all orders are open."""
        stages, agenda, left = begun
        while left:
            ways = self.lookups.ways(agenda, left, whole=True)
            if not ways[0].pairs:
                break
            step = self._next(agenda, left, ways, everywhere)
            stages, agenda, left = [*stages, *step.stages], step.agenda, step.left
        return _Order(stages, agenda, left)

    def _next(self, agenda: Agenda, left: list[Input], ways: Sequence[LookupWay], everywhere: bool) -> _Order:
        """The next lookup; or the next lookups, where rows choose among several orders of them."""
        checks = [way for way in ways if not self._new(agenda, way)]
        first = self.best(checks or ways)
        if checks or first.unique or self._is_small(first):
            return self._one(agenda, left, first)
        rivals = {_probed(way): way for way in sorted(ways, key=lambda way: way.input.alias, reverse=True)
                  if everywhere or self._new(agenda, way) == self._new(agenda, first)}  # fmt: skip
        rivals.pop(_probed(first), None)
        main = self._begun(agenda, left, first, everywhere)
        others = (self._begun(agenda, left, way, everywhere) for way in reversed(rivals.values()))
        orders = [order for order in others if self._agree(main, order)]
        begin = replace(main.stages[0], otherwise=[order.stages for order in orders])
        return _Order([begin, *main.stages[1:]], main.agenda, main.left)

    def _begun(self, agenda: Agenda, left: list[Input], way: LookupWay, everywhere: bool) -> _Order:
        """The order that begins with a lookup, up to where it meets the others: after all inputs, or after those that
        the same links check."""
        order = self._one(agenda, left, way)
        if everywhere:
            self._left -= len(left)
            if self._left < 0:
                raise _TooMany
            return self._ordered(order, everywhere)
        while order.left:
            ways = self.lookups.ways(order.agenda, order.left, whole=True)
            checks = [one for one in ways if one.pairs and not self._new(order.agenda, one)]
            if not checks:
                break
            more = self._one(order.agenda, order.left, self.best(checks))
            order = _Order([*order.stages, *more.stages], more.agenda, more.left)
        return order

    def _one(self, agenda: Agenda, left: list[Input], way: LookupWay) -> _Order:
        after = agenda.copy()
        stage = self.take(after, way)
        return _Order([stage], after, [item for item in left if item is not way.input])

    def _new(self, agenda: Agenda, way: LookupWay) -> Links:
        """The links of an input that are not bound yet. Without any, its lookup only confirms what is bound."""
        return frozenset(link for link in self.links[way.input.alias]
                         if not any(map(agenda.usable, agenda.block.classes[link])))  # fmt: skip

    def _is_small(self, way: LookupWay) -> bool:
        collection = way.input.collection
        return self.estimates.is_known(collection) and self.estimates.rows(collection) <= SMALL

    def _agree(self, main: _Order, other: _Order) -> bool:
        """Whether rows of both orders can go on together, and the other one is not expected to be far worse."""
        if main.agenda.state != other.agenda.state:
            return False
        return self._cost(other.stages) <= _ALIKE * self._cost(main.stages)

    def _cost(self, stages: Sequence[DraftStage]) -> float:
        """The rows that an order is expected to find for one row."""
        size, found = 1.0, 0.0
        for stage in stages:
            size *= self.estimates.fan_out(stage.half_join.arrangement, stage.half_join.probe, self.lookups.sources)
            found += size
            size *= selectivity(Linear(tuple(stage.then)))
        return found


def _probed(way: LookupWay) -> object:
    """What a lookup looks up. Two that look the same keys up find as many rows."""
    return way.arrangement, tuple(pair.probe for pair in way.pairs)


def every_stage(stages: Sequence[DraftStage]) -> Iterator[DraftStage]:
    """The stages of all orders."""
    for stage in stages:
        yield stage
        for order in stage.otherwise:
            yield from every_stage(order)

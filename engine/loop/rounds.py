"""Runs a loop: round after round, each node that has something new, in order of their places.

Loop law. A pass takes all that closes, at all its times, round by round, and within a round in order of place. A loop
is one node of the plan around it: all that enters it is there before its first round, and its rounds end before what
follows goes on. Wrong: to begin rounds earlier, since rows about to be retracted would keep each other alive.

A loop inside the loop is one more node of it, at its place: in each round it runs rounds of its own.

What a node makes for a later round waits for that round. So all updates of a collection arrive in the order of their
rounds, and a node that runs takes what has arrived since it ran last: that is *after*, the rest is *before*.

A temporal filter makes updates of times that have not closed. They stay in the collection of the node that makes them.
The pass that closes them lets them arrive there, each in its round.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from time import perf_counter
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.merging import side_by_side
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import Run, make_run
from halfjoin.engine.join.closing import Closing, RunsOf
from halfjoin.engine.join.dataflow import Dataflow
from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.linear.failures import of_rows
from halfjoin.engine.loop.reduce import Round, RoundReduce
from halfjoin.engine.loop.scope import Scope, scope_of
from halfjoin.engine.loop.steps import Steps
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.lattice import ints
from halfjoin.engine.updates.updates import MINIMUM, Mask, Updates, concat, empty
from halfjoin.errors import DataError
from halfjoin.planner.plan import ROUND, Version, round_names

T = TypeVar("T")
Made = tuple[Updates, Updates]
_FEW = 4  # runs of a collection; looking up so few costs less than merging them
_CANCEL = 4  # runs of which every fourth row is taken away are added up
_SMALL = 1024  # rows; to merge or look up so few costs about the same as one

MOST_COPIES = 1 << 62  # of the rows that a loop makes of one batch; with a few more, counts do not fit an int64


class Pass:
    """One pass through the nodes of a loop.

    `base`: the parts of a collection before the pass. `entering`: the parts of an outer collection that close now.
    `waited`: the updates of the nodes' own collections that close now. `spent`: where the seconds that each node takes
    are added up, of all its rounds.
    """

    def __init__(
        self, flows: Mapping[str, Dataflow | RoundReduce], base: Callable[[str], Sequence[Part]],
        entering: Callable[[str], Sequence[Part]], closing: Closing, steps: Steps, *,
        waited: Mapping[str, Updates] = MappingProxyType({}), first: bool = False,
        spent: dict[str, float] | None = None,
    ) -> None:  # fmt: skip
        self.flows, self.closing, self.steps = flows, closing, steps
        self._scope = scope_of({name: flow.plan.loops for name, flow in flows.items()})
        self._rounds = {name: round_names(len(flow.plan.loops)) for name, flow in flows.items()}
        self.made: dict[str, list[Updates]] = {name: [] for name in flows}
        self.errors: dict[str, list[Updates]] = {name: [] for name in flows}
        self._open: dict[str, list[Updates]] = {name: [] for name in flows}
        self._base = base
        self._reads = {name: flow.plan.collections for name, flow in flows.items()}
        self._readers = {name: [(one, name) for one, reads in self._reads.items() if name in reads] for name in flows}
        told = {one for flow in flows.values() if isinstance(flow, Dataflow) for one in flow.told}
        self._movable = {name for name, flow in flows.items() if len(flow.plan.loops) == 1} - told
        outer = {one for reads in self._reads.values() for one in reads} - set(flows)
        self._runs: dict[str, list[Run]] = {name: [] for name in flows}
        self._parts: dict[str, Sequence[Part]] = {name: list(entering(name)) for name in outer}
        self._parts |= self._runs
        self._seen: dict[tuple[str, str], int] = defaultdict(int)
        self._later: dict[str, dict[Round, list[Updates]]] = {name: {} for name in flows}
        self._again: dict[str, dict[Round, list[Updates]]] = {name: {} for name in flows}
        self._waited = {name: dict(self._by_round(name, updates)) for name, updates in waited.items()}
        self._spent: dict[str, float] = {} if spent is None else spent
        self._rows = self._bytes = 0
        self._copies = 0.0
        if first:
            for name, flow in flows.items():
                self._begin(name, flow)

    def run(self) -> dict[str, Made]:
        """The output and error updates of each node, consolidated."""
        self._run(self._scope, ())
        return {
            name: (self._output(name, flow.schema), consolidate(concat([empty(ERROR_SCHEMA), *self.errors[name]])))
            for name, flow in self.flows.items()
        }

    def _output(self, name: str, schema: Mapping[str, pa.DataType]) -> Updates:
        """A node's updates: those of each round are consolidated, and have the round; those of open times come from
        several rounds."""
        none = empty(schema)
        open = [consolidate(concat([none, *self._open[name]]))] if self._open[name] else []
        return concat([none, *self.made[name], *open])

    def _run(self, scope: Scope, around: Round) -> None:
        """The rounds of a loop, in a round of the loops around it."""
        round = self._next(scope, around, 0)
        while round is not None:
            for member in scope.members:
                if isinstance(member, Scope):
                    self._run(member, (*around, round))
                else:
                    self._timed(member, self._take, (*around, round))
            for name in scope.names:
                self._timed(name, self._merge, round)
            round = self._next(scope, around, round + 1)

    def _timed(self, name: str, step: Callable[[str, T], None], round: T) -> None:
        began = perf_counter()
        step(name, round)
        self._spent[name] = self._spent.get(name, 0.0) + perf_counter() - began

    def _begin(self, name: str, flow: Dataflow | RoundReduce) -> None:
        """What is there before anything enters: what constants make, and the group of an aggregate without keys."""
        if isinstance(flow, Dataflow):
            made, failed = flow.begin()
            self.errors[name].append(failed)
            if len(made):
                self._wait(name, made)
        elif flow.always:
            self._again[name][(0,) * len(flow.plan.loops)] = [Updates({}, np.array([MINIMUM]), np.array([1]))]

    def _wait(self, name: str, made: Updates) -> None:
        """Keep what a node makes for its rounds, and what it makes for open times."""
        open = made.time >= self.closing.after
        if open.any():
            self._open[name].append(made.filter(open))
            made = made.filter(~open)
        for round, found in self._by_round(name, made):
            self._later[name].setdefault(round, []).append(found)

    def _by_round(self, name: str, made: Updates) -> Iterator[tuple[Round, Updates]]:
        if not len(made):
            return
        rounds = [ints(made, column) for column in self._rounds[name]]
        if len(made) > 1:
            order = np.lexsort(rounds[::-1])
            made, rounds = made.take(order), [one[order] for one in rounds]
        fresh = reduce(np.logical_or, (one[1:] != one[:-1] for one in rounds))
        starts = [0, *(np.flatnonzero(fresh) + 1).tolist()]
        for start, stop in zip(starts, [*starts[1:], len(made)], strict=True):
            yield tuple(int(one[start]) for one in rounds), made.slice(start, stop)

    def _take(self, name: str, round: Round) -> None:
        flow = self.flows[name]
        found = self._later[name].pop(round, [])
        again = self._again[name].pop(round, [])
        new = {one: self._parts[one][self._seen[name, one] :] for one in self._reads[name]}
        if again or any(new.values()):
            if isinstance(flow, RoundReduce):
                found.append(self._reduced(name, flow, new[flow.plan.input], again, round))
            else:
                found += self._joined(name, flow, new, round)
            for one in new:
                self._seen[name, one] = len(self._parts[one])
        found = [one for one in found if len(one)]  # each is consolidated
        updates = found[0] if len(found) == 1 else consolidate(concat([empty(flow.schema), *found]))
        if len(updates):
            self.made[name].append(updates)
        if (waited := self._waited.get(name, {}).pop(round, None)) is not None:
            updates = consolidate(concat([updates, waited])) if len(updates) else waited
        if len(updates):
            if flow.plan.last == round[-1]:
                # With the rounds around it, since an error in any of them stays for the later ones.
                pairs = [(column, f"{name}.{column}") for column in flow.schema if column != self._rounds[name][-1]]
                told = f'"{name}" changes after {round[-1] + 1:,} rounds still'
                self.errors[name].append(of_rows(updates.renamed(pairs), told))
            self._runs[name].append(make_run(updates, self.closing.after))

    def _joined(self, name: str, flow: Dataflow, new: Mapping[str, Sequence[Part]], round: Round) -> list[Updates]:
        there = {one: parts for one, parts in new.items() if parts}
        closing = self.closing if not any(round) else replace_updates(self.closing)
        made, failed = self.steps.join(flow, there, self._lookup(name), closing)
        if len(failed):
            self.errors[name].append(failed)
        self._bounded(round, made)
        later = self._after(name, made, round) | (made.time >= self.closing.after)
        if later.any():
            self._wait(name, made.filter(later))
        return [made.filter(~later)]

    def _reduced(
        self, name: str, flow: RoundReduce, new: Sequence[Part], again: Sequence[Updates], round: Round
    ) -> Updates:  # fmt: skip
        columns = flow.schema
        pieces = [piece for part in new for piece in part.pieces()]
        keys = [key.name for key in flow.plan.keys]
        types = {key: columns[key] for key in keys}
        updates = concat(pieces) if pieces else flow.nothing()
        failing = bool(self.errors[name]) or self.closing.failing(name)
        due = concat([empty(types), *(one.select(keys) for one in again)])
        made, failed, due = self.steps.reduce(flow, updates, due, self._lookup(name), round, self.closing.before,
                                              failing=failing)  # fmt: skip
        if len(failed):
            self.errors[name].append(failed)
        for later, groups in self._by_round(name, due):
            self._again[name].setdefault(later, []).append(groups)
        self._bounded(round, made)
        return made

    def _after(self, name: str, made: Updates, round: Round) -> Mask:
        """The rows of rounds after this one, in lexicographic order."""
        pairs = [(ints(made, column), now) for column, now in zip(self._rounds[name], round, strict=True)]
        none = np.zeros(len(made), np.bool_)
        return reduce(lambda inner, pair: (pair[0] > pair[1]) | ((pair[0] == pair[1]) & inner), reversed(pairs), none)

    def _bounded(self, round: Round, made: Updates) -> None:
        """Count what a node makes in a round. The bounds are those of what a batch makes of one view.

        Raises:
            DataError: the loop makes more.
        """
        self._rows += len(made)
        self._bytes += made.nbytes
        self._copies += float(np.abs(made.diff.astype(np.float64)).sum())
        bounds = ((self._rows, limits.MOST_ROWS, "rows"), (self._bytes, limits.MOST_BYTES, "bytes"),
                  (self._copies, MOST_COPIES, "copies of rows"))  # fmt: skip
        for count, most, what in bounds:
            if count > most:
                (loop,) = {flow.plan.loops[0] for flow in self.flows.values()}
                raise DataError(f'the rounds of "{loop}" make more than {most:,} {what}: they do so in round '
                                f"{round[0]:,}", remedy="add a condition that ends it")  # fmt: skip

    def _lookup(self, node: str) -> RunsOf:
        def lookup(name: str, version: Version) -> Sequence[Part]:
            parts = self._parts[name]
            if version is Version.BEFORE:
                parts = parts[: self._seen[node, name]]
            return (*self._base(name), *parts)

        return lookup

    def _merge(self, name: str, round: int) -> None:
        """Merge the last runs that all readers have seen, so that there are few, however many rounds there are."""
        runs, readers = self._runs[name], self._readers[name]
        if len(runs) <= _FEW:
            return
        stop = min((self._seen[reader] for reader in readers), default=len(runs))
        if stop <= _FEW:
            return
        start, size = stop - 1, len(runs[stop - 1])
        while start and len(runs[start - 1]) <= max(2 * size, _SMALL):
            start -= 1
            size += len(runs[start])
        if stop - start > 1:
            runs[start:stop] = [self._merged(name, runs[start:stop], round)]
            for reader in readers:
                self._seen[reader] -= stop - start - 1

    def _merged(self, name: str, runs: Sequence[Run], round: int) -> Run:
        """One run for several of rounds up to this one, which are over.

        Runs of different rounds have no equal rows, but many that cancel if their rounds are not told apart. The later
        rounds of the pass need not do so: what is at or below the round before them is at or below them. As the
        compaction law moves times, this moves rounds up to this one. It does so in a single loop, whose rounds have an
        order. Where a join reports errors, their codes have the rounds of the rows that it looks up.
        """
        gone = sum(int(np.count_nonzero(run.updates.diff < 0)) for run in runs)
        if gone * _CANCEL < sum(map(len, runs)) or name not in self._movable:
            return side_by_side(runs, self.closing.after)
        both = concat([run.updates for run in runs])
        rounds = {ROUND: pa.array(np.full(len(both), round))}
        return make_run(consolidate(both.with_columns(rounds)), self.closing.after)

    def _next(self, scope: Scope, around: Round, soonest: int) -> int | None:
        """The next round in which something happens: the soonest if a node has not seen all that there is."""
        if any(self._seen[name, one] < len(self._parts[one]) for name in scope.names for one in self._reads[name]):
            return soonest
        depth = len(around)
        waiting = (round for name in scope.names
                   for round in (*self._later[name], *self._again[name], *self._waited.get(name, ())))  # fmt: skip
        return min((round[depth] for round in waiting if round[:depth] == around), default=None)


def replace_updates(closing: Closing) -> Closing:
    """The same, where nothing closes: what does is taken in the first round."""
    return closing._replace(before=closing.after, updates=lambda _: empty({}))

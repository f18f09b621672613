"""Half-joins in a row that one call of a kernel does: a path costs a call, not one for each of its stages.

Between such half-joins nothing is computed: columns are dropped, and no more. The rows that one of them makes are the
stream of the next, so the delta law does not see a chain. The kernel stops early where rows must be added up first, are
too many for one piece, or have a type that it does not know; the path goes on from there, stage by stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from halfjoin.engine.join import beside
from halfjoin.engine.join.closing import Closing, RunsOf
from halfjoin.engine.join.half_join import HalfJoinOperator
from halfjoin.engine.kernels import joining
from halfjoin.engine.scalar.threshold import Threshold, threshold_of
from halfjoin.engine.system.value import value
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import MINIMUM, Ints, Updates
from halfjoin.planner.linear import Filter, Keep, Step
from halfjoin.planner.liveness import makes
from halfjoin.planner.plan import Path

GROWTH = 8  # a stream that has grown so much, with rows that come and rows that go, is added up
_MOST_TESTS = 16  # thresholds; the kernel takes no more


@value
class Walked:
    """The rows after so many links, how many rows all of these have made, and how many rows entered the first."""

    rows: Updates
    done: int
    found: int
    entered: int


@dataclass(frozen=True, slots=True)
class Link:
    """A half-join of a chain. `keys`, `kept`: positions among the columns that come. `names`: of what it makes."""

    lookup: HalfJoinOperator
    keys: tuple[int, ...]
    kept: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Half-joins in a row. `names`: the columns that it takes."""

    names: tuple[str, ...]
    links: tuple[Link, ...]
    asks: bool  # only a query goes through the first of them: a condition is tested before

    def walk(
        self, columns: list[pa.Array], time: Ints, diff: Ints, lookup: RunsOf, closing: Closing, size: int,
        tests: joining.Tests = joining.NO_TESTS,
    ) -> Walked | None:  # fmt: skip
        """What the half-joins make of a stream with these columns, up to where a kernel can go. None: it cannot at all.

        `size`: as in `CompiledPath`; -1: as many rows as meet the `tests`. A collection is looked up only if its rows
        are at hand, except the first: who knows whether any row gets there.
        """
        links = list[joining.Link]()
        for link in self.links:
            spec = link.lookup.spec
            if link.lookup.rest and closing.begins > MINIMUM:
                break
            if links and not closing.at_hand(spec.arrangement.collection):
                break
            runs = lookup(spec.arrangement.collection, spec.version)
            if not links and not tests.constants and closing.begins == MINIMUM:
                runs = link.lookup.narrowed(runs, [columns[place] for place in link.keys])
            tested = link.lookup.tests(runs, len(time), closing.begins) if link.lookup.rest else False
            opened = None if link.lookup.rest and not tested else link.lookup.opened(
                runs, closing.netted, closing.begins, tested=tested)  # fmt: skip
            if not opened:
                break
            links.append(link.lookup.link(opened, link.keys, link.kept, False))
        if not links:
            return None
        made = joining.half_joins(
            columns, time, diff, links, tests, size=size, growth=GROWTH, closed=closing.netted,
            least=beside.NET_FROM, most=limits.PIECE_ROWS, most_bytes=limits.PIECE_BYTES,
        )  # fmt: skip
        if not isinstance(made, joining.Joined):
            return None
        names = self.links[made.done - 1].names if made.columns else ()
        rows = Updates(dict(zip(names, made.columns, strict=True)), made.time, made.diff)
        return Walked(rows, made.done, made.found, made.entered)


@dataclass(frozen=True, slots=True)
class Entrance:
    """How changed rows enter the first chain of a path as they are: filters that compare columns with constants are
    tests of the kernel. `columns`: those of the collection that the chain takes, then those that are tested."""

    chain: Chain
    columns: tuple[str, ...]
    tests: joining.Tests

    def walk(self, change: Updates, lookup: RunsOf, closing: Closing) -> Walked | None:
        """As `Chain.walk`, for changed rows of the path's input. None also where an index is still to be made of what
        a query asks for: that is known after the tests."""
        columns, first = change.columns, self.chain.links[0].lookup.spec
        if self.tests.constants and closing.begins == MINIMUM:
            runs = lookup(first.arrangement.collection, first.version)
            if any(part.lacks(first.arrangement) for part in runs):
                return None
        return self.chain.walk([columns[name] for name in self.columns], change.time, change.diff, lookup, closing, -1,
                               self.tests)  # fmt: skip


# What follows in a chain, by the number of half-joins that are left and the columns that come. Each stage of a path
# begins a chain, and all of them end alike: without this, n stages would take n * n steps.
Known: TypeAlias = dict[tuple[int, tuple[str, ...]], tuple[Link, ...]]


def chain_of(names: Sequence[str], stages: Sequence[tuple[HalfJoinOperator, Sequence[Step]]],
             known: Known) -> Chain | None:
    """The chain with which these half-joins begin, each with the steps after it; None if the first one is no link.

    `names`: the columns of the rows that come. A link looks up columns as they are. Its partners meet
    thresholds; of a query also other conditions. `known`: filled and used by all chains that end where this one does.
    """
    links, taken = list[Link](), list[str]()
    after = list[tuple[int, tuple[str, ...]]]()  # for each link but the first: where it is, and the columns that come
    for left, (lookup, steps) in zip(range(len(stages), 0, -1), stages, strict=True):
        if links:
            here = left, tuple(names)
            if here in known:
                links += known[here]
                break
            after.append(here)
        if lookup.direct is None:
            break
        kept = [name for name in names if lookup.wanted is None or name in lookup.wanted]
        if not links:
            taken = list(dict.fromkeys((*lookup.direct, *kept)))
            names = taken
        joined = (*kept, *(name for _, name in lookup.made))
        places = {name: place for place, name in enumerate(names)}
        links.append(Link(lookup, tuple(places[name] for name in lookup.direct), tuple(places[name] for name in kept),
                          joined))  # fmt: skip
        if not all(isinstance(step, Keep) for step in steps):
            break
        names = joined
    known.update({here: tuple(links[number:]) for number, here in enumerate(after, 1)})
    return Chain(tuple(taken), tuple(links), links[0].lookup.rest != ()) if links else None


def entrance_of(path: Path, chain: Chain | None) -> Entrance | None:
    """The entrance of a path whose first stages are a chain; None if its rows are computed before."""
    steps = path.source.steps
    if chain is None or chain.asks or path.appearing is not None:
        return None
    if not all(isinstance(step, Filter | Keep) for step in steps):
        return None
    found = [threshold_of(predicate) for step in steps if isinstance(step, Filter) for predicate in step.predicates]
    tests = [one for one in found if isinstance(one, Threshold)]
    if len(tests) < len(found) or len(tests) > _MOST_TESTS:
        return None
    original = {new: name for name, new in path.fetch}
    columns = [*chain.names, *(test.column for test in tests)]
    where = tuple(range(len(chain.names), len(columns)))
    return Entrance(chain, tuple(original[name] for name in columns), joining.Tests(
        where, [test.constant for test in tests], tuple(test.allowed for test in tests)))  # fmt: skip


def names_after(names: Sequence[str], steps: Sequence[Step]) -> tuple[str, ...]:
    """The columns of rows that had these, after some steps."""
    for step in steps:
        names = step.columns if isinstance(step, Keep) else (*names, *makes(step))
    return tuple(names)

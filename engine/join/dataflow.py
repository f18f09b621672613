"""The local runner of one join: it compiles the join's delta paths, and runs them for a batch or a fill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import islice
from typing import Protocol

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.part import Part, present, uncopied
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join.closing import Closing, RunsOf
from halfjoin.engine.join.gates import Gates, gates_of
from halfjoin.engine.join.made import Made
from halfjoin.engine.join.path import CompiledPath, compile_path, morsels
from halfjoin.engine.join.sifting import Sifting, sifting_of
from halfjoin.engine.join.tested import Tested, tested_of
from halfjoin.engine.join.too_large import TooLarge
from halfjoin.engine.linear.failures import NO_ERRORS
from halfjoin.engine.linear.operators import compile_linear
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import MINIMUM, Updates, constant, empty
from halfjoin.planner.linear import Linear
from halfjoin.planner.plan import Constant, Join, Version

_FEW = 4096  # rows; what maps so few of them need not be told how many it may make


class Reader(Protocol):
    """Reads of the input with which a fill begins what a query needs."""

    def read(self, parts: Sequence[Part], closed: int, names: Sequence[str]) -> Iterator[Updates]: ...  # noqa: D102


class Dataflow:
    """An executable join. It keeps nothing between batches: state is in the collections.

    Delta law. A result tuple is produced once, by the path of the component that arrived last; of several in one batch,
    by the path with the highest number. So path `i` looks input `j < i` up after the batch's updates, and `j > i`
    before them.
    """

    def __init__(self, plan: Join, registry: Registry, name: str) -> None:
        self.plan, self.registry, self.name = plan, registry, name
        self.loop = plan.loop
        self.schema = {column.name: arrow_type(column.type) for column in plan.columns}
        self._compile([[compile_path(path, registry) for path in branch.paths] for branch in plan.branches])
        self.reads = frozenset(plan.collections)
        # What closes of these matters. A loop's node may itself have made it, at a time that was open.
        self.asked = frozenset((*plan.collections, plan.output) if plan.loop else plan.asked)

    def with_constants(self, plan: Join) -> Dataflow:
        """The join of a plan that differs in constants only. What has none is the same object in both plans."""
        made = copy(self)
        made.plan = plan
        for found in ("gates", "sifting"):
            made.__dict__.pop(found, None)
        made._compile([[compile_path(path, self.registry, like) for path, like in zip(branch.paths, paths, strict=True)]
                       for branch, paths in zip(plan.branches, self.branches, strict=True)])  # fmt: skip
        return made

    def _compile(self, branches: list[list[CompiledPath]]) -> None:
        self.branches = branches
        self.tests = dict[int, Tested | None]()  # by the path
        paths = [path for branch in branches for path in branch]
        plainly = len(paths) == 1 and not (self.plan.passing or self.plan.loop) and paths[0].maps
        self.mapping = paths[0] if plainly else None  # the path of a view that maps the rows of one collection
        self.constants = {item.name: (Run(_constant_rows(item, self.registry)),) for item in self.plan.constants}
        self.told = frozenset(step.half_join.arrangement.collection for paths in branches for path in paths
                              if path.reports for step in path.spec.stages)  # rows of errors may be looked up in them

    @cached_property
    def sifting(self) -> Sequence[Sifting | None]:
        """How the inputs of each branch are sifted when it fills."""
        return [sifting_of(paths[branch.fill]) for branch, paths in zip(self.plan.branches, self.branches, strict=True)]

    @cached_property
    def gates(self) -> Gates:
        """What lets a batch in. A query needs none."""
        return gates_of(self.plan.branches)

    def changes(
        self, staged: Mapping[str, Part], lookup: RunsOf, closing: Closing
    ) -> tuple[Updates, Updates]:
        """The view's output and error updates for a batch's staged runs and the times it closes, both consolidated;
        but the output of a passing node is not, since the reduces above it add up anyway.

        No time of the batch is below `closing.before`, so lookups may add up updates below it.

        Raises:
            DataError: the changes are more than one batch may make of a view.
        """
        mapped = None if self.mapping is None else self._mapped(self.mapping, staged)
        if mapped is not None:
            return mapped, NO_ERRORS
        made = Made(self.schema, gathered=self.plan.passing and not self.loop)
        lookup = self._and_constants(lookup)
        closing = closing._replace(begins=MINIMUM) if self.loop else closing  # it may fill
        try:
            for paths in self.branches:
                for path in paths:
                    run = staged.get(path.spec.collection)
                    if run is not None:
                        for change in run.pieces(names=path.reads):
                            for _ in path.run(change, lookup, made, closing):
                                pass
                    if path.appearing is not None and not path.spec.constant:
                        for _ in path.appear(lookup, made, closing):
                            pass
        except TooLarge as problem:
            raise problem.told(f"one batch would change {problem.bound} of {self.name}") from None
        return made.given()

    def _mapped(self, path: CompiledPath, staged: Mapping[str, Part]) -> Updates | None:
        """The output of a view that maps the rows of one collection, if few of these change and none fails."""
        run, errors = staged.get(path.spec.collection), list[Updates]()
        if run is None or not run.in_memory or len(run) > min(_FEW, limits.MOST_ROWS):
            return None
        (rows,) = run.pieces(names=path.reads)
        made = path.mapped(rows, errors)
        if errors or made.nbytes > limits.MOST_BYTES:
            return None
        return consolidate(made.select(self.schema)) if len(made.time) else empty(self.schema)

    def begin(self) -> tuple[Updates, Updates]:
        """What constant rows make while every collection is empty, as output and error updates."""
        made, lookup = Made(self.schema), self._and_constants(lambda *_: ())
        closing = Closing(MINIMUM, MINIMUM, MINIMUM, lambda _: empty({}), lambda _: False)
        for paths in self.branches:
            constant_paths = (path for path in paths if path.spec.constant)
            for path in islice(constant_paths, 1):  # the other constants are there
                for part in self.constants[path.spec.collection]:
                    for _ in path.run(part.updates, lookup, made, closing):
                        pass
        return made.given()

    def fill(
        self, lookup: RunsOf, upper: int, closed: int = MINIMUM, *, gathered: bool = False, summed: bool = False,
        reader: Reader | None = None,
    ) -> Iterator[tuple[Updates, Updates]]:  # fmt: skip
        """The view's whole history so far, from one path per branch, in parts that fit in memory.

        Each part is the output and the error updates, both consolidated; there is at least one part. Times below
        `upper` are closed. Updates below `closed` may be added up. `gathered`: the caller keeps all parts in memory,
        however small, and adds up equal updates of the output. `summed`: it only adds up what they add to sums, so
        updates that cancel may be left. `reader`: reads the input.

        Corollary of the delta law: a fill is one path with its input's history as the change and all other inputs
        "after". A failure in another input's own operator is reported only by that input's path, so those operators run
        as well.

        Raises:
            DataError: the history is more than a view may have.
        """
        whole, begun = self._and_constants(lambda name, _: lookup(name, Version.AFTER)), False
        made = Made(self.schema, gathered=gathered)
        closing = Closing(closed, upper, upper, lambda _: empty({}), lambda _: False)  # no times close
        try:
            for branch, paths, sifting in zip(self.plan.branches, self.branches, self.sifting, strict=True):
                sifted = whole if sifting is None else sifting(whole, closed)
                for number, path in enumerate(paths):
                    if number != branch.fill and not path.source.reports:
                        continue
                    source = sifted if number == branch.fill else whole
                    read, way = self._read(path, whole, source, upper, closed, summed=summed, reader=reader)
                    for one in read:
                        change = one.settled(closed) if closed > MINIMUM else one
                        if number == branch.fill:
                            for _ in way.run(change, sifted, made, closing):
                                if gathered or made.rows >= limits.PIECE_ROWS or made.bytes >= limits.PIECE_BYTES:
                                    begun = True
                                    yield made.given()
                        else:
                            for morsel in morsels(change):
                                path.source(morsel.renamed(path.spec.fetch), made.errors)
        except TooLarge as problem:
            raise problem.told(f"{self.name} would hold {problem.bound}") from None
        if not begun or made.rows or made.errors:
            yield made.given()

    def _read(
        self, path: CompiledPath, whole: RunsOf, source: RunsOf, upper: int, closed: int, *, summed: bool,
        reader: Reader | None,
    ) -> tuple[Iterator[Updates], CompiledPath]:  # fmt: skip
        """The rows with which a path fills, and the way that they go from there. `source`: the parts that are left of
        its input."""
        if path.known is not None:
            return path.known(whole, closed, upper, path.reads), path
        parts = source(path.spec.collection, Version.AFTER)
        if reader is not None:
            return reader.read(parts, closed, path.reads), path
        parts = uncopied(parts) if summed else parts
        tested = None if closed == MINIMUM else self.tested(path)
        if tested is not None and tested.serves(parts):
            return present(parts, closed, tested.path.reads, tested.choose, apart=summed), tested.path
        return present(parts, closed, path.reads, apart=summed), path

    def tested(self, path: CompiledPath) -> Tested | None:
        """The conditions with which a path begins."""
        if id(path) not in self.tests:
            self.tests[id(path)] = tested_of(path, self.registry)
        return self.tests[id(path)]

    def _and_constants(self, lookup: RunsOf) -> RunsOf:
        if not self.constants:
            return lookup
        return lambda name, version: self.constants[name] if name in self.constants else lookup(name, version)


def _constant_rows(item: Constant, registry: Registry) -> Updates:
    """The rows of VALUES, or of a table function of constants, as updates at the least time."""
    if item.made is not None:
        call = compile_linear(Linear((item.made,)), registry)
        made = call(Updates({}, constant(MINIMUM, 1), constant(1, 1)), [])
        names = [column.name for column in item.columns]
        return Updates(dict(zip(names, made.columns.values(), strict=True)), made.time, made.diff)
    columns = {}
    for position, column in enumerate(item.columns):
        cells = [compile(row[position]).evaluate({}, 1).values for row in item.rows]
        columns[column.name] = pa.concat_arrays(cells) if cells else pa.nulls(0, arrow_type(column.type))
    length = len(item.rows)
    return Updates(columns, np.full(length, MINIMUM), constant(1, length))

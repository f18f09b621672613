"""The local runner of one join: it compiles the join's delta paths, and runs them for a batch or a fill."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.part import Part, present
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join.choosing import CompiledStage, Stages, compiled, orders
from halfjoin.engine.join.gates import Gates, gates_of
from halfjoin.engine.join.half_join import HalfJoinOperator
from halfjoin.engine.join.known import KnownRows, compile_known
from halfjoin.engine.join.presence import AppearingKeys, PresenceOperator, compile_appearing, compile_presence
from halfjoin.engine.join.too_large import TooLarge
from halfjoin.engine.linear.failures import NO_ERRORS
from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.linear.heavy import in_limbs, split
from halfjoin.engine.linear.operators import LinearOperator, compile_linear
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.system.machine import machine_memory
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import MINIMUM, Updates, concat, constant, empty, is_wide
from halfjoin.planner.plan import Constant, InputKind, Join, Path, Stage, Version

MOST_BYTES = machine_memory() // 4  # of a view's rows that one batch makes; `limits.MOST_ROWS` bounds their number
_GROWTH = 8  # a stream that has grown so much, with rows that come and rows that go, is added up
_FEW = 16  # rows; so few are never cut into morsels, however long their texts
_STEPS = 8  # the rows that a batch makes of a view are added up whenever they have grown by this part of a bound

# The runs of a collection before or after the batch.
RunsOf = Callable[[str, Version], Sequence[Part]]


@dataclass(slots=True)
class Found:
    """How many rows lookups have found, for people who watch an engine."""

    rows: int = 0


class Closing(NamedTuple):
    """What a batch closes: times below `before` are closed before it, times below `after` after it.

    Updates with times below `netted` may be added up. `updates` gives a collection's updates with times that the batch
    closes, whenever they arrived. `failing` says whether a view or node has errors at the last time closed before it.
    `found` counts what half-joins find in this process. No change that looks rows up has a time below `begins`.
    """

    netted: int
    before: int
    after: int
    updates: Callable[[str], Updates]
    failing: Callable[[str], bool]
    found: Found = Found()  # one that nobody reads
    begins: int = MINIMUM


@dataclass(frozen=True, slots=True)
class CompiledPath:
    """An executable delta path."""

    spec: Path
    source: LinearOperator
    stages: Stages
    final: LinearOperator
    appearing: AppearingKeys | None = None  # None: the path's input is plain
    then: LinearOperator | None = None  # the operator that the rows of an input that is not plain pass next
    known: KnownRows | None = None  # of a query: finds the rows of the input with which to fill

    @property
    def reports(self) -> bool:
        """Whether an operator of it may report errors."""
        operators = (self.source, *(stage.then for stage in self.stages), self.final)
        return any(one.reports is not None for one in operators)

    @property
    def reads(self) -> list[str]:
        """The input's columns that the path reads."""
        return [column for column, _ in self.spec.fetch]

    def run(self, change: Updates, lookup: RunsOf, made: Made, closing: Closing) -> Iterator[None]:
        """Add the view's changes for a change of this path's input to `made`, and pause after each piece.

        Rows of a present or an absent input add only errors, where they fail.

        Raises:
            TooLarge: the changes are more than a view may have.
        """
        for morsel in _morsels(change):
            try:
                stream = self._entering(morsel, made.errors)
                yield from self._onward(stream, self.stages, lookup, made, closing, len(stream))
            except TooLarge as problem:
                first = self.stages[0].lookup if self.stages and not self.stages[0].otherwise else None
                if isinstance(first, HalfJoinOperator):  # another morsel may have the key that finds most
                    runs = lookup(first.spec.arrangement.collection, first.spec.version)
                    for each in _morsels(change):
                        problem.consider(first, self._entering(each, []), runs)
                raise

    def appear(self, lookup: RunsOf, made: Made, closing: Closing) -> Iterator[None]:
        """As `run`, for the keys that appear or disappear at times that close, if the input is not plain."""
        name = self.spec.collection
        updates = closing.updates(name) if self.appearing is not None else None
        if self.appearing is None or self.then is None or updates is None or not len(updates):
            return
        change = self.appearing(updates, lookup(name, Version.AFTER), closing.before, closing.after)
        for morsel in _morsels(change):
            stream = self.then(morsel, made.errors)
            yield from self._onward(stream, self.stages, lookup, made, closing, len(stream))

    def _entering(self, morsel: Updates, errors: list[Updates]) -> Updates:
        """Rows of the input, up to the step from which appearing keys follow the same way."""
        stream = self.source(morsel.renamed(self.spec.fetch), errors)
        if self.then is None:
            return stream
        return self.then(stream, errors) if self.spec.kind is InputKind.PADDED else stream.slice(0, 0)

    def _onward(
        self, stream: Updates, stages: Stages, lookup: RunsOf, made: Made, closing: Closing, size: int
    ) -> Iterator[None]:
        """Run the stream through the stages that are left. Each piece that a lookup finds goes to the end before the
        lookup continues.

        A key that has had n rows, one after the other, gives 2n - 1 pairs, of which all but few cancel: what was there
        before goes, and comes. So k lookups would make up to n^k rows of history, and 3^k of one changed row. Therefore
        the stream is added up when it has grown from the `size` that it had when it was last added up, or entered.
        """
        if not len(stream):  # an operator with an empty result has not made all its columns
            return
        if not stages:
            result = self.final(stream, made.errors)
            if len(result):
                made.take(result)
                yield
            return
        if len(stream) >= _GROWTH * size and not is_wide(stream.diff) and stream.diff.min() < 0 < stream.diff.max():
            stream = consolidate(stream)
            size = len(stream)
            if not size:
                return
        if not stages[0].otherwise:
            yield from self._past(stream, stages, lookup, made, closing, size)
            return
        parts_of = lambda spec: lookup(spec.arrangement.collection, spec.version)  # noqa: E731
        for rows, order in orders(stream, stages, parts_of, closing.netted, closing.begins):
            share = -(-size * len(rows) // len(stream))  # each order's rows grow from their share of the size
            yield from self._past(rows, order, lookup, made, closing, share)

    def _past(
        self, stream: Updates, stages: Stages, lookup: RunsOf, made: Made, closing: Closing, size: int
    ) -> Iterator[None]:
        """Run the stream through the first of the stages, and what it finds through the others."""
        half_join, then, rest = stages[0].lookup, stages[0].then, stages[1:]
        version = half_join.spec.version
        runs = lookup(half_join.spec.arrangement.collection, version)
        if isinstance(half_join, PresenceOperator):
            upper = closing.after if version is Version.AFTER else closing.before
            for found in half_join(stream, runs, closing.netted, upper, closing.begins):
                closing.found.rows += len(found)
                yield from self._onward(then(found, made.errors), rest, lookup, made, closing, size)
            return
        try:
            for found in half_join(stream, runs, closing.netted, closing.begins):
                closing.found.rows += len(found)
                yield from self._onward(then(found, made.errors), rest, lookup, made, closing, size)
        except TooLarge as problem:
            if len(stages) < len(self.stages) or stages[0] is not self.stages[0] or stages[0].otherwise:
                problem.consider(half_join, stream, runs)
            raise


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
        self.branches = [[_compile_path(path, registry) for path in branch.paths] for branch in plan.branches]
        self.constants = {item.name: (Run(_constant_rows(item)),) for item in plan.constants}
        self.told = frozenset(step.half_join.arrangement.collection for paths in self.branches for path in paths
                              if path.reports for step in path.spec.stages)  # rows of errors may be looked up in them
        self.reads = frozenset(plan.collections)
        # What closes of these matters. A loop's node may itself have made it, at a time that was open.
        self.asked = frozenset((*plan.collections, plan.output) if plan.loop else plan.asked)

    @cached_property
    def gates(self) -> Gates:
        """What lets a batch in. A query needs none."""
        return gates_of(self.plan.branches)

    def changes(
        self, staged: Mapping[str, Part], lookup: RunsOf, closing: Closing
    ) -> tuple[Updates, Updates]:
        """The view's output and error updates for a batch's staged runs and the times it closes, both consolidated.

        No time of the batch is below `closing.before`, so lookups may add up updates below it.

        Raises:
            DataError: the changes are more than one batch may make of a view.
        """
        made, lookup = Made(self.schema), self._with_constants(lookup)
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

    def begin(self) -> tuple[Updates, Updates]:
        """What constant rows make while every collection is empty, as output and error updates."""
        made, lookup = Made(self.schema), self._with_constants(lambda *_: ())
        closing = Closing(MINIMUM, MINIMUM, MINIMUM, lambda _: empty({}), lambda _: False)
        for paths in self.branches:
            constant_paths = (path for path in paths if path.spec.constant)
            for path in islice(constant_paths, 1):  # the other constants are there
                for part in self.constants[path.spec.collection]:
                    for _ in path.run(part.updates, lookup, made, closing):
                        pass
        return made.given()

    def fill(
        self, lookup: RunsOf, upper: int, closed: int = MINIMUM, *, gathered: bool = False
    ) -> Iterator[tuple[Updates, Updates]]:
        """The view's whole history so far, from one path per branch, in parts that fit in memory.

        Each part is the output and the error updates, both consolidated; there is at least one part. Times below
        `upper` are closed. Updates below `closed` may be added up. `gathered`: the caller keeps all parts in memory,
        however small, and adds up equal updates of the output.

        Corollary of the delta law: a fill is one path with its input's history as the change and all other inputs
        "after". A failure in another input's own operator is reported only by that input's path, so those operators run
        as well.

        Raises:
            DataError: the history is more than a view may have.
        """
        whole, begun = self._with_constants(lambda name, _: lookup(name, Version.AFTER)), False
        made = Made(self.schema, gathered=gathered)
        closing = Closing(closed, upper, upper, lambda _: empty({}), lambda _: False)  # no times close
        try:
            for branch, paths in zip(self.plan.branches, self.branches, strict=True):
                for number, path in enumerate(paths):
                    if number != branch.fill and not path.source.reports:
                        continue
                    runs = whole(path.spec.collection, Version.AFTER)
                    read = present(runs, closed, path.reads) if path.known is None else path.known(
                        runs, closed, upper, path.reads)  # fmt: skip
                    for one in read:
                        change = one.settled(closed) if closed > MINIMUM else one
                        if number == branch.fill:
                            for _ in path.run(change, whole, made, closing):
                                if gathered or made.rows >= limits.PIECE_ROWS or made.bytes >= limits.PIECE_BYTES:
                                    begun = True
                                    yield made.given()
                        else:
                            for morsel in _morsels(change):
                                path.source(morsel.renamed(path.spec.fetch), made.errors)
        except TooLarge as problem:
            raise problem.told(f"{self.name} would hold {problem.bound}") from None
        if not begun or made.rows or made.errors:
            yield made.given()

    def _with_constants(self, lookup: RunsOf) -> RunsOf:
        if not self.constants:
            return lookup
        return lambda name, version: self.constants[name] if name in self.constants else lookup(name, version)


class Made:
    """The updates that paths have made and `given` has not returned yet, checked against a view's bounds.

    Rows that cancel do not count. The rows are added up whenever they have grown by a part of a bound. This is a few
    times the work of adding up once, and takes memory for little more than the bound. `gathered`: returned updates stay
    in memory, so they count too; equal ones need not be added up.
    """

    def __init__(self, schema: Mapping[str, pa.DataType], *, gathered: bool = False) -> None:
        self._schema, self._gathered = schema, gathered
        self._outputs: list[Updates] = []
        self.errors: list[Updates] = []
        self.rows = self.bytes = 0  # of the updates that are not returned yet
        self._given_rows = self._given_bytes = 0
        self._let_in()

    def take(self, part: Updates) -> None:
        """Add a part of the view's output. A row whose weight does not fit an int64 becomes an error.

        Raises:
            TooLarge: the output is larger than a bound; a wrong join condition can make this many rows.
        """
        if is_wide(part.diff):
            part, heavy = split(part.select(self._schema))
            self.errors.append(heavy)
        self._outputs.append(part)
        self.rows += len(part)
        self.bytes += part.nbytes
        if self.rows > self._due_rows or self.bytes > self._due_bytes:
            self._add_up()

    def given(self) -> tuple[Updates, Updates]:
        """Return and forget the output and error updates so far, both consolidated unless `gathered`."""
        errors = _sum(map(in_limbs, self.errors), ERROR_SCHEMA) if self.errors else NO_ERRORS
        found = self._output(), errors
        self._outputs, self.rows, self.bytes = [], 0, 0
        self.errors.clear()
        self._given_rows += len(found[0])
        self._given_bytes += found[0].nbytes if self._gathered else 0
        self._let_in()
        return found

    def _output(self) -> Updates:
        if not self._gathered:
            return _sum(self._outputs, self._schema)
        return concat([part.select(self._schema) for part in self._outputs] or [empty(self._schema)])

    def _let_in(self) -> None:
        """Set how many rows and bytes may gather before they are added up."""
        self._due_rows = min(limits.MOST_ROWS // _STEPS, limits.MOST_ROWS - self._given_rows)
        self._due_bytes = min(MOST_BYTES // _STEPS, MOST_BYTES - self._given_bytes)

    def _add_up(self) -> None:
        whole = _sum(self._outputs, self._schema)
        self._outputs, self.rows, self.bytes = [whole], len(whole), whole.nbytes
        if self._given_rows + self.rows > limits.MOST_ROWS:
            raise TooLarge(f"more than {limits.MOST_ROWS:,} rows")
        if self._given_bytes + self.bytes > MOST_BYTES:
            raise TooLarge(f"more than {MOST_BYTES:,} bytes of rows")
        self._due_rows = self.rows + limits.MOST_ROWS // _STEPS
        self._due_bytes = self.bytes + MOST_BYTES // _STEPS


def _sum(parts: Iterable[Updates], schema: Mapping[str, pa.DataType]) -> Updates:
    chosen = [part.select(schema) for part in parts]
    return consolidate(concat(chosen)) if chosen else empty(schema)


def _morsels(change: Updates) -> Iterator[Updates]:
    if len(change) <= _FEW:
        if len(change):
            yield change
        return
    size = change.nbytes
    if len(change) <= limits.MORSEL_ROWS and size <= limits.PIECE_BYTES:
        yield change
        return
    width = size // len(change)
    rows = max(1, min(limits.MORSEL_ROWS, limits.PIECE_BYTES // max(1, width)))
    for start in range(0, len(change), rows):
        yield change.slice(start, min(start + rows, len(change)))


def _compile_path(path: Path, registry: Registry) -> CompiledPath:
    appearing = path.appearing
    return CompiledPath(
        path,
        compile_linear(path.source, registry),
        tuple(_compile_stage(stage, registry) for stage in path.stages),
        compile_linear(path.final, registry),
        None if appearing is None else compile_appearing(appearing, path.kind, registry),
        None if appearing is None else compile_linear(appearing.then, registry),
        None if path.known is None else compile_known(path.known, registry),
    )


def _compile_stage(stage: Stage, registry: Registry) -> CompiledStage:
    """Compile a stage. After an input that is not plain the next steps see its default row too, so none moves before
    the lookup."""
    if stage.half_join.kind is InputKind.PLAIN:
        return compiled([stage], registry)[0]
    return CompiledStage(compile_presence(stage.half_join, registry), compile_linear(stage.then, registry))


def _constant_rows(item: Constant) -> Updates:
    """The rows of VALUES as updates at the least time."""
    columns = {}
    for position, column in enumerate(item.columns):
        cells = [compile(row[position]).evaluate({}, 1).values for row in item.rows]
        columns[column.name] = pa.concat_arrays(cells) if cells else pa.nulls(0, arrow_type(column.type))
    length = len(item.rows)
    return Updates(columns, np.full(length, MINIMUM), constant(1, length))

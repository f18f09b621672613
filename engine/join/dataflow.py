"""The local runner of one view: its delta paths, compiled, and what a batch makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.memory import machine_memory
from halfjoin.engine.arrange.run import Part, Run, present
from halfjoin.engine.join.half_join import HalfJoinOperator
from halfjoin.engine.join.stages import compile_stage
from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.linear.heavy import in_limbs, split
from halfjoin.engine.linear.operators import LinearOperator, compile_linear
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import MINIMUM, MOST_ROWS, Updates, concat, constant, empty, is_wide
from halfjoin.errors import DataError
from halfjoin.planner.plan import Constant, Path, ViewPlan

# Rows of a change that go through a path together: enough to spread the cost of calls, few enough for the memory.
MORSEL = 1 << 18
MORSEL_BYTES = 1 << 28

FILL_ROWS = 1 << 19  # of a view's output that a first fill gathers before it gives them out
FILL_BYTES = 1 << 28  # the same, of their columns
MOST_BYTES = machine_memory() // 4  # of the rows that one batch makes of a view; `MOST_ROWS` says how many those may be

# The runs of a collection after (True) or before (False) the batch.
Lookup = Callable[[str, bool], Sequence[Part]]


@dataclass(frozen=True, slots=True)
class CompiledPath:
    """An executable delta path."""

    spec: Path
    source: LinearOperator
    stages: tuple[tuple[HalfJoinOperator, LinearOperator], ...]
    final: LinearOperator

    @property
    def reads(self) -> list[str]:
        """The input's columns."""
        return [column for column, _ in self.spec.fetch]

    def run(self, change: Updates, lookup: Lookup, errors: list[Updates], closed: int) -> Iterator[Updates]:
        """What a change of this path's input adds to the view, a morsel at a time; not consolidated."""
        for morsel in _morsels(change):
            yield from self._onward(self.source(morsel.renamed(self.spec.fetch), errors), 0, lookup, errors, closed)

    def _onward(
        self, stream: Updates, number: int, lookup: Lookup, errors: list[Updates], closed: int
    ) -> Iterator[Updates]:
        """The stream through the stages from `number` on; what a cross product makes goes through piece by piece."""
        if not len(stream):  # an operator that ran empty has not made all its columns
            return
        if number == len(self.stages):
            result = self.final(stream, errors)
            if len(result):
                yield result
            return
        half_join, then = self.stages[number]
        runs = lookup(half_join.spec.arrangement.collection, half_join.spec.after)
        for piece, parts in half_join.pieces(stream, runs, closed):
            for found in half_join(piece, parts, closed):
                yield from self._onward(then(found, errors), number + 1, lookup, errors, closed)


class Dataflow:
    """A view's plan made executable. It remembers nothing between batches: state is in the collections.

    Delta law. A result tuple is produced once, by the path of the component that arrived last; if several arrived in
    the same batch, by the one with the highest number. So path `i` looks input `j < i` up after the batch's updates
    went in, and `j > i` before.
    """

    def __init__(self, plan: ViewPlan, registry: Registry) -> None:
        self.plan, self.registry = plan, registry
        self.schema = {column.name: arrow_type(column.type) for column in plan.columns}
        self.branches = [[_compile_path(path, registry) for path in branch.paths] for branch in plan.branches]
        self.constants = {item.name: (Run(_constant_rows(item)),) for item in plan.constants}

    def changes(
        self, staged: Mapping[str, Part], lookup: Lookup, closed: int = MINIMUM
    ) -> tuple[Updates, Updates]:
        """The view's output and error updates for a batch's staged runs, both consolidated.

        No time of the batch is below `closed`, so what it looks up there is added up.
        """
        made = _Made(self.schema)
        for paths in self.branches:
            for path in paths:
                run = staged.get(path.spec.collection)
                if run is not None:
                    for change in run.pieces(names=path.reads):
                        for part in path.run(change, self._with_constants(lookup), made.errors, closed):
                            made.take(part)
        return made.given()

    def fill(self, lookup: Lookup, closed: int = MINIMUM) -> Iterator[tuple[Updates, Updates]]:
        """The view's whole history so far, from one path per branch, in parts that memory holds.

        Each part is the output and the error updates, both consolidated; there is at least one. The history of times
        below `closed` is not asked for, only what it adds up to.

        Corollary of the delta law: it is that path with its input's history as the change and all others "after".
        What fails in another input's own operator is reported by that input's path alone, so those operators run too.
        """
        whole = self._with_constants(lambda name, _: lookup(name, True))
        made = _Made(self.schema)
        for branch, paths in zip(self.plan.branches, self.branches, strict=True):
            for number, path in enumerate(paths):
                if number != branch.fill and not path.source.reports:
                    continue
                reads = whole(path.spec.collection, True)
                for change in present(reads, closed, path.reads):
                    if number == branch.fill:
                        for part in path.run(change, whole, made.errors, closed):
                            made.take(part)
                            if made.rows >= FILL_ROWS or made.bytes >= FILL_BYTES:
                                yield made.given()
                    else:
                        for morsel in _morsels(change):
                            path.source(morsel.renamed(path.spec.fetch), made.errors)
        yield made.given()

    def _with_constants(self, lookup: Lookup) -> Lookup:
        return lambda name, after: self.constants[name] if name in self.constants else lookup(name, after)


class _Made:
    """What paths have made and nobody has been given yet."""

    def __init__(self, schema: Mapping[str, pa.DataType]) -> None:
        self._schema = schema
        self._outputs: list[Updates] = []
        self.errors: list[Updates] = []
        self.rows = self.bytes = self._total = 0

    def take(self, part: Updates) -> None:
        """Note a part of the view's output; a row whose weight is none of an int64 is an error.

        Raises:
            DataError: it is more than a mistaken join condition should be allowed to make.
        """
        if is_wide(part.diff):
            part, heavy = split(part.select(self._schema))
            self.errors.append(heavy)
        self._outputs.append(part)
        self.rows += len(part)
        self.bytes += part.nbytes
        self._total += len(part)
        if self._total > MOST_ROWS or self.bytes > MOST_BYTES:
            most = f"{MOST_ROWS:,} rows" if self._total > MOST_ROWS else f"{MOST_BYTES:,} bytes"
            raise DataError(
                f"one batch would make more than {most} of a view: a join without an equality, or by a key "
                "that many rows share", remedy="EXPLAIN shows where"
            )

    def given(self) -> tuple[Updates, Updates]:
        """The output and error updates so far, both consolidated, which are let go of."""
        found = _sum(self._outputs, self._schema), _sum(map(in_limbs, self.errors), ERROR_SCHEMA)
        self._outputs, self.rows, self.bytes = [], 0, 0
        self.errors.clear()
        return found


def _sum(parts: Iterable[Updates], schema: Mapping[str, pa.DataType]) -> Updates:
    chosen = [part.select(schema) for part in parts]
    return consolidate(concat(chosen)) if chosen else empty(schema)


def _morsels(change: Updates) -> Iterator[Updates]:
    if len(change) <= 1:  # the common case, without counting
        yield from (change,) if len(change) else ()
        return
    width = sum(column.nbytes for column in change.columns.values()) // len(change)
    rows = max(1, min(MORSEL, MORSEL_BYTES // max(1, width)))
    for start in range(0, len(change), rows):
        yield change.slice(start, min(start + rows, len(change)))


def _compile_path(path: Path, registry: Registry) -> CompiledPath:
    return CompiledPath(
        path,
        compile_linear(path.source, registry),
        tuple(compile_stage(stage, registry) for stage in path.stages),
        compile_linear(path.final, registry),
    )


def _constant_rows(item: Constant) -> Updates:
    """The rows of VALUES as updates that have always been there."""
    columns = {}
    for position, column in enumerate(item.columns):
        cells = [compile(row[position]).evaluate({}, 1).values for row in item.rows]
        columns[column.name] = pa.concat_arrays(cells) if cells else pa.nulls(0, arrow_type(column.type))
    length = len(item.rows)
    return Updates(columns, np.full(length, MINIMUM), constant(1, length))

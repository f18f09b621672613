"""Half-joins that ask whether keys are present, in Spark's tasks: present, absent and padded inputs.

The tasks call the lookup of the local runner. What it says of a key depends on all rows of that key. So a small
collection is loaded whole by every task. A larger one goes through a shuffle together with the stream: all rows of a
key have one code, by which Spark divides both among the tasks. Spark's own meaning of values plays no part.

A row of the stream whose key is NULL, or fails, finds no row, but may pass as one whose key is absent. So it goes to
any task. A row of the collection whose key is NULL is found only where NULL matches NULL.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join.presence import compile_appearing, compile_presence
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.spark.frames import mapped, null
from halfjoin.engine.spark.layout import ERROR, ERRORS, Frame, Layout
from halfjoin.engine.spark.probing import STREAM_ROWS
from halfjoin.engine.spark.reducing import GROUP_ROWS, Code
from halfjoin.engine.spark.session import quiet
from halfjoin.engine.spark.task_errors import call
from halfjoin.engine.spark.tasks import Batches, OnUpdates, array_of, gathered, outgoing, passing, updates_of
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.codes import codes
from halfjoin.engine.updates.updates import DIFF, TIME, Updates, concat
from halfjoin.planner.plan import Appearing, ArrangementKey, HalfJoin, InputKind
from halfjoin.sql.expr import Column, columns_of

_CODE, _ORIGIN = pa.int64(), pa.int32()


class Times(NamedTuple):
    """The times of a lookup: those below `closed` may be added up; presence counts those below `upper`."""

    closed: int
    upper: int


@dataclass(frozen=True, slots=True)
class Asked:
    """Rows of an arrangement as a frame: fetched columns `f0`, ..., the key `j0`, ..., as columns of `layout`."""

    frame: Frame
    layout: Layout
    rows: int  # how many, about

    def coded(self) -> Frame:
        """The frame with the code of each row's key."""
        names = [name for name in self.layout.names if name.startswith("j")]
        coded = replace(self.layout, keys=(_CODE,))
        return mapped(self.frame, Code(self.layout, coded, tuple(names)))


def asked(
    frame: Frame, spec: HalfJoin, fetched: Sequence[pa.DataType], kinds: Sequence[pa.DataType], rows: int
) -> Asked:
    """An arrangement's rows that lookups may find. `frame` has fetched columns, then the key, then time and diff."""
    columns = [(f"f{i}", kind) for i, kind in enumerate(fetched)] + [(f"j{i}", kind) for i, kind in enumerate(kinds)]
    layout = Layout(tuple(columns))
    frame = frame.toDF(*layout.in_spark)
    for i, null_safe in enumerate(spec.null_safe):
        if not null_safe:
            frame = frame.where(f"c{len(fetched) + i} IS NOT NULL")
    return Asked(frame, layout, rows)


def by_loading(
    frame: Frame, layout: Layout, outputs: Layout, spec: HalfJoin, runs: Sequence[StoredRun], times: Times,
    registry: Registry,
) -> Frame:  # fmt: skip
    """The stream's rows with the result of the lookup for each. Every task loads the collection."""
    known = tuple(replace(run, files=tuple(replace(file, stats="") for file in run.files)) for run in runs)
    with quiet():
        task = Load(layout, outputs, spec, known, times, registry)
        return frame.mapInArrow(partial(call, task), outputs.struct)


def by_key(
    frame: Frame, layout: Layout, outputs: Layout, spec: HalfJoin, found: Asked, whole: int, times: Times,
    registry: Registry,
) -> Frame:  # fmt: skip
    """The stream's rows with the result of the lookup for each. Tasks get all rows of their keys. `whole`: the rows of
    the stream, about."""
    stream = mapped(frame, CodeOfProbe(layout, replace(layout, keys=(_CODE,)), spec, registry))
    task = Ask(layout, found.layout, outputs, spec, times, registry)
    width, tail = len(layout.columns), task.inputs.tail
    nulls = [f"{null(kind)} AS c{width + i}" for i, (_, kind) in enumerate(found.layout.columns)]
    stream = stream.selectExpr(*(f"c{i}" for i in range(width)), *nulls, "k0", "CAST(0 AS int) AS k1", *tail)
    columns = [f"{null(kind)} AS c{i}" for i, (_, kind) in enumerate(layout.columns)]
    columns += [f"c{i} AS c{width + i}" for i in range(len(found.layout.columns))]
    errors = [f"{null(kind)} AS {name}" for name, kind in ERRORS.items()] if layout.errors else []
    rows = found.coded().selectExpr(*columns, "k0", "CAST(1 AS int) AS k1", *errors, TIME, DIFF)
    return _divided(stream.union(rows), whole + found.rows, task)


def appearing(
    closing: Asked, after: Asked, spec: Appearing, kind: InputKind, times: Times, registry: Registry
) -> tuple[Frame, Layout]:
    """The keys that appear or disappear at times in `[closed, upper)`, as a stream.

    `closing` has the input's updates at these times, `after` all its updates.
    """
    names = [name for probe in spec.half_join.probe for name in columns_of(probe)]
    kinds = [kind for name, kind in closing.layout.columns if name.startswith("j")]
    default = [(name, arrow_type(expr.type)) for name, expr in spec.default]
    outputs = Layout((*zip(names, kinds, strict=True), *default))
    now, rows = closing.coded(), after.coded()
    if closing.rows <= STREAM_ROWS:
        rows = rows.join(F.broadcast(now.select("k0")), "k0", "left_semi")
    columns = [f"c{i}" for i in range(len(closing.layout.columns))]
    now, rows = (
        one.selectExpr(*columns, "k0", f"CAST({origin} AS int) AS k1", TIME, DIFF)
        for origin, one in enumerate((now, rows))
    )
    task = Appear(closing.layout, outputs, spec, kind, times, registry)
    return _divided(now.union(rows), closing.rows + after.rows, task), outputs


@dataclass(frozen=True, slots=True)
class CodeOfProbe:
    """The task that gives each row of a stream the code of the key that it looks up; any code if it finds no row."""

    inputs: Layout
    outputs: Layout
    spec: HalfJoin
    registry: Registry

    def compile(self) -> OnUpdates:
        """The function of updates."""
        operator = compile_presence(self.spec, self.registry)

        def run(updates: Updates, errors: list[Updates]) -> tuple[Updates, list[pa.Array]]:
            keys, alive = operator.keys(updates)
            return updates, [pa.array(np.where(alive, codes(keys, len(updates)), np.arange(len(updates))))]

        return run


@dataclass(frozen=True, slots=True)
class Load:
    """The task that looks its rows up in a collection that it loads."""

    inputs: Layout
    outputs: Layout
    spec: HalfJoin
    runs: tuple[StoredRun, ...]
    times: Times
    registry: Registry

    def __call__(self, batches: Batches) -> Batches:
        """The function for `mapInArrow`."""
        operator, found = compile_presence(self.spec, self.registry), None
        for table in gathered(batches):
            if found is None:
                found = [Run(piece) for run in self.runs for piece in run.pieces()]
            table = yield from _without_errors(table, self.inputs, self.outputs)
            if len(table):
                for made in operator(updates_of(table, self.inputs), found, *self.times):
                    if len(made):
                        yield from outgoing(made, [], self.outputs)


@dataclass(frozen=True, slots=True)
class Ask:
    """The task that looks the rows of a stream up among the rows of an arrangement, both of the keys that it gets.

    Its rows have the columns of the stream, then those of the arrangement, then the code and the origin: 0 for the
    stream, 1 for the arrangement.
    """

    stream: Layout
    found: Layout
    outputs: Layout
    spec: HalfJoin
    times: Times
    registry: Registry

    @property
    def inputs(self) -> Layout:
        """The layout of its rows."""
        columns = [(f"s{i}", kind) for i, (_, kind) in enumerate(self.stream.columns)]
        return Layout((*columns, *self.found.columns), (_CODE, _ORIGIN), self.stream.errors)

    def __call__(self, batches: Batches) -> Batches:
        """The function for `mapInArrow`."""
        of_stream = [(f"s{i}", name) for i, name in enumerate(self.stream.names)]
        of_found = [(name, name) for name in self.found.names]
        streams, rows = list[Updates](), list[Updates]()
        for table in gathered(batches):
            table = yield from _without_errors(table, self.inputs, self.outputs)
            if len(table):
                updates, origin = updates_of(table, self.inputs), array_of(table, "k1").to_numpy()
                streams.append(updates.filter(origin == 0).renamed(of_stream))
                rows.append(updates.filter(origin == 1).renamed(of_found))
        operator = compile_presence(_by_columns(self.spec), self.registry)
        found = [Run(concat(rows))] if rows else []
        for stream in filter(len, streams):
            for made in operator(stream, found, *self.times):
                if len(made):
                    yield from outgoing(made, [], self.outputs)


@dataclass(frozen=True, slots=True)
class Appear:
    """The task that finds out which of the keys that it gets appear or disappear.

    Its rows have the columns of an arrangement, then the code and the origin: 0 for what closes, 1 for all rows.
    """

    found: Layout
    outputs: Layout
    spec: Appearing
    kind: InputKind
    times: Times
    registry: Registry

    @property
    def inputs(self) -> Layout:
        """The layout of its rows."""
        return replace(self.found, keys=(_CODE, _ORIGIN))

    def __call__(self, batches: Batches) -> Batches:
        """The function for `mapInArrow`."""
        spec = replace(self.spec, half_join=_by_columns(self.spec.half_join))
        operator = compile_appearing(spec, self.kind, self.registry)
        closing, after = list[Updates](), list[Updates]()
        for table in gathered(batches):
            updates, origin = updates_of(table, self.inputs), array_of(table, "k1").to_numpy()
            closing.append(updates.filter(origin == 0))
            after.append(updates.filter(origin == 1))
        if any(map(len, closing)):
            made = operator(concat(closing), [Run(concat(after))], *self.times)
            if len(made):
                yield from outgoing(made, [], self.outputs)


def _by_columns(spec: HalfJoin) -> HalfJoin:
    """The same half-join, of rows whose fetched columns and key are columns, named as in `Asked`."""
    keys = tuple(Column(f"j{i}", expr.type) for i, expr in enumerate(spec.arrangement.keys))
    fetch = tuple((f"f{i}", name) for i, (_, name) in enumerate(spec.fetch))
    return replace(spec, arrangement=ArrangementKey(spec.arrangement.collection, keys), fetch=fetch)


def _without_errors(table: pa.Table, inputs: Layout, outputs: Layout) -> Generator[pa.RecordBatch, None, pa.Table]:
    """Pass failing rows on. Returns the others."""
    if not inputs.errors:
        return table
    yield from passing(table, outputs)
    return table.filter(table.column(ERROR).is_null())


def _divided(frame: Frame, rows: int, task: Ask | Appear) -> Frame:
    """Run a task on the rows, with all of a key in one task. `rows`: how many there are, about."""
    with quiet():
        frame = frame.repartition(rows // GROUP_ROWS + 1, "k0")
        return frame.mapInArrow(partial(call, task), task.outputs.struct)

"""A view's plan as Spark DataFrames: delta paths of half-joins and linear operators, summed.

Delta law. A result tuple is produced once, by the path of the component that arrived last, so a half-join reads the
arrangement's files either before or after the batch; its time is the later of the two, its diff their product.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from halfjoin.engine.dataflow import Lookup
from halfjoin.engine.run import Part
from halfjoin.engine.runners import Held
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.spark.files import AS_WRITTEN, StateFiles, located
from halfjoin.engine.spark.layout import ERROR, ERRORS, Layout, may_multiply, may_report
from halfjoin.engine.spark.native import natively
from halfjoin.engine.spark.prefilter import prefilter
from halfjoin.engine.spark.pruning import Range, range_of
from halfjoin.engine.spark.session import DATA_ERROR, quiet
from halfjoin.engine.spark.tasks import Apply, Arrange, Task, in_tasks
from halfjoin.engine.spark.types import has_floats, spark_type
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.tables import Registry
from halfjoin.engine.updates import DIFF, TIME, TOO_HEAVY, TOO_MANY
from halfjoin.planner.linear import Linear
from halfjoin.planner.plan import ArrangementKey, HalfJoin, Path, Stage, ViewPlan
from halfjoin.sql.expr import Column, Expr, columns_of

Frame: TypeAlias = Any  # a Spark DataFrame, classic or Connect
Schema: TypeAlias = Mapping[str, pa.DataType]
Spans: TypeAlias = Mapping[str, Range]  # of columns of a collection that is looked up

# Rows of a stream that every task gets whole, instead of all rows of the arrangement being shuffled to meet them.
BROADCAST = 1_000_000

_TIME2, _DIFF2 = "__time2", "__diff2"  # of the rows looked up


@dataclass(frozen=True, slots=True)
class SparkFlow:
    """A plan bound to a session and to the state's files. Lazy: nothing runs before the frames are used."""

    plan: ViewPlan
    registry: Registry
    session: Any
    held: Held
    parts_of: Lookup
    files: StateFiles

    @property
    def layout(self) -> Layout:
        """Of the results."""
        columns = tuple((column.name, arrow_type(column.type)) for column in self.plan.columns)
        paths = (path for branch in self.plan.branches for path in branch.paths)
        operators = [part for path in paths for part in (path.source, *(s.then for s in path.stages), path.final)]
        return Layout(columns, (), any(map(may_report, operators)))

    def changes(self, staged: Mapping[str, Part]) -> Frame | None:
        """The view's output and failing rows for a batch's changes, summed."""
        paths = [path for branch in self.plan.branches for path in branch.paths if path.collection in staged]
        return self._sum(self._carried([self._stream(path, staged[path.collection]) for path in paths], self.parts_of))

    def fill(self) -> Frame | None:
        """The view's whole history, from one path per branch; None where it is certainly empty.

        What fails in another input's own operator is reported by that input's path alone, so those operators run too.
        """
        streams, failures = [], []
        for branch in self.plan.branches:
            for number, path in enumerate(branch.paths):
                whole = self.parts_of(path.collection, True)
                if whole and number == branch.fill:
                    streams.append(self._history(path, whole))
                elif whole and may_report(path.source):
                    failures.append(self._failures(path, whole))
        return self._sum([*self._carried(streams, lambda name, _: self.parts_of(name, True)), *failures])

    def _sum(self, parts: list[Frame]) -> Frame | None:
        return summed(reduce(_union, parts), self.layout) if parts else None

    def _seen(self, parts: Sequence[Part]) -> list[StoredRun]:
        return [run for part in parts for run in self.files.runs(part)]

    def _source(self, path: Path, changed: Sequence[Part]) -> tuple[Frame, Layout]:
        schema = self.held.schema(path.collection)
        layout = Layout(()).joined(schema, path.fetch)
        frame = read(self.session, self._seen(changed), schema, [name for name, _ in path.fetch])
        return _filtered(frame, prefilter(path.source, {name: f"c{i}" for i, name in enumerate(layout.names)})), layout

    def _failures(self, path: Path, changed: Sequence[Part]) -> Frame:
        """What a change of the path's input adds to the errors of its own operator."""
        frame, layout = self._apply(*self._source(path, changed), [path.source], ())
        columns = [f"{_null(kind)} AS c{i}" for i, (_, kind) in enumerate(self.layout.columns)]
        return frame.where(f"{ERROR} IS NOT NULL").selectExpr(*columns, *layout.tail)

    def _stream(self, path: Path, change: Part) -> _Stream:
        """What a change puts on a path."""
        size = None if may_multiply(path.source) else float(len(change))
        frame, layout = self._source(path, [change])
        whole = self.held.rows(path.collection)
        return _Stream(frame, layout, path.source, path.stages, path.final, size, whole, self._spans(path, change))

    def _history(self, path: Path, whole: Sequence[Part]) -> _Stream:
        """All of an input on its path."""
        frame, layout = self._source(path, whole)
        return _Stream(frame, layout, path.source, path.stages, path.final, None, 0, {})

    def _carried(self, streams: list[_Stream], parts_of: Lookup) -> list[Frame]:
        """What streams add to the view. Where paths have the rest of their stages in common, they go on as one."""
        results = [stream for stream in streams if not stream.stages]
        waiting = [stream for stream in streams if stream.stages]
        while waiting:
            longest = max(len(stream.stages) for stream in waiting)
            now = [self._keyed(stream) for stream in waiting if len(stream.stages) == longest]
            waiting = [stream for stream in waiting if len(stream.stages) < longest]
            for stream in _merged(now):
                after = self._past_stage(stream, parts_of)
                (waiting if after.stages else results).append(after)
        return [self._finished(stream) for stream in results]

    def _keyed(self, stream: _Stream) -> _Stream:
        """The stream with the keys of its next half-join."""
        probe = stream.stages[0].half_join.probe
        frame, layout = self._apply(stream.frame, stream.layout, [stream.due], probe)
        return replace(stream, frame=frame, layout=layout, due=Linear())

    def _past_stage(self, stream: _Stream, parts_of: Lookup) -> _Stream:
        stage, frame = stream.stages[0], stream.frame
        how = None  # known rows decide: going by the bytes of files, which pack them tightly, Spark broadcasts millions
        if stream.size is not None and stream.size <= BROADCAST:
            frame = F.broadcast(frame)
        elif stream.size is not None:
            how = "broadcast" if self.held.rows(stage.half_join.arrangement.collection) <= BROADCAST else "merge"
        frame, layout = self._half_join(frame, stream.layout, stage, parts_of, stream.spans, how)
        size = self._found(stream, stage.half_join.arrangement)
        return _Stream(frame, layout, stage.then, stream.stages[1:], stream.final, size, stream.whole, {})

    def _finished(self, stream: _Stream) -> Frame:
        frame, layout = self._apply(stream.frame, stream.layout, [stream.due, stream.final], ())
        return _arranged(frame, layout, self.layout)

    def _found(self, stream: _Stream, key: ArrangementKey) -> float | None:
        """The rows expected after a half-join; None where nothing is known.

        Where nobody counted the keys, there are taken to be as many as the stream's own input has rows.
        """
        distinct = self.held.distinct(key) or stream.whole
        if stream.size is None or not distinct:
            return None
        return stream.size * max(1.0, self.held.rows(key.collection) / distinct)

    def _apply(
        self, frame: Frame, layout: Layout, operators: Sequence[Linear], probes: Sequence[Expr]
    ) -> tuple[Frame, Layout]:
        frame, layout, left = natively(frame, layout, operators)
        after = layout.through(left)
        keyed = Layout(after.columns, tuple(arrow_type(expr.type) for expr in probes), after.errors)
        if left or not all(isinstance(expr, Column) for expr in probes):
            return mapped(frame, Apply(layout, keyed, tuple(left), tuple(probes), self.registry)), keyed
        if not probes:
            return frame, keyed
        keys = [f"c{layout.position(expr.name)} AS k{i}" for i, expr in enumerate(probes) if isinstance(expr, Column)]
        return frame.selectExpr(*(f"c{i}" for i in range(len(layout.columns))), *keys, *layout.tail), keyed

    def _half_join(
        self, frame: Frame, layout: Layout, stage: Stage, parts_of: Lookup, spans: Spans, how: str | None
    ) -> tuple[Frame, Layout]:
        """The stream's rows with each of their partners; failing rows go through it alone. `how` is a hint to Spark."""
        spec, collection = stage.half_join, stage.half_join.arrangement.collection
        found, kinds = self._arrangement(spec, parts_of(collection, spec.after), spans)
        found = _filtered(found, prefilter(stage.then, {new: f"f{i}" for i, (_, new) in enumerate(spec.fetch)}))
        found = found if how is None else found.hint(how)
        conditions = [
            _equal(f"k{i}", left, f"j{i}", right, null_safe)
            for i, (left, right, null_safe) in enumerate(zip(layout.keys, kinds, spec.null_safe, strict=True))
        ]
        diff = f"coalesce(try_multiply({DIFF}, {_DIFF2}), raise_error('{DATA_ERROR}{TOO_HEAVY}'))"
        if layout.errors:
            failed = f"{ERROR} IS NOT NULL"
            condition = " AND ".join([f"NOT ({failed})", *conditions])
            frame = frame.join(found, F.expr(condition), "left").where(f"{failed} OR {_TIME2} IS NOT NULL")
            diff = f"CASE WHEN {failed} THEN {DIFF} ELSE {diff} END"
        elif conditions:
            frame = frame.join(found, F.expr(" AND ".join(conditions)), "inner")
        else:
            frame = frame.crossJoin(found)
        joined = layout.joined(self.held.schema(collection), spec.fetch)
        held = len(layout.columns)
        columns = [*(f"c{i}" for i in range(held)), *(f"f{i} AS c{held + i}" for i in range(len(spec.fetch)))]
        columns += [*joined.tail[:-2], f"greatest({TIME}, {_TIME2}) AS {TIME}", f"{diff} AS {DIFF}"]
        return frame.selectExpr(*columns), joined

    def _spans(self, path: Path, change: Part) -> Spans:
        """The ranges of the keys that the path's first half-join looks up, where they are columns of its input."""
        origin = {new: name for name, new in path.fetch}
        found: dict[str, Range] = {}
        join = path.stages[0].half_join if path.stages else None
        if join is None or join.arrangement.through is not None or path.collection.startswith("="):
            return found
        schema = self.held.schema(path.collection)
        for probe, key, null_safe in zip(join.probe, join.arrangement.keys, join.null_safe, strict=True):
            if isinstance(probe, Column) and isinstance(key, Column) and probe.name in origin and not null_safe:
                name = origin[probe.name]
                span = range_of(change, name, schema[name])
                if span is not None:
                    found[key.name] = span
        return found

    def _arrangement(
        self, spec: HalfJoin, parts: Sequence[Part], spans: Spans
    ) -> tuple[Frame, tuple[pa.DataType, ...]]:
        """Rows to look up: what is fetched as `f0`, ..., the key as `j0`, ..., and the key's types.

        What is outside the `spans` of columns may be left out.
        """
        for name, span in spans.items():
            parts = [span.files(part, name) for part in parts]
        runs = self._seen(parts)
        key, schema = spec.arrangement, self.held.schema(spec.arrangement.collection)
        fetch = [name for name, _ in spec.fetch]
        if key.through is None and all(isinstance(expr, Column) for expr in key.keys):
            names = [expr.name for expr in key.keys if isinstance(expr, Column)]
            frame = read(self.session, runs, schema, [*fetch, *names])
            for name, span in spans.items():
                if any(span.skips(run, name) for run in runs):
                    frame = frame.where(span.condition(F.col(f"c{len(fetch) + names.index(name)}")))
            kinds = tuple(schema[name] for name in names)
        else:
            needed = list(schema) if key.through is not None else sorted(
                {*fetch, *(name for expr in key.keys for name in columns_of(expr))})  # fmt: skip
            layout = Layout(tuple((name, schema[name]) for name in needed))
            kinds = tuple(arrow_type(expr.type) for expr in key.keys)
            keyed = Layout(tuple((name, schema[name]) for name in fetch), kinds)
            frame = mapped(read(self.session, runs, schema, needed), Arrange(layout, keyed, key, self.registry))
        fetched, keys = (f"f{i}" for i in range(len(fetch))), (f"j{i}" for i in range(len(kinds)))
        return frame.toDF(*fetched, *keys, _TIME2, _DIFF2), kinds


@dataclass(frozen=True, slots=True)
class _Stream:
    """Rows on their way along a path: an operator that is due, the stages and the final operator before them.

    `size`: how many rows are expected, None where nothing is known; `whole`: how many the path's input has. `spans`:
    the ranges of what is looked up next.
    """

    frame: Frame
    layout: Layout
    due: Linear
    stages: tuple[Stage, ...]
    final: Linear
    size: float | None
    whole: int
    spans: Spans


def _merged(streams: Sequence[_Stream]) -> list[_Stream]:
    """Those that have the same before them as one: the half-joins they share read their arrangement once."""
    groups: dict[object, list[_Stream]] = {}
    for stream in streams:
        same = (repr((stream.stages, stream.final)), frozenset(stream.layout.columns), stream.layout.keys)
        groups.setdefault(same, []).append(stream)
    return [_as_one(group) if len(group) > 1 else group[0] for group in groups.values()]


def _as_one(streams: Sequence[_Stream]) -> _Stream:
    first = streams[0]
    layout = replace(first.layout, errors=any(stream.layout.errors for stream in streams))
    frames = [_arranged(stream.frame, stream.layout, layout) for stream in streams]
    sizes = [stream.size for stream in streams]
    size = None if None in sizes else sum(size for size in sizes if size is not None)
    whole = min(stream.whole for stream in streams)
    return replace(first, frame=reduce(_union, frames), layout=layout, size=size, whole=whole, spans={})


def _union(left: Frame, right: Frame) -> Frame:
    return left.union(right)


def read(session: Any, runs: Iterable[StoredRun], schema: Schema, names: Sequence[str]) -> Frame:
    """Columns of updates in files that tasks see as `c0`, `c1`, ..., `__time`, `__diff`. A name may come twice."""
    files = [str(run.place / file.name) for run in runs for file in run.files]
    different = list(dict.fromkeys(names))
    fields = [StructField(name, spark_type(schema[name])) for name in different]
    struct = StructType([*fields, StructField(TIME, LongType()), StructField(DIFF, LongType())])
    with quiet():
        reader = session.read.schema(struct).options(**AS_WRITTEN)
        frame = reader.parquet(*map(located, files)) if files else session.createDataFrame([], struct)
    # By position: names may have a meaning in SQL.
    frame = frame.toDF(*(f"x{i}" for i in range(len(different))), TIME, DIFF)
    return frame.selectExpr(*(f"x{different.index(name)} AS c{i}" for i, name in enumerate(names)), TIME, DIFF)


def _filtered(frame: Frame, condition: Any) -> Frame:
    return frame if condition is None else frame.where(condition)


def mapped(frame: Frame, task: Task) -> Frame:
    """A task's function on every batch of a frame."""
    with quiet():
        return frame.mapInArrow(in_tasks(task), task.outputs.struct)


def summed(frame: Frame, layout: Layout, *, by_time: bool = True) -> Frame:
    """Equal rows (of one time) as one, diffs summed, zeros dropped.

    The floats of a group are equal but perhaps not the same (-0.0 and 0.0): one of them stands for all, as given.
    """
    names = [name for name in layout.in_spark if name != DIFF and (by_time or name != TIME)]
    floats = [f"c{i}" for i, (_, kind) in enumerate(layout.columns) if has_floats(kind)]
    given = [F.expr(f"first({name}) AS {name}_given") for name in floats]
    total = F.expr(f"coalesce(try_sum({DIFF}), raise_error('{DATA_ERROR}{TOO_MANY}')) AS {DIFF}")
    groups = frame.groupBy(*names).agg(total, *given).where(f"{DIFF} <> 0")
    return groups.selectExpr(*(f"{name}_given AS {name}" if name in floats else name for name in names), DIFF)


def _arranged(frame: Frame, layout: Layout, wanted: Layout) -> Frame:
    """Columns in the wanted order, the keys, and room for failing rows."""
    if layout == wanted:
        return frame
    columns = [f"c{layout.position(name)} AS c{i}" for i, name in enumerate(wanted.names)]
    columns += [f"k{i}" for i in range(len(wanted.keys))]
    if wanted.errors and not layout.errors:
        columns += [f"{_null(kind)} AS {name}" for name, kind in ERRORS.items()]
        return frame.selectExpr(*columns, TIME, DIFF)
    return frame.selectExpr(*columns, *wanted.tail)


def _null(kind: pa.DataType) -> str:
    return f"CAST(NULL AS {spark_type(kind).simpleString()})"


def _equal(left: str, left_kind: pa.DataType, right: str, right_kind: pa.DataType, null_safe: bool) -> str:
    if left_kind != right_kind and pt.is_integer(left_kind):
        left, right = f"CAST({left} AS bigint)", f"CAST({right} AS bigint)"
    return f"{left} {'<=>' if null_safe else '='} {right}"

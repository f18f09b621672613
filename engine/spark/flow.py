"""Run a view's plan as Spark DataFrames: delta paths of half-joins and linear operators, summed.

Delta law. A result tuple is produced once, by the path of the component that arrived last. So a half-join reads the
arrangement's files either before or after the batch. Its time is the later of the two; its diff is their product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from pyspark.sql import functions as F

from halfjoin.engine.arrange.changes import StoredChanges
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.batch.runner import Held
from halfjoin.engine.join.closing import RunsOf
from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.spark.asking import Times, appearing, by_key, by_loading
from halfjoin.engine.spark.files import StateFiles
from halfjoin.engine.spark.frames import arranged, mapped, not_before, null, read, summed, union
from halfjoin.engine.spark.layout import ERROR, Frame, Layout, may_multiply, may_report
from halfjoin.engine.spark.native import natively
from halfjoin.engine.spark.partners import Partners, filtered, spans_of
from halfjoin.engine.spark.prefilter import prefilter
from halfjoin.engine.spark.probing import (
    STREAM_ROWS,
    Probe,
    Resting,
    Store,
    alike,
    is_simple,
    is_small,
    shares,
    storable,
    width_of,
)
from halfjoin.engine.spark.session import quiet, translated
from halfjoin.engine.spark.streams import Spans, Stream, merged
from halfjoin.engine.spark.tasks import Apply
from halfjoin.engine.spark.writing import answers_by_number
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.updates import TIME
from halfjoin.planner.linear import Linear
from halfjoin.planner.plan import ArrangementKey, InputKind, Join, Path, Version
from halfjoin.sql.expr import Column, Expr

Closed: TypeAlias = Mapping[str, StoredChanges]  # the updates that a batch closes, by collection

_PLAIN = InputKind.PLAIN


@dataclass(frozen=True, slots=True)
class Found:
    """Results in files, and failing rows in files of their own. Equal rows are not added up."""

    output: StoredRun
    errors: StoredRun


@dataclass(frozen=True, slots=True)
class SparkFlow:
    """A plan bound to a session and to the state's files. Frames are lazy, and valid as long as this object exists.

    `times`: those of lookups that ask whether keys are present, in each version of a collection.
    """

    plan: Join
    registry: Registry
    session: Any
    held: Held
    parts_of: RunsOf
    files: StateFiles
    times: Mapping[Version, Times]
    _between: list[StoredRun] = field(default_factory=list)  # files that jobs have written and frames read
    _cached: list[Frame] = field(default_factory=list)  # streams that Spark keeps

    def close(self) -> None:
        """Let Spark forget the streams that it keeps. Frames stay valid, but compute them anew."""
        while self._cached:
            self._cached.pop().unpersist()

    @property
    def _partners(self) -> Partners:
        return Partners(self.session, self.held, self.registry)

    @property
    def layout(self) -> Layout:
        """The layout of the results."""
        columns = tuple((column.name, arrow_type(column.type)) for column in self.plan.columns)
        paths = (path for branch in self.plan.branches for path in branch.paths)
        operators = [part for path in paths for part in (path.source, *(s.then for s in path.stages), path.final)]
        return Layout(columns, (), any(map(may_report, operators)))

    @property
    def divides(self) -> bool:
        """Whether several tasks can share each lookup that asks whether a key is present.

        They cannot if every row of the stream has the same key, and the collection is too large to be loaded by each.
        """
        paths = [path for branch in self.plan.branches for path in branch.paths]
        joins = [stage.half_join for path in paths for stage in path.stages if stage.half_join.kind is not _PLAIN]
        joins += [path.appearing.half_join for path in paths if path.appearing is not None and not path.constant]
        whole = [join.arrangement.collection for join in joins if not join.probe]
        return all(self._is_loadable(name, self._seen(self.parts_of(name, Version.AFTER))) for name in whole)

    def changes(self, staged: Mapping[str, Sequence[Part]], closing: Closed) -> Frame | Found | None:
        """The view's output and failing rows for a batch's changes.

        Tasks look up small streams, those with equally many remaining stages together. Spark's joins do the rest.
        If tasks do it all and probably find few rows, they write them to files. A frame is summed, unless the node is
        passing.
        """
        paths = [path for branch in self.plan.branches for path in branch.paths]
        changed = [(path, self._resting(path, staged[path.collection]))
                   for path in paths if path.collection in staged]  # fmt: skip
        waiting = [stream for path, stream in changed if path.appearing is None]
        streams, results, last = list[Resting](), list[Frame](), list[Probe]()
        while waiting:
            left = max(len(stream.stages) for stream in waiting)
            now = [stream for stream in waiting if len(stream.stages) == left]
            waiting = [stream for stream in waiting if len(stream.stages) < left]
            probes = []
            for group in alike(now):
                probe = self._probe(group)
                if probe is None:
                    streams += group
                elif not probe.shares:  # the arrangement has no files with such keys
                    continue
                elif left == 1:
                    last.append(probe)
                else:
                    probes.append(probe)
            waiting += self._rested(probes)
        moving = [self._stream(stream, float(len(stream))) for stream in streams]
        for path, stream in changed:
            if path.kind is InputKind.PADDED:
                moving.append(self._entered(path, stream))
            elif path.appearing is not None and may_report(path.source):
                results.append(self._failures(stream))
        moving += [found for path in paths if (found := self._appearing(path, closing)) is not None]
        if last and not moving and not results and self._are_few(last):
            return self._found_by(last)
        results += [arranged(probe.rows(self.session), probe.outputs, self.layout) for probe in last]
        return self._sum([*results, *self._carried(moving, self.parts_of, "merge")])

    def fill(self, since: int, *, lazy: bool = False) -> Frame | None:
        """The view's whole history, from one path of each branch. None if it is certainly empty.

        `lazy`: no job runs before somebody asks for the frame's rows. Otherwise jobs may count streams.

        Times below `since`, such as those of constants, become `since`.

        Only an input's own path reports errors of its source operator, so the source operators of other paths run too.
        """
        streams, failures = [], []
        for branch in self.plan.branches:
            for number, path in enumerate(branch.paths):
                whole = self.parts_of(path.collection, Version.AFTER)
                if whole and number == branch.fill:
                    stream = self._resting(path, whole)
                    streams.append(self._stream(stream, None if lazy else float(len(stream))))
                elif whole and may_report(path.source):
                    failures.append(self._failures(self._resting(path, whole)))
        made = self._carried(streams, lambda name, _: self.parts_of(name, Version.AFTER), None)
        return self._sum([not_before(frame, since) for frame in (*made, *failures)])

    def _sum(self, parts: list[Frame]) -> Frame | None:
        """All rows, summed by a shuffle. What is passed on to reduces needs no sum of rows: they add up sums."""
        if not parts or self.plan.passing:
            return union(parts) if parts else None
        return summed(union(parts), self.layout)

    def _seen(self, parts: Sequence[Part]) -> list[StoredRun]:
        return [run for part in parts for run in self.files.runs(part)]

    def _within(self, spans: Spans, parts: Sequence[Part]) -> list[StoredRun]:
        """The files of an arrangement that may have rows within the ranges of columns."""
        for name, span in spans.items():
            parts = [span.files(part, name) for part in parts]
        return self._seen(parts)

    def _resting(self, path: Path, parts: Sequence[Part]) -> Resting:
        """The stream that a change (or all rows) of a path's input starts."""
        schema, whole = self.held.schema(path.collection), self.held.rows(path.collection)
        return Resting(tuple(self._seen(parts)), schema, path.fetch, path.source, path.fixed, path.final, whole)

    def _source(self, stream: Resting) -> tuple[Frame, Layout]:
        layout = stream.source
        frame = read(self.session, stream.runs, stream.schema, [name for name, _ in stream.fetch])
        return filtered(frame, prefilter(stream.due, {name: f"c{i}" for i, name in enumerate(layout.names)})), layout

    def _failures(self, stream: Resting) -> Frame:
        """The errors that the next operator reports for a stream."""
        frame, layout = self._apply(*self._source(stream), [stream.due], ())
        columns = [f"{null(kind)} AS c{i}" for i, (_, kind) in enumerate(self.layout.columns)]
        return frame.where(f"{ERROR} IS NOT NULL").selectExpr(*columns, *layout.tail)

    def _stream(self, stream: Resting, size: float | None) -> Stream:
        """Read a stream from its files as a frame."""
        frame, layout = self._source(stream)
        size = None if may_multiply(stream.due) else size
        spans, width = ({}, None) if size is None else (spans_of([stream]), width_of(stream.runs))
        sure = size is not None
        return Stream(frame, layout, stream.due, stream.stages, stream.final, size, sure, width, stream.whole, spans)

    def _entered(self, path: Path, stream: Resting) -> Stream:
        """The rows of a padded input as a stream, before the step from which appearing keys follow the same way."""
        assert path.appearing is not None
        frame, layout = self._apply(*self._source(stream), [path.source], ())
        return Stream(frame, layout, path.appearing.then, path.fixed, path.final, None, False, None, stream.whole, {})

    def _appearing(self, path: Path, closing: Closed) -> Stream | None:
        """The keys that appear or disappear in a path's input at times that close. None if there are none."""
        if path.appearing is None or path.constant:
            return None
        changes, spec, times = closing[path.collection], path.appearing.half_join, self.times[Version.AFTER]
        if changes.low == changes.high or not changes.most:
            return None
        now = self._partners.asked(spec, self._seen(changes.parts), {})
        within = (F.col(TIME) >= F.lit(changes.low)) & (F.col(TIME) < F.lit(changes.high))
        now = replace(now, frame=now.frame.where(within))
        after = self._partners.asked(spec, self._seen(self.parts_of(path.collection, Version.AFTER)), {})
        frame, layout = appearing(now, after, path.appearing, path.kind, times, self.registry)
        then, whole = path.appearing.then, self.held.rows(path.collection)
        return Stream(frame, layout, then, path.fixed, path.final, None, False, None, whole, {})

    def _probe(self, streams: Sequence[Resting]) -> Probe | None:
        """The next half-join of streams with equal remaining stages, in tasks. None if Spark's joins suit it better."""
        (first, *_) = streams
        every = width_of([run for stream in streams for run in stream.runs])
        if not first.stages or first.stages[0].half_join.kind is not _PLAIN:
            return None
        if not all(map(is_simple, streams)) or not is_small(sum(map(len, streams)), every):
            return None
        stage, *more = first.stages
        spec = stage.half_join
        if more and may_report(stage.then):
            return None
        runs = self._within(spans_of(streams), self.parts_of(spec.arrangement.collection, spec.version))
        schema = self.held.schema(spec.arrangement.collection)
        if not storable(schema.values()):
            return None
        operators = (stage.then,) if more else (stage.then, first.final)
        outputs = first.layout.joined(schema, spec.fetch).through(operators)
        if more and not storable(kind for _, kind in outputs.columns):
            return None
        return Probe(tuple(streams), shares(runs), operators, outputs, self.registry)

    def _rested(self, probes: Sequence[Probe]) -> list[Resting]:
        """Run probes and store what they find in files, as streams with the remaining stages."""
        if not probes:
            return []
        jobs, places = [], []
        for probe in probes:
            places.append(self.files.scratch.fresh())
            jobs.append((probe.sizes, Store(probe, Layout(tuple(probe.stored.items())), places[-1].path)))
        streams = []
        for probe, place, found in zip(probes, places, answers_by_number(self.session, *jobs), strict=True):
            if found.files:
                self._between.append(StoredRun(place, found.files, probe.stored))
                key = probe.streams[0].stages[0].half_join.arrangement
                streams.append(probe.onward(self._between[-1], self._whole(probe.whole, key)))
        return streams

    def _are_few(self, probes: Sequence[Probe]) -> bool:
        """Whether the last half-joins of streams probably find few rows, so that adding them up is worth no job."""
        streams = [stream for probe in probes for stream in probe.streams]
        rows = [self._found(len(stream), stream.whole, stream.stages[0].half_join.arrangement) for stream in streams]
        alike = all(probe.outputs.columns == self.layout.columns for probe in probes)
        known = [size for size in rows if size is not None]
        return alike and len(known) == len(rows) and sum(known) <= STREAM_ROWS

    def _found_by(self, probes: Sequence[Probe]) -> Found:
        """Run the last probes of all paths."""
        place = self.files.scratch.fresh()
        jobs = [(probe.sizes, Store(probe, probe.outputs, place.path)) for probe in probes]
        found = answers_by_number(self.session, *jobs)
        output, errors = (tuple(file for files in kind for file in files) for kind in
                          ([one.files for one in found], [one.failed for one in found]))  # fmt: skip
        return Found(StoredRun(place, output, dict(self.layout.columns)), StoredRun(place, errors, ERROR_SCHEMA))

    def _carried(self, streams: list[Stream], parts_of: RunsOf, large: str | None) -> list[Frame]:
        """What streams add to the view. Streams with equal remaining stages continue as one.

        `large`: the hint for Spark where a stream and the rows that it looks up are both many.
        """
        results = [stream for stream in streams if not stream.stages]
        waiting = [stream for stream in streams if stream.stages]
        while waiting:
            longest = max(len(stream.stages) for stream in waiting)
            now = [self._keyed(stream) for stream in waiting if len(stream.stages) == longest]
            waiting = [stream for stream in waiting if len(stream.stages) < longest]
            for stream in merged(now):
                after = self._past_stage(stream, parts_of, large)
                (waiting if after.stages else results).append(after)
        return [self._finished(stream) for stream in results]

    def _keyed(self, stream: Stream) -> Stream:
        """Apply the stream's next operator, and add the keys of its next half-join, if it looks up a plain input."""
        half_join = stream.stages[0].half_join
        probe = half_join.probe if half_join.kind is _PLAIN else ()
        frame, layout = self._apply(stream.frame, stream.layout, [stream.due], probe)
        return replace(stream, frame=frame, layout=layout, due=Linear())

    def _past_stage(self, stream: Stream, parts_of: RunsOf, large: str | None) -> Stream:
        stage = stream.stages[0]
        key, how = stage.half_join.arrangement, None
        runs = self._within(stream.spans, parts_of(key.collection, stage.half_join.version))
        if stage.half_join.kind is not _PLAIN:
            return self._past_asked(stream, runs)
        size = width = None
        if stream.size is not None and stream.width is not None:
            # Decide by known rows. Spark goes by the bytes of compressed files, and would broadcast millions of rows.
            rows, each = sum(map(len, runs)), width_of(runs)
            size, width = self._found(stream.size, stream.whole, key), stream.width + each
            if not is_small(rows, each) and not stream.sure and (stream.is_small or rows >= 2 * stream.size):
                stream, number = self._counted(stream)  # to shuffle the rows that it looks up would cost far more
                size = self._found(number, stream.whole, key)
            if stream.sure and stream.is_small:
                stream = replace(stream, frame=F.broadcast(stream.frame))
            else:
                how = "broadcast" if is_small(rows, each) else large
        frame, layout = self._partners.joined(stream.frame, stream.layout, stage, runs, stream.spans, how)
        then, stages, whole = stage.then, stream.stages[1:], self._whole(stream.whole, key)
        return Stream(frame, layout, then, stages, stream.final, size, False, width, whole, {})

    def _counted(self, stream: Stream) -> tuple[Stream, int]:
        """The stream, and the number of rows that it has. Spark keeps these until `close`."""
        with quiet(), translated(self.session):
            frame = stream.frame.persist()
            self._cached.append(frame)
            count: int = frame.count()
        return replace(stream, frame=frame, size=float(count), sure=True), count

    def _past_asked(self, stream: Stream, runs: Sequence[StoredRun]) -> Stream:
        """The stream after it has asked whether its keys are present."""
        (stage, *stages), layout = stream.stages, stream.layout
        spec, times = stage.half_join, self.times[stage.half_join.version]
        collection = spec.arrangement.collection
        outputs = layout.joined(self.held.schema(collection), spec.fetch)
        if self._is_loadable(collection, runs):
            frame = by_loading(stream.frame, layout, outputs, spec, runs, times, self.registry)
        else:
            found = self._partners.asked(spec, runs, stream.spans)
            frame = by_key(stream.frame, layout, outputs, spec, found, stream.whole, times, self.registry)
        return replace(stream, frame=frame, layout=outputs, due=stage.then, stages=tuple(stages), size=None, sure=False,
                       width=None, spans={})  # fmt: skip

    def _is_loadable(self, collection: str, runs: Sequence[StoredRun]) -> bool:
        """Whether every task may load these rows of a collection."""
        small = is_small(sum(map(len, runs)), width_of(runs))
        return small and storable(self.held.schema(collection).values())

    def _finished(self, stream: Stream) -> Frame:
        frame, layout = self._apply(stream.frame, stream.layout, [stream.due, stream.final], ())
        return arranged(frame, layout, self.layout)

    def _found(self, size: float, whole: int, key: ArrangementKey) -> float | None:
        """The expected rows after a half-join of `size` rows of a stream, of which there could be `whole`. None if
        unknown.

        If nobody has counted the distinct keys, assume as many as there could be rows.
        """
        distinct = self.held.distinct(key) or whole
        return size * max(1.0, self.held.rows(key.collection) / distinct) if distinct else None

    def _whole(self, whole: int, key: ArrangementKey) -> int:
        """How many rows a stream could have after a half-join, if it could have `whole` before."""
        return int(self._found(whole, whole, key) or whole)

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

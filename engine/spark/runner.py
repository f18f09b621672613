"""The Spark runner of an engine: run views' changes and first fills as Spark jobs, take and make DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing as releasing
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from halfjoin.engine.arrange.changes import Changes, StoredChanges
from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.batch.flows import Flow
from halfjoin.engine.batch.runner import Held, Output, Versioned
from halfjoin.engine.join.closing import RunsOf
from halfjoin.engine.join.dataflow import Dataflow
from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.reduce.flow import ReduceFlow
from halfjoin.engine.spark.asking import Times
from halfjoin.engine.spark.batches import FrameRows, GivenFrame, checked
from halfjoin.engine.spark.contents import changes as shown
from halfjoin.engine.spark.contents import contents
from halfjoin.engine.spark.files import StateFiles, check_names, is_readable
from halfjoin.engine.spark.flow import Found, SparkFlow
from halfjoin.engine.spark.frames import read, summed
from halfjoin.engine.spark.layout import Frame, Layout
from halfjoin.engine.spark.primary_keys import keyed
from halfjoin.engine.spark.progress import progress
from halfjoin.engine.spark.reducing import Reducing
from halfjoin.engine.spark.rounds import SparkSteps
from halfjoin.engine.spark.session import is_stopped, sees, start_session
from halfjoin.engine.spark.task_errors import TooHeavy
from halfjoin.engine.spark.writing import written
from halfjoin.engine.storage.encoding import from_table
from halfjoin.engine.storage.scratch import Scratch
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import DIFF, MAXIMUM, MINIMUM, TIME, empty
from halfjoin.planner.linear import Explode
from halfjoin.planner.plan import ArrangementKey, Join, Version

SCRATCH = "spark.halfjoin.scratch"  # a setting of the session: where scratch folders are made
FEW = 1 << 16  # up to so many rows of a job's output are read into memory, like the rows of a local batch


class SparkRunner:
    """Carries out plans in one Spark session.

    Args:
        session: the Spark session. None starts a local one.
        staging: the folder of a warehouse for files that are not part of it yet, None if it has no such folder. If
            Spark sees the folder, it reads the warehouse's own files, and its larger outputs stay in files.
    """

    name = "spark"

    def __init__(self, session: Any = None, staging: Path | None = None) -> None:
        self.session = start_session() if session is None else session
        self._direct = staging is not None and is_readable(staging) and sees(self.session, staging)
        self._scratch = Scratch(staging if self._direct else self.session.conf.get(SCRATCH, None))
        self._files = StateFiles(self._scratch, direct=self._direct)

    @property
    def stopped(self) -> bool:
        """Whether its session was stopped."""
        return is_stopped(self.session)

    def changes(
        self, flow: Flow, held: Held, staged: Mapping[str, Part], lookup: Versioned, title: str
    ) -> tuple[Output, Output]:
        """Like `Dataflow.changes`: the view's output and error updates for a batch's staged runs, both consolidated.

        If the node asks whether keys are present, this process computes the changes of few rows.
        """
        if isinstance(flow, ReduceFlow):
            return self._reduced(flow, staged, lookup, title)
        closing = {name: lookup.closing_in_files(name) for name in flow.plan.asked}
        if closing and self._is_few(flow, staged, lookup, closing):
            return flow.changes(staged, lookup, lookup.closing)
        netted, before, after, *_ = lookup.closing
        times = {Version.BEFORE: Times(netted, before), Version.AFTER: Times(netted, after)}
        bound = self._bound(flow, held, lookup.as_files, times)
        if bound.divides:
            with progress(f"changes of {title}"), suppress(TooHeavy), releasing(bound):
                return self._carried_out(bound, bound.changes({name: [part] for name, part in staged.items()}, closing))
        return flow.changes(staged, lookup, lookup.closing)  # a diff may exceed an int64: this process handles that

    def fill(
        self, flow: Flow, held: Held, lookup: Versioned, since: int, title: str
    ) -> Iterable[tuple[Output, Output]]:
        """Like `Dataflow.fill`: the view's whole history so far.

        If the node asks whether keys are present, this process computes it from few rows in files.
        """
        if isinstance(flow, ReduceFlow):
            return self._filled(flow, lookup, since, title)
        bound = self._bound(flow, held, lookup.as_files, _whole(lookup.closing.after))
        parts = [part for name in flow.plan.collections for part in lookup.as_files(name, Version.AFTER)]
        few = flow.plan.asked and sum(len(part) for part in parts if not part.in_memory) <= FEW
        if not few and bound.divides:
            with progress(f"filling {title}"), suppress(TooHeavy), releasing(bound):
                return [self._carried_out(bound, bound.fill(since))]
        return flow.fill(lookup, lookup.closing.after)

    def steps(self, held: Held) -> SparkSteps:
        """Who carries out the rounds of loops."""
        return SparkSteps(self.session, self._files, held, FEW, self._bound, self._carried_out)

    def _reduced(
        self, flow: ReduceFlow, staged: Mapping[str, Part], lookup: Versioned, title: str
    ) -> tuple[Output, Output]:
        """The changes of a reduce. If they are many, and rows or their groups are in files: of sums, tasks add up what
        closes, and this process adds that to what is kept; of whole groups, tasks compute everything, if there are
        several groups. Otherwise this process computes the changes."""
        change, bound = lookup.closing_in_files(flow.plan.input), Reducing(flow, self.session)
        rows = () if flow.plan.groups is None else lookup.as_files(flow.plan.input, Version.AFTER)
        if change.most <= FEW or all(part.in_memory for part in (*change.parts, *rows)):
            return flow.changes(staged, lookup, lookup.closing)
        if flow.plan.groups is None:
            with progress(f"changes of {title}"), suppress(TooHeavy):
                frame, layout = bound.sums(self._runs(change.parts), change.low, change.high)
                sums, _ = written(frame, layout, self._scratch.fresh())
                return flow.added(flow.read(self._files.loaded(sums)), lookup, lookup.closing)
        elif flow.plan.keys:
            with progress(f"changes of {title}"), suppress(TooHeavy):
                was = lookup.as_files(flow.plan.output, Version.BEFORE)
                frame = bound.changes(self._runs(change.parts), self._runs(rows), self._runs(was), lookup.closing)
                return self._written(frame, bound.outputs)
        return flow.changes(staged, lookup, lookup.closing)

    def _filled(
        self, flow: ReduceFlow, lookup: Versioned, since: int, title: str
    ) -> Iterable[tuple[Output, Output]]:
        """The history of a reduce. Tasks compute it, if many rows of its input are in files."""
        parts, upper = lookup.as_files(flow.plan.input, Version.AFTER), lookup.closing.after
        if sum(len(part) for part in parts if not part.in_memory) > FEW:
            with progress(f"filling {title}"), suppress(TooHeavy):
                bound = Reducing(flow, self.session)
                found = self._written(bound.fill(self._runs(parts), since, upper), bound.outputs)
                return [found] if any(map(len, found)) or not flow.always else flow.fill(lambda *_: (), upper)
        return flow.fill(lookup, upper)

    def checked(self, given: Sequence[GivenFrame], time: int, *, marked: bool) -> list[FrameRows]:
        """Evaluate and check the rows of a batch that come as DataFrames, except against the tables' keys."""
        with progress(f"checking rows of {', '.join(one.table.name for one in given)}"):
            return checked(given, time, self._scratch, marked=marked)

    def runs_of(self, batch: Sequence[FrameRows], lookup: Versioned, time: int) -> dict[str, Output]:
        """The updates that checked rows mean at a time, checked against the tables' keys."""
        whole = {rows.table.name: lookup.as_files(rows.table.name, Version.BEFORE) for rows in batch if rows.whole}
        if whole:
            with progress(f"removing the rows of {', '.join(whole)}"):
                batch = [self._in_place_of(rows, whole[rows.table.name], time) if rows.whole else rows
                         for rows in batch]  # fmt: skip
        runs = {rows.table.name: rows.run for rows in batch}
        due = [(rows, lookup.as_files(rows.table.name, Version.BEFORE))
               for rows in batch if rows.table.primary_key and rows.run]  # fmt: skip
        if due:
            with progress(f"checking the keys of {', '.join(rows.table.name for rows, _ in due)}"):
                found = keyed(self.session, due, self._files, self._scratch)
            runs |= {rows.table.name: run for (rows, _), run in zip(due, found, strict=True)}
        return {name: self._taken(run) for name, run in runs.items()}

    def _in_place_of(self, rows: FrameRows, there: Sequence[Part], time: int) -> FrameRows:
        """The updates that replace all rows of a table by these rows from a time on."""
        layout = Layout(tuple(rows.run.schema.items()))
        here, all_ = (
            read(self.session, [run for part in parts for run in self._files.runs(part)], rows.run.schema, layout.names)
            for parts in ([rows.run], there)
        )
        now = {TIME: F.lit(time).cast("bigint"), DIFF: -F.col(DIFF)}
        gone = all_.where(F.col(TIME) <= F.lit(time)).withColumns(now)
        run, _ = written(summed(here.union(gone), layout), layout, self._scratch.fresh(), rows.table.primary_key)
        return replace(rows, run=run, upsert=False, inserts=False, whole=False)

    def dataframe(self, collection: Collection, parts: Sequence[Part], time: int) -> Frame:
        """A collection's contents as of a time, each row as often as its count. `parts` are all its updates."""
        runs = [run for part in parts for run in self._files.runs(self._files.hold(part))]
        frame = read(self.session, runs, collection.schema, list(collection.schema))
        return contents(frame, Layout(tuple(collection.schema.items())), time, collection.name)

    def changes_frame(self, schema: Mapping[str, pa.DataType], changes: Changes) -> Frame:
        """A view's closed changes: its columns, `__time` and `__diff`."""
        layout = Layout(tuple(schema.items()))
        if not isinstance(changes, StoredChanges):
            updates = from_table(changes, schema)
            changes = StoredChanges(schema, (Run(updates),), MINIMUM, MAXIMUM, consolidated=True)
        runs = [run for part in changes.parts for run in self._files.runs(self._files.hold(part))]
        frame = read(self.session, runs, schema, list(schema))
        frame = frame.where((F.col(TIME) >= F.lit(changes.low)) & (F.col(TIME) < F.lit(changes.high)))
        return shown(frame if changes.consolidated else summed(frame, layout), layout)

    def query(self, flow: Flow, held: Held, lookup: Versioned, time: int, name: str) -> Frame:
        """The contents that a plan's view would have as of a time."""
        if isinstance(flow, ReduceFlow):
            parts = [self._files.hold(part) for part in lookup.as_files(flow.plan.input, Version.AFTER)]
            reducing = Reducing(flow, self.session)
            return contents(reducing.fill(self._runs(parts), time, time + 1), reducing.outputs, time, name)
        bound = self._bound(flow, held, lookup.as_files, _whole(time + 1), hold=True)
        frame = bound.fill(time, lazy=True)
        if frame is None:
            frame = self.session.createDataFrame([], bound.layout.struct)
        return contents(frame, bound.layout, time, name)

    def _is_few(
        self, flow: Dataflow, staged: Mapping[str, Part], lookup: Versioned, closing: Mapping[str, StoredChanges]
    ) -> bool:
        """Whether few rows come and close, or all that the node reads is in memory."""
        came = [staged[name] for name in flow.plan.collections if name in staged]
        parts = [part for name in flow.plan.collections for part in lookup.as_files(name, Version.AFTER)]
        few = sum(map(len, came)) + sum(change.most for change in closing.values()) <= FEW
        return few or all(part.in_memory for part in parts)

    def _bound(
        self, flow: Dataflow, held: Held, lookup: RunsOf, times: Mapping[Version, Times], *, hold: bool = False
    ) -> SparkFlow:
        """The plan bound to the files of the parts that a lookup gives. With `hold`, the files stay."""

        def parts(name: str, version: Version) -> Sequence[Part]:
            found = flow.constants[name] if name in flow.constants else lookup(name, version)
            return [self._files.hold(part) for part in found] if hold else found

        known = _Known(held, flow.constants)
        return SparkFlow(flow.plan, _used(flow.plan, flow.registry), self.session, known, parts, self._files, times)

    def _carried_out(self, flow: SparkFlow, made: Frame | Found | None) -> tuple[Output, Output]:
        """Run the job, if it has not run yet. Returns its output and its errors."""
        check_names(dict(flow.layout.columns))
        if made is None:
            return empty(dict(flow.layout.columns)), empty(ERROR_SCHEMA)
        if not isinstance(made, Found):
            return self._written(made, flow.layout, passing=flow.plan.passing)
        output = self._passed(made.output) if flow.plan.passing else self._added_up(made.output)
        return output, self._added_up(made.errors)

    def _written(self, frame: Frame, layout: Layout, *, passing: bool = False) -> tuple[Output, Output]:
        """Run a job. Returns its output and its errors.

        `passing`: the job has not added up equal rows; the output goes to other jobs, and not into a collection.
        """
        output, errors = written(frame, layout, self._scratch.fresh())
        if not passing:
            return self._taken(output), self._taken(errors)
        return self._passed(output), self._added_up(errors)

    def _passed(self, output: StoredRun) -> Output:
        """Rows on their way to other jobs. Few are added up."""
        return output if len(output) > FEW else consolidate(self._files.loaded(output))

    def _added_up(self, run: StoredRun) -> Output:
        """The rows of files, after a job or, if they are few, this process has added up equal ones."""
        if len(run) <= FEW:
            return consolidate(self._files.loaded(run))
        layout = Layout(tuple(run.schema.items()))
        rows = read(self.session, self._files.runs(run), run.schema, layout.names)
        summed_up, _ = written(summed(rows, layout), layout, self._scratch.fresh())
        return self._taken(summed_up)

    def _runs(self, parts: Iterable[Part]) -> list[StoredRun]:
        return [run for part in parts for run in self._files.runs(part)]

    def _taken(self, run: StoredRun) -> Output:
        return run if self._direct and len(run) > FEW else self._files.loaded(run)


def _whole(upper: int) -> Mapping[Version, Times]:
    """The times of lookups in a fill from the history below `upper`, none of which may be added up."""
    return dict.fromkeys(Version, Times(MINIMUM, upper))


@dataclass(frozen=True, slots=True)
class _Known:
    """Facts about the held collections and the constants of a plan."""

    held: Held
    constants: Mapping[str, tuple[Run, ...]]

    def schema(self, name: str) -> Mapping[str, pa.DataType]:
        if name not in self.constants:
            return self.held.schema(name)
        return {column: array.type for column, array in self.constants[name][0].updates.columns.items()}

    def rows(self, collection: str) -> int:
        if collection in self.constants:
            return sum(map(len, self.constants[collection]))
        return self.held.rows(collection)

    def distinct(self, key: ArrangementKey) -> int | None:
        return None if key.collection in self.constants else self.held.distinct(key)


def _used(plan: Join, registry: Registry) -> Registry:
    """The user's functions that the plan calls. Spark does not need the others."""
    paths = [path for branch in plan.branches for path in branch.paths]
    operators = [part for path in paths for part in (path.source, *(s.then for s in path.stages), path.final)]
    operators += [path.appearing.then for path in paths if path.appearing is not None]
    operators += [key.through for key in plan.arrangements if key.through is not None]
    names = {name for part in operators for step in part.steps if isinstance(step, Explode) for name in step.functions}
    return {name: function for name, function in registry.items() if name in names}

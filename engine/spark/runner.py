"""The Spark runner of an engine: jobs for views' changes and first fills, DataFrames in and out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from halfjoin.engine.collection import Collection
from halfjoin.engine.dataflow import Dataflow, Lookup
from halfjoin.engine.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.run import Part, Run
from halfjoin.engine.runners import Held
from halfjoin.engine.spark.contents import contents
from halfjoin.engine.spark.files import RunFiles, check_names
from halfjoin.engine.spark.flow import Frame, SparkFlow, read
from halfjoin.engine.spark.layout import ERROR, ERRORS, Layout
from halfjoin.engine.spark.session import start_session, translated
from halfjoin.engine.tables import Registry
from halfjoin.engine.updates import DIFF, TIME, Updates, empty
from halfjoin.planner.linear import Explode
from halfjoin.planner.plan import ArrangementKey, ViewPlan
from halfjoin.sql.errors import InvalidRow

SCRATCH = "spark.halfjoin.scratch"  # a setting of the session: where scratch folders are made
_FAILED = "__failed"  # the folders of a job's output: `__failed=false`, `__failed=true`


class SparkRunner:
    """Carries out plans in one Spark session.

    Args:
        session: None starts a local one.
    """

    name = "spark"

    def __init__(self, session: Any = None) -> None:
        self.session = start_session() if session is None else session
        self.files = RunFiles(self.session.conf.get(SCRATCH, None))

    def changes(
        self, flow: Dataflow, held: Held, staged: Mapping[str, Part], lookup: Lookup
    ) -> tuple[Updates, Updates]:
        """As `Dataflow.changes`: the view's output and error updates for a batch's staged runs, both consolidated."""
        bound = self._flow(flow, held, lookup)
        files = {name: (self._files([part]), len(part)) for name, part in staged.items()}
        return self._carried_out(bound, bound.changes(files))

    def fill(self, flow: Dataflow, held: Held, lookup: Lookup) -> Iterable[tuple[Updates, Updates]]:
        """As `Dataflow.fill`: the view's whole history so far."""
        bound = self._flow(flow, held, lookup)
        return [self._carried_out(bound, bound.fill())]

    def rows(self, frame: Frame) -> pa.Table:
        """The rows of a DataFrame, evaluated once: written by its tasks, and read from their files.

        Raises:
            InvalidRow: two columns have one name.
        """
        if len(set(frame.columns)) < len(frame.columns):
            raise InvalidRow(f"a column is given twice: {', '.join(frame.columns)}")
        check_names(frame.columns)
        folder = self.files.fresh()
        frame.select(*(_quoted(field.name) for field in frame.schema if not _void(field))).write.parquet(str(folder))
        return self.files.table(folder)

    def dataframe(self, collection: Collection, time: int) -> Frame:
        """Contents as of a time, a row as often as it is contained."""
        self._pin(collection.runs)
        frame = read(self.session, self._files(collection.runs), collection.schema, list(collection.schema))
        return contents(frame, Layout(tuple(collection.schema.items())), time, collection.name)

    def query(self, flow: Dataflow, held: Held, lookup: Lookup, time: int, name: str) -> Frame:
        """What a plan's view would contain as of a time."""
        for collection in flow.plan.collections:
            self._pin(lookup(collection, True))
        bound = self._flow(flow, held, lookup)
        frame = bound.fill()
        if frame is None:
            frame = self.session.createDataFrame([], bound.layout.struct)
        return contents(frame, bound.layout, time, name)

    def _flow(self, flow: Dataflow, held: Held, lookup: Lookup) -> SparkFlow:
        """The plan bound to the files of the runs that a lookup gives."""

        def files(name: str, after: bool) -> Sequence[str]:
            runs = flow.constants[name] if name in flow.constants else lookup(name, after)
            return self._files(runs)

        return SparkFlow(flow.plan, _used(flow.plan, flow.registry), self.session, _Known(held, flow.constants), files)

    def _files(self, parts: Sequence[Part]) -> list[str]:
        return [file for part in parts for updates in part.pieces() for file in self.files.of(updates)]

    def _pin(self, parts: Sequence[Part]) -> None:
        """Keep the files of these parts until the engine is closed."""
        for part in parts:
            for updates in part.pieces():
                self.files.pin(updates)

    def _carried_out(self, flow: SparkFlow, frame: Frame | None) -> tuple[Updates, Updates]:
        """Run the job: its tasks write, Spark's output committer makes the files of each task count once."""
        layout = flow.layout
        schema = dict(layout.columns)
        check_names(schema)
        if frame is None:
            return empty(schema), empty(ERROR_SCHEMA)
        columns = [F.col(f"c{i}").alias(name) for i, name in enumerate(schema)]
        folder = self.files.fresh()
        with translated():
            if not layout.errors:
                frame.select(*columns, TIME, DIFF).write.parquet(str(folder))
                return self.files.load(folder, schema), empty(ERROR_SCHEMA)
            failed = F.col(ERROR).isNotNull().alias(_FAILED)
            rows = frame.select(*columns, *ERRORS, TIME, DIFF, failed)
            rows.write.partitionBy(_FAILED).parquet(str(folder))
        output = self.files.load(folder / f"{_FAILED}=false", schema)
        errors = self.files.load(folder / f"{_FAILED}=true", ERRORS)
        return output, errors.renamed(list(zip(ERRORS, ERROR_SCHEMA, strict=True)))


@dataclass(frozen=True, slots=True)
class _Known:
    """What is held, and the constants of a plan."""

    held: Held
    constants: Mapping[str, tuple[Run, ...]]

    def schema(self, name: str) -> Mapping[str, pa.DataType]:
        if name not in self.constants:
            return self.held.schema(name)
        return {column: array.type for column, array in self.constants[name][0].updates.columns.items()}

    def rows(self, collection: str) -> int:
        return self.held.rows(collection)

    def distinct(self, key: ArrangementKey) -> int | None:
        return None if key.collection in self.constants else self.held.distinct(key)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _void(field: Any) -> bool:
    """A column that is NULL throughout and has no type, which files do not take; it counts as not given."""
    return bool(field.dataType.typeName() == "void")


def _used(plan: ViewPlan, registry: Registry) -> Registry:
    """The user's functions that the plan calls; no others need to reach Spark."""
    paths = [path for branch in plan.branches for path in branch.paths]
    operators = [part for path in paths for part in (path.source, *(s.then for s in path.stages), path.final)]
    operators += [key.through for key in plan.arrangements if key.through is not None]
    names = {step.function for part in operators for step in part.steps if isinstance(step, Explode)}
    return {name: function for name, function in registry.items() if name in names}

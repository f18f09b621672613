"""A stream of updates written by Spark's tasks as files of a collection: the driver gets names and statistics alone.

A task's files count when its answer arrives, which Spark hands over once for each task, whatever was tried again or
speculatively twice; files of other tries are never referred to, and go with their folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from halfjoin.engine.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.spark.flow import Frame
from halfjoin.engine.spark.layout import ERROR, ERRORS, Layout
from halfjoin.engine.spark.session import quiet, translated
from halfjoin.engine.spark.tasks import Batches, array_of, gathered, updates_of
from halfjoin.engine.storage.parquet import StoredFile, write
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.scratch import ScratchPlace
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates import DIFF, TIME, Updates
from halfjoin.sql.errors import StorageError

WRITTEN_ROWS = 1 << 20  # that a task sorts and writes as one file

_ANSWER = StructType([
    StructField("name", StringType()), StructField("size", LongType()), StructField("rows", LongType()),
    StructField("latest", LongType()), StructField("stats", StringType()), StructField("failed", BooleanType()),
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Write:
    """What a task writes: rows of the layout, sorted by some columns; failing rows in files of their own."""

    layout: Layout
    folder: Path
    sort: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        """The function for `mapInArrow`."""
        try:
            yield from self._written(batches)
        except OSError as problem:
            raise StorageError(f"{self.folder} cannot be written: {problem}") from problem

    def _written(self, batches: Batches) -> Batches:
        place, schema = LocalPlace(self.folder), dict(self.layout.columns)
        for table in gathered(batches, WRITTEN_ROWS):
            errors = None
            if self.layout.errors:
                errors = table.filter(table.column(ERROR).is_valid())
                table = table.filter(table.column(ERROR).is_null())
            if len(table):
                yield from _answers(write(place, updates_of(table, self.layout), schema, self.sort), failed=False)
            if errors is not None and len(errors):
                yield from _answers(write(place, _failing(errors), ERROR_SCHEMA, ()), failed=True)


def _failing(table: pa.Table) -> Updates:
    columns = {name: array_of(table, column) for name, column in zip(ERROR_SCHEMA, ERRORS, strict=True)}
    time, diff = (array_of(table, name).to_numpy() for name in (TIME, DIFF))
    return Updates(columns, time, diff)


def _answers(files: Iterator[StoredFile], *, failed: bool) -> Batches:
    """What the driver is told."""
    for file in files:
        yield pa.RecordBatch.from_pylist([{**asdict(file), "failed": failed}])


def written(
    frame: Frame, layout: Layout, place: ScratchPlace, sort: tuple[str, ...] = ()
) -> tuple[StoredRun, StoredRun]:
    """Run the job: the output's updates and those of failing rows, in files.

    Raises:
        DataError, StorageError: of a task.
    """
    with quiet(), translated():
        answers = frame.mapInArrow(partial(Write.__call__, Write(layout, place.path, sort)), _ANSWER).collect()
    files: Mapping[bool, list[StoredFile]] = {False: [], True: []}
    for row in answers:
        files[row.failed].append(StoredFile(row.name, row.size, row.rows, row.latest, row.stats))
    return (StoredRun(place, tuple(files[False]), dict(layout.columns)),
            StoredRun(place, tuple(files[True]), ERROR_SCHEMA))  # fmt: skip

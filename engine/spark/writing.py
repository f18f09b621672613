"""Updates written by Spark's tasks as files of a collection: the driver gets names and statistics alone.

A task's files count when its answer arrives, which Spark hands over once for each task, whatever was tried again or
speculatively twice; files of other tries are never referred to, and go with their folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.spark.layout import ERROR, ERRORS, Frame, Layout
from halfjoin.engine.spark.session import quiet, translated
from halfjoin.engine.spark.task_errors import call, packed, unpacked
from halfjoin.engine.spark.tasks import Batches, array_of, gathered, updates_of
from halfjoin.engine.storage.parquet import StoredFile, write
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.scratch import ScratchPlace
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.updates import DIFF, TIME, Updates
from halfjoin.errors import DataError, InvalidRow, InvalidTime, StorageError, UnknownName

WRITTEN_ROWS = 1 << 20  # that a task sorts and writes together
_REFUSED = "refused: "  # begins the note of a task that refuses a row

# What a task answers: a row for each file, with whether its rows are failing ones; or a note for the driver.
_ANSWER = StructType([
    StructField("name", StringType()), StructField("size", LongType()), StructField("rows", LongType()),
    StructField("latest", LongType()), StructField("stats", StringType()), StructField("failed", BooleanType()),
    StructField("note", StringType()),
])  # fmt: skip
_ARROW = pa.schema([
    ("name", pa.string()), ("size", pa.int64()), ("rows", pa.int64()), ("latest", pa.int64()), ("stats", pa.string()),
    ("failed", pa.bool_()), ("note", pa.string()),
])  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answers:
    """What all tasks of one kind answered: their files, those of failing rows, and their notes."""

    files: tuple[StoredFile, ...]
    failed: tuple[StoredFile, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """What a task writes of rows of a layout: those that do not fail, sorted, and the others in files of their own."""

    layout: Layout
    folder: Path
    sort: tuple[str, ...] = ()

    def __call__(self, batches: Batches) -> Batches:
        """The function for `mapInArrow`."""
        for table in gathered(batches, WRITTEN_ROWS):
            if self.layout.errors:
                yield from in_files(self.folder, _failing(table.filter(table.column(ERROR).is_valid())), failed=True)
                table = table.filter(table.column(ERROR).is_null())
            if len(table):
                yield from in_files(self.folder, updates_of(table, self.layout), self.sort)


def answers(*kinds: tuple[Frame, Callable[[Batches], Batches]]) -> list[Answers]:
    """Run tasks of several kinds, each on a frame of its own, as one job: small ones fill in for large ones.

    Raises:
        DataError, InvalidRow, StorageError: of a task.
    """
    with quiet(), translated():
        frames = [frame.mapInArrow(partial(_told, task), _ANSWER).withColumn("kind", F.lit(number))
                  for number, (frame, task) in enumerate(kinds)]  # fmt: skip
        rows = reduce(lambda one, other: one.union(other), frames).collect()
    for row in rows:
        if row.note is not None and row.note.startswith(_REFUSED):
            raise unpacked(row.note) or DataError(row.note)
    return [_answers([row for row in rows if row.kind == number]) for number in range(len(kinds))]


def _told(task: Callable[[Batches], Batches], batches: Batches) -> Batches:
    """A task whose refusal of a row is an answer: if it were raised, Spark would try again, and log each failure."""
    try:
        yield from call(task, batches)
    except (DataError, InvalidRow, InvalidTime, UnknownName) as problem:
        yield note(_REFUSED + packed(problem))
        for _ in batches:  # Spark expects that all are taken
            pass


def _answers(rows: Sequence[Any]) -> Answers:
    files: dict[bool, list[StoredFile]] = {False: [], True: []}
    for row in rows:
        if row.name is not None:
            files[row.failed].append(StoredFile(row.name, row.size, row.rows, row.latest, row.stats))
    notes = tuple(row.note for row in rows if row.note is not None)
    return Answers(tuple(files[False]), tuple(files[True]), notes)


def written(
    frame: Frame, layout: Layout, place: ScratchPlace, sort: tuple[str, ...] = ()
) -> tuple[StoredRun, StoredRun]:
    """The updates of a frame, and those of its failing rows, in files. Raises as `answers`."""
    (found,) = answers((frame, Write(layout, place.path, sort)))
    return StoredRun(place, found.files, dict(layout.columns)), StoredRun(place, found.failed, ERROR_SCHEMA)


def in_files(folder: Path, updates: Updates, sort: Sequence[str] = (), *, failed: bool = False) -> Batches:
    """Write updates in a task, sorted by columns. Gives the answers."""
    schema = {name: column.type for name, column in updates.columns.items()}
    try:
        for file in write(LocalPlace(folder), updates, schema, sort):
            yield _answer({**asdict(file), "failed": failed})
    except OSError as problem:
        raise StorageError(f"{folder} cannot be written: {problem}", path=str(folder)) from problem


def note(text: str) -> pa.RecordBatch:
    """An answer that is no file."""
    return _answer({"note": text})


def _answer(values: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([values], schema=_ARROW)


def _failing(table: pa.Table) -> Updates:
    columns = {name: array_of(table, column) for name, column in zip(ERROR_SCHEMA, ERRORS, strict=True)}
    time, diff = (array_of(table, name).to_numpy() for name in (TIME, DIFF))
    return Updates(columns, time, diff)

"""Write updates in Spark's tasks as files of a collection. The driver gets only names and statistics.

A task's files count when its answer arrives. Spark hands over one answer for each task, even if it tried the task again
or ran it twice speculatively. Nobody refers to files of other tries; they go with their folder.
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

WRITTEN_ROWS = 1 << 20  # rows that a task sorts and writes together
_REFUSED = "refused: "  # begins the note of a task that refuses a row

# What a task answers: one row for each file, which also says whether its rows are failing rows; or a note.
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
    """The answers of all tasks of one kind: their files, those of failing rows, and their notes."""

    files: tuple[StoredFile, ...]
    failed: tuple[StoredFile, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """The task that writes rows of a layout: rows that do not fail, sorted, and failing rows in files of their own."""

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
    """Run tasks of several kinds as one job, each kind on its own frame. Small tasks fill the gaps beside large ones.

    Raises:
        DataError, InvalidRow, StorageError: from a task.
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
    """Turn a task's refusal of a row into an answer. If it raised, Spark would try again and log each failure."""
    try:
        yield from call(task, batches)
    except (DataError, InvalidRow, InvalidTime, UnknownName) as problem:
        yield note(_REFUSED + packed(problem))
        for _ in batches:  # Spark expects the task to read all batches
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
    """Write the updates of a frame and those of its failing rows to files. Raises the same errors as `answers`."""
    (found,) = answers((frame, Write(layout, place.path, sort)))
    return StoredRun(place, found.files, dict(layout.columns)), StoredRun(place, found.failed, ERROR_SCHEMA)


def in_files(folder: Path, updates: Updates, sort: Sequence[str] = (), *, failed: bool = False) -> Batches:
    """Write updates in a task, sorted by columns. Yields the answers."""
    schema = {name: column.type for name, column in updates.columns.items()}
    try:
        for file in write(LocalPlace(folder), updates, schema, sort):
            yield _answer({**asdict(file), "failed": failed})
    except OSError as problem:
        raise StorageError(f"{folder} cannot be written: {problem}", path=str(folder)) from problem


def note(text: str) -> pa.RecordBatch:
    """An answer that is not a file."""
    return _answer({"note": text})


def _answer(values: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([values], schema=_ARROW)


def _failing(table: pa.Table) -> Updates:
    columns = {name: array_of(table, column) for name, column in zip(ERROR_SCHEMA, ERRORS, strict=True)}
    time, diff = (array_of(table, name).to_numpy() for name in (TIME, DIFF))
    return Updates(columns, time, diff)

"""Write updates in Spark's tasks as files of a collection. The driver gets only names and statistics.

A task's files count when its answer arrives. Spark hands over one answer for each task, even if it tried the task again
or ran it twice speculatively. Nobody refers to files of other tries; they go with their folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial, reduce
from heapq import heapreplace
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.spark.layout import ERROR, ERRORS, Frame, Layout
from halfjoin.engine.spark.session import quiet, translated
from halfjoin.engine.spark.task_errors import call, packed, unpacked
from halfjoin.engine.spark.tasks import Batches, array_of, gathered, updates_of
from halfjoin.engine.storage.parquet import StoredFile, write
from halfjoin.engine.storage.scratch import PassingPlace, ScratchPlace
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.updates import DIFF, MAXIMUM, TIME, Updates
from halfjoin.errors import DataError, InvalidRow, InvalidTime, StorageError, UnknownName

WRITTEN_ROWS = 1 << 20  # rows that a task sorts and writes together
_REFUSED = "refused: "  # begins the note of a task that refuses a row

# What a task answers: one row for each file, which also says whether its rows are failing rows; or a note.
_ANSWER = StructType([
    StructField("name", StringType()), StructField("size", LongType()), StructField("rows", LongType()),
    StructField("latest", LongType()), StructField("stats", StringType()), StructField("failed", BooleanType()),
    StructField("note", StringType()), StructField("kind", LongType()),
])  # fmt: skip
_ARROW = pa.schema([
    ("name", pa.string()), ("size", pa.int64()), ("rows", pa.int64()), ("latest", pa.int64()), ("stats", pa.string()),
    ("failed", pa.bool_()), ("note", pa.string()),
])  # fmt: skip
_TOLD = _ARROW.append(pa.field("kind", pa.int64()))

Told: TypeAlias = Callable[[Batches], Batches]  # a task that yields answers


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


def answers(*kinds: tuple[Frame, Told], sizes: Sequence[int] = ()) -> list[Answers]:
    """Run tasks of several kinds as one job, each kind on its own frame. Small tasks fill the gaps beside large ones,
    so those of the frames that are probably large (`sizes`, if known) start first.

    Raises:
        DataError, InvalidRow, StorageError: from a task, of the first of the kinds.
    """
    with quiet():
        frames = [frame.mapInArrow(partial(_told, task, kind), _ANSWER) for kind, (frame, task) in enumerate(kinds)]
    order = sorted(range(len(frames)), key=lambda kind: -sizes[kind]) if sizes else range(len(frames))
    return _collected(reduce(lambda one, other: one.union(other), [frames[kind] for kind in order]), len(kinds))


def answers_by_number(session: Any, *kinds: tuple[Sequence[int], Told]) -> list[Answers]:
    """Run tasks that need no rows from Spark as one job. A kind has parts of about these sizes, numbered from 0 on.

    The parts are shared out evenly to at most as many tasks as the session wants after a shuffle: what a task does
    before its first part, it does once.

    Raises: the same errors as `answers`.
    """
    parts = [(size, kind, number) for kind, (sizes, _) in enumerate(kinds) for number, size in enumerate(sizes)]
    if not parts:
        return [_answers([]) for _ in kinds]
    lots = shared_out(parts, _wanted(session))
    with quiet():
        task = _ByNumber(lots, tuple(task for _, task in kinds))
        frame = session.range(0, len(lots), 1, len(lots)).mapInArrow(task, _ANSWER)
    return _collected(frame, len(kinds))


def shared_out(parts: Iterable[tuple[int, int, int]], most: int) -> tuple[Mapping[int, Sequence[int]], ...]:
    """Lots of parts, each a size, a kind and a number: the numbers of each kind. At most so many lots, alike in size.

    The next largest part goes to the smallest lot (Graham, Bounds on Multiprocessing Timing Anomalies, 1969).
    """
    ordered = sorted(parts, key=itemgetter(0), reverse=True)
    lots: list[dict[int, list[int]]] = [{} for _ in ordered[:most]]
    loads = [(0, place) for place in range(len(lots))]
    for size, kind, number in ordered:
        load, place = loads[0]
        lots[place].setdefault(kind, []).append(number)
        heapreplace(loads, (load + size, place))
    return tuple(lots)


def _wanted(session: Any) -> int:
    """The tasks that the session wants after a shuffle. Some services write a word there: then there is no limit."""
    number = session.conf.get("spark.sql.shuffle.partitions")
    return int(number) if number.isdigit() else MAXIMUM


@dataclass(frozen=True, slots=True)
class _ByNumber:
    """The task that does lots of parts: of each kind, the task of the kind does the parts with these numbers."""

    lots: Sequence[Mapping[int, Sequence[int]]]
    tasks: tuple[Told, ...]

    def __call__(self, batches: Batches) -> Batches:
        for place in (place for batch in batches for place in batch.column(0).to_pylist()):
            for kind, numbers in self.lots[place].items():
                yield from _told(self.tasks[kind], kind, _numbers(numbers))


def _numbers(numbers: Sequence[int]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64())], ["id"])


def _collected(frame: Frame, kinds: int) -> list[Answers]:
    with quiet(), translated(frame.sparkSession):
        rows = frame.collect()
    refused = [row for row in rows if row.note is not None and row.note.startswith(_REFUSED)]
    if refused:
        first = min(refused, key=attrgetter("kind"))
        raise unpacked(first.note) or DataError(first.note)
    return [_answers([row for row in rows if row.kind == number]) for number in range(kinds)]


def _told(task: Told, kind: int, batches: Batches) -> Batches:
    """Turn a task's refusal of a row into an answer. If it raised, Spark would try again and log each failure."""
    try:
        for answer in call(task, batches):
            yield _of_kind(answer, kind)
    except (DataError, InvalidRow, InvalidTime, UnknownName) as problem:
        yield _of_kind(note(_REFUSED + packed(problem)), kind)
        for _ in batches:  # Spark expects the task to read all batches
            pass


def _of_kind(answer: pa.RecordBatch, kind: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*answer.columns, pa.array(np.full(len(answer), kind))], schema=_TOLD)


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
        for file in write(PassingPlace(folder), updates, schema, sort):
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

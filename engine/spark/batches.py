"""Rows of a table that come as a Spark DataFrame: checked, typed and written by tasks, and held against the key.

The tasks call what checks a local batch, so a value is taken or refused as it is there. The frame is evaluated once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pyarrow as pa

from halfjoin.catalog.models import Table
from halfjoin.engine.fingerprint import Partial, partial
from halfjoin.engine.keys import key_columns
from halfjoin.engine.primary_key import PrimaryKey, arrangement_of
from halfjoin.engine.rows import Rows, Submitted, submitted, unnumbered
from halfjoin.engine.run import Part
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.spark.files import StateFiles
from halfjoin.engine.spark.flow import Frame, read
from halfjoin.engine.spark.layout import Layout
from halfjoin.engine.spark.pruning import range_of
from halfjoin.engine.spark.tasks import Batches, gathered, updates_of
from halfjoin.engine.spark.writing import WRITTEN_ROWS, answers, in_files, note
from halfjoin.engine.storage.scratch import Scratch
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates import DIFF, MAXIMUM, MINIMUM, TIME, Updates, concat, constant, empty
from halfjoin.engine.upserts import refuse_unordered
from halfjoin.sql.errors import InvalidRow

CHECKED_ROWS = 1 << 17  # of which a task holds the keys against what is there


@dataclass(frozen=True, slots=True)
class FrameRows:
    """A table's checked rows. `part` is their fingerprint.

    `timed`: whether they came with times; `first` and `last` are the least and the greatest of their times. `inserts`:
    whether each adds one copy. `run` has them with every time and diff filled in.
    """

    table: Table
    run: StoredRun
    part: Partial
    timed: bool
    first: int
    last: int
    inserts: bool
    upsert: bool

    @property
    def length(self) -> int:
        """The number of rows."""
        return self.part.rows

    def near(self) -> Submitted:
        """The rows, read into this process.

        Raises:
            InvalidRow: upserts with one key twice.
        """
        found = concat([empty(self.run.schema), *self.run.pieces()])
        time, diff = found.time if self.timed else None, None if self.inserts else found.diff
        rows = Submitted(found.columns, len(found), time, diff, self.upsert, numbered=False)
        if self.upsert:
            refuse_unordered(self.table, rows)
        return rows


@dataclass(frozen=True, slots=True)
class Given:
    """A table's rows as they were given: a frame, and what its rows mean."""

    table: Table
    frame: Frame
    meaning: str


def checked(given: Sequence[Given], time: int, scratch: Scratch, *, marked: bool) -> list[FrameRows]:
    """Evaluate frames, check their rows and write them; those without a time of their own get `time`.

    Their fingerprints are computed if they are to be `marked`.

    Raises:
        UnknownName, InvalidRow, InvalidTime: as `rows.submitted`, with a key in place of a row's number.
    """
    nothing = [_none_of(one) for one in given]
    places = [scratch.fresh() for _ in given]
    tasks = [_Check(one.table, tuple(one.frame.columns), one.meaning, time, place.path, marked)
             for one, place in zip(given, places, strict=True)]  # fmt: skip
    # By position: a name such as `a.b` is to Spark a field of a column `a`.
    plain = [one.frame.toDF(*(f"c{i}" for i in range(len(one.frame.columns)))) for one in given]
    rows = []
    for one, none, place, found in zip(
        given, nothing, places, answers(*zip(plain, tasks, strict=True)), strict=True
    ):
        notes = [json.loads(text) for text in found.notes]
        parts = [Partial(note["meaning"], note["rows"], tuple(note["sums"])) for note in notes]
        rows.append(FrameRows(
            one.table,
            StoredRun(place, found.files, {column.name: arrow_type(column.type) for column in one.table.columns}),
            reduce(add, parts, partial(none)),
            TIME in one.frame.columns,
            min((note["first"] for note in notes), default=MAXIMUM),
            max((note["last"] for note in notes), default=MINIMUM),
            all(note["inserts"] for note in notes),
            one.meaning == "upserts",
        ))  # fmt: skip
    return rows


def _none_of(given: Given) -> Submitted:
    """No row, of a frame's columns: what is wrong with them is found before a job is run."""
    names = given.frame.columns
    if len(set(names)) < len(names):
        raise InvalidRow(f"{given.table.name}: a column is given twice: {', '.join(names)}")
    kinds = {name: pa.int64() if name in (TIME, DIFF) else pa.null() for name in names}
    empty_table = pa.table({name: pa.nulls(0, kind) for name, kind in kinds.items()})
    return submitted(given.table, _meant(empty_table, given.meaning))


@dataclass(frozen=True, slots=True)
class _Check:
    """The task: from rows as they were given to files of updates, with a note on each lot of them.

    `names` are those of the given columns, in their order.
    """

    table: Table
    names: tuple[str, ...]
    meaning: str
    time: int
    folder: Path
    marked: bool

    def __call__(self, batches: Batches) -> Batches:
        for lot in gathered(batches, WRITTEN_ROWS):
            given = lot.rename_columns(list(self.names))
            try:
                rows = submitted(self.table, _meant(given, self.meaning))
            except InvalidRow as problem:
                raise unnumbered(problem, self.table, given) from None
            if not rows.length:  # a frame without columns
                continue
            time = constant(self.time, rows.length) if rows.time is None else rows.time
            diff = constant(1, rows.length) if rows.diff is None else rows.diff
            part = partial(rows) if self.marked else replace(partial(_none(rows)), rows=rows.length)
            yield note(json.dumps({
                "meaning": part.meaning, "rows": part.rows, "sums": part.sums, "first": int(time.min()),
                "last": int(time.max()), "inserts": bool((diff == 1).all()),
            }))  # fmt: skip
            updates = Updates(rows.columns, time, diff)
            yield from in_files(self.folder, updates.filter(diff != 0), self.table.primary_key)


def keyed(
    session: Any, batch: Sequence[tuple[FrameRows, Sequence[Part]]], files: StateFiles, scratch: Scratch
) -> list[StoredRun]:
    """The updates that rows mean for tables with a PRIMARY KEY, with all updates of each table so far.

    A task gets the rows of a range of keys, and looks up in the files what is there under them, as a local batch does.

    Raises:
        InvalidRow: some time would have two rows of a key, or a row less than none.
    """
    kinds, places = [], [scratch.fresh() for _ in batch]
    for (rows, there), place in zip(batch, places, strict=True):
        table, whole = rows.table, rows.run.schema
        schema = {name: whole[name] for name in table.primary_key} if rows.inserts and not rows.upsert else whole
        layout = Layout(tuple(schema.items()))
        new = read(session, files.runs(rows.run), schema, list(schema))
        count = len(rows.run) // CHECKED_ROWS + 1
        ranges = [f"c{layout.position(name)}" for name in table.primary_key]
        new = new.coalesce(1) if count == 1 else new.repartitionByRange(count, *ranges)
        span = range_of(rows.run, table.primary_key[0], whole[table.primary_key[0]])
        near = [part if span is None else span.files(part, table.primary_key[0]) for part in there]
        old = tuple(run for part in near for run in files.runs(part))
        kinds.append((new, _Keys(table, layout, old, place.path, rows.upsert)))
    return [
        StoredRun(place, found.files, rows.run.schema) if rows.upsert else rows.run
        for (rows, _), place, found in zip(batch, places, answers(*kinds), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Keys:
    """The task: all new rows of some keys, held against the rule with what is `there`; of upserts what they mean."""

    table: Table
    layout: Layout
    there: tuple[StoredRun, ...]
    folder: Path
    upsert: bool

    def __call__(self, batches: Batches) -> Batches:
        for rows in gathered(batches, MAXIMUM):
            changed = updates_of(rows, self.layout)
            arrangement = arrangement_of(self.table)
            key = PrimaryKey(self.table, arrangement, key_columns(arrangement, {}))
            near = key.near(self.there, changed)
            try:
                if self.upsert:
                    refuse_unordered(self.table, Submitted(changed.columns, len(changed), changed.time, None, True))
                    meant = key.replaced(near, changed)
                    yield from in_files(self.folder, meant, self.table.primary_key)
                else:
                    key.check(near, changed)
            except InvalidRow as problem:
                raise unnumbered(problem, self.table, None) from None


def _meant(given: pa.Table, meaning: str) -> Any:
    return given if meaning == "plain" else Rows(given, meaning)  # type: ignore[arg-type]


def _none(rows: Submitted) -> Submitted:
    columns = {name: column.slice(0, 0) for name, column in rows.columns.items()}
    return replace(rows, columns=columns, length=0, time=None, diff=None)

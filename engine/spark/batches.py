"""Rows of a table that come as a Spark DataFrame: checked, typed and written by tasks.

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
from halfjoin.engine.rows import Rows, Submitted, submitted, unnumbered
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.spark.layout import Frame
from halfjoin.engine.spark.tasks import Batches, gathered
from halfjoin.engine.spark.writing import WRITTEN_ROWS, answers, in_files, note
from halfjoin.engine.storage.scratch import Scratch
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates import DIFF, MAXIMUM, MINIMUM, TIME, Updates, concat, constant, empty
from halfjoin.engine.upserts import refuse_unordered
from halfjoin.sql.errors import InvalidRow


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
class GivenFrame:
    """A table's rows as they were given: a frame, and what its rows mean."""

    table: Table
    frame: Frame
    meaning: str


def checked(given: Sequence[GivenFrame], time: int, scratch: Scratch, *, marked: bool) -> list[FrameRows]:
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


def _none_of(given: GivenFrame) -> Submitted:
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


def _meant(given: pa.Table, meaning: str) -> Any:
    return given if meaning == "plain" else Rows(given, meaning)  # type: ignore[arg-type]


def _none(rows: Submitted) -> Submitted:
    columns = {name: column.slice(0, 0) for name, column in rows.columns.items()}
    return replace(rows, columns=columns, length=0, time=None, diff=None)

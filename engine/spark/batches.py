"""Rows of a table that come as a Spark DataFrame: checked, typed and written by tasks.

The tasks call what checks a local batch, so a value is taken or refused as it is there. The frame is evaluated once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
import pyarrow as pa

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.debezium import Messages
from halfjoin.engine.intake.fingerprint import Partial, partial
from halfjoin.engine.intake.rows import Rows, Submitted, submitted, unnumbered
from halfjoin.engine.intake.upserts import refuse_unordered
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.spark.intake import Intake
from halfjoin.engine.spark.layout import Frame
from halfjoin.engine.spark.messages import TRUNCATED, after_truncation, in_order
from halfjoin.engine.spark.tasks import Batches, gathered
from halfjoin.engine.spark.writing import WRITTEN_ROWS, answers
from halfjoin.engine.storage.scratch import Scratch
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.updates import DIFF, MAXIMUM, MINIMUM, TIME, concat, empty
from halfjoin.errors import InvalidRow


@dataclass(frozen=True, slots=True)
class FrameRows:
    """A table's checked rows. `part` is their fingerprint.

    `timed`: whether they came with times; `first` and `last` are the least and the greatest of their times. `inserts`:
    whether each adds one copy; `upsert` and `whole` are those of `Submitted`, `unnamed` the columns that none of them
    names. `run` has them with every time and diff filled in.
    """

    table: Table
    run: StoredRun
    part: Partial
    timed: bool
    first: int
    last: int
    inserts: bool
    upsert: bool
    whole: bool
    unnamed: tuple[str, ...] = ()

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
        unnamed = dict.fromkeys(self.unnamed, np.ones(len(found), np.bool_))
        rows = Submitted(found.columns, len(found), time, diff, self.upsert, self.whole, numbered=False,
                         unnamed=unnamed)  # fmt: skip
        if self.upsert:
            refuse_unordered(self.table, rows)
        return rows


@dataclass(frozen=True, slots=True)
class GivenFrame:
    """A table's rows as they were given: a frame, and what its rows mean (`Rows` without data).

    `whole`: as of `Submitted`.
    """

    table: Table
    frame: Frame
    meant: Rows
    whole: bool = False


def checked(given: Sequence[GivenFrame], time: int, scratch: Scratch, *, marked: bool) -> list[FrameRows]:
    """Evaluate frames, check their rows and write them; those without a time of their own get `time`.

    Their fingerprints are computed if they are to be `marked`. Messages that truncate their table are read once more.

    Raises:
        UnknownName, InvalidRow, InvalidTime: as `rows.submitted`, with a key in place of a row's number.
    """
    nothing = [_none_of(one) for one in given]
    places = [scratch.fresh() for _ in given]
    due = [_due(one, Intake(one.table, time, place.path, marked)) for one, place in zip(given, places, strict=True)]
    rows: list[FrameRows] = []
    for one, none, place, found in zip(given, nothing, places, answers(*due), strict=True):
        notes = [json.loads(text) for text in found.notes]
        truncations = [note[TRUNCATED] for note in notes if TRUNCATED in note]
        if truncations:
            rest = after_truncation(one.table, one.frame, truncations)
            rows += checked([replace(one, frame=rest, whole=True)], time, scratch, marked=marked)
            continue
        parts = [Partial(note["meaning"], note["rows"], tuple(note["sums"])) for note in notes]
        rows.append(FrameRows(
            one.table,
            StoredRun(place, found.files, {column.name: arrow_type(column.type) for column in one.table.columns}),
            reduce(add, parts, partial(none)),
            none.timed,
            min((note["first"] for note in notes), default=MAXIMUM),
            max((note["last"] for note in notes), default=MINIMUM),
            all(note["inserts"] for note in notes),
            none.upsert,
            one.whole,
            tuple(none.unnamed),
        ))  # fmt: skip
    return rows


def _due(one: GivenFrame, intake: Intake) -> tuple[Frame, Callable[[Batches], Batches]]:
    """A frame, and the task that checks and writes its rows."""
    names = tuple(one.frame.columns)
    # By position: a name such as `a.b` is to Spark a field of a column `a`.
    plain = one.frame.toDF(*(f"c{i}" for i in range(len(names))))
    if isinstance(one.meant, Messages):
        return in_order(plain, names, one.meant, intake, whole=one.whole)
    return plain, _Check(names, one.meant, intake)


def _none_of(given: GivenFrame) -> Submitted:
    """No row, of a frame's columns: what is wrong with them is found before a job is run."""
    names = given.frame.columns
    if len(set(names)) < len(names):
        raise InvalidRow(f"a column is given twice: {', '.join(names)}", table=given.table.name)
    kinds = {name: pa.int64() if name in (TIME, DIFF) else pa.null() for name in names}
    empty_table = pa.table({name: pa.nulls(0, kind) for name, kind in kinds.items()})
    return replace(submitted(given.table, replace(given.meant, data=empty_table)), whole=given.whole)


@dataclass(frozen=True, slots=True)
class _Check:
    """The task: from rows as they were given to files of updates. `names` are those of the columns, in their order."""

    names: tuple[str, ...]
    meant: Rows
    intake: Intake

    def __call__(self, batches: Batches) -> Batches:
        for lot in gathered(batches, WRITTEN_ROWS):
            given = lot.rename_columns(list(self.names))
            try:
                rows = submitted(self.intake.table, replace(self.meant, data=given))
            except InvalidRow as problem:
                raise unnumbered(problem, self.intake.table, given) from None
            yield from self.intake.written(rows)

"""Check, type and write a table's rows that come as a Spark DataFrame, in tasks.

The tasks call the checks of a local batch, so they take and refuse the same values. The frame is evaluated once.
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
from halfjoin.engine.intake.rows import GivenRows, Submitted, submitted, unnumbered
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

    `timed`: whether they came with times. `first` and `last`: the least and the greatest of their times. `inserts`:
    whether each row adds one copy. `upsert` and `whole`: as in `Submitted`. `unnamed`: the columns that no row names.
    `run` has the rows with every time and diff filled in.
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

    def loaded(self) -> Submitted:
        """The rows, read into this process.

        Raises:
            InvalidRow: two upserts have the same key.
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
    """A table's rows as submitted: a frame, and the meaning of its rows (`GivenRows` without data).

    `held`: the rows of the table so far, a hint how many these are beside those of other tables. `whole`: as in
    `Submitted`.
    """

    table: Table
    frame: Frame
    meant: GivenRows
    held: int
    whole: bool = False


def checked(given: Sequence[GivenFrame], time: int, scratch: Scratch, *, marked: bool) -> list[FrameRows]:
    """Evaluate frames, check their rows and write them. Rows without a time get `time`.

    Computes fingerprints if `marked`. Reads messages a second time if they truncate their table.

    Raises:
        UnknownName, InvalidRow, InvalidTime: as `rows.submitted`, with a key instead of a row's number.
    """
    nothing = [_none_of(one) for one in given]
    places = [scratch.fresh() for _ in given]
    due = [_due(one, Intake(one.table, time, place.path, marked)) for one, place in zip(given, places, strict=True)]
    rows: list[FrameRows] = []
    told = answers(*due, sizes=[one.held for one in given])
    for one, none, place, found in zip(given, nothing, places, told, strict=True):
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
    # By position: for Spark a name such as `a.b` is a field of a column `a`.
    plain = one.frame.toDF(*(f"c{i}" for i in range(len(names))))
    if isinstance(one.meant, Messages):
        return in_order(plain, names, one.meant, intake, whole=one.whole)
    return plain, _Check(names, one.meant, intake)


def _none_of(given: GivenFrame) -> Submitted:
    """A frame's columns without rows, checked: this finds wrong columns before a job runs."""
    names = given.frame.columns
    if len(set(names)) < len(names):
        raise InvalidRow(f"a column is given twice: {', '.join(names)}", table=given.table.name)
    kinds = {name: pa.int64() if name in (TIME, DIFF) else pa.null() for name in names}
    empty_table = pa.table({name: pa.nulls(0, kind) for name, kind in kinds.items()})
    return replace(submitted(given.table, replace(given.meant, data=empty_table)), whole=given.whole)


@dataclass(frozen=True, slots=True)
class _Check:
    """The task that checks submitted rows and writes files of updates. `names`: the names of the columns, in order."""

    names: tuple[str, ...]
    meant: GivenRows
    intake: Intake

    def __call__(self, batches: Batches) -> Batches:
        for lot in gathered(batches, WRITTEN_ROWS):
            given = lot.rename_columns(list(self.names))
            try:
                rows = submitted(self.intake.table, replace(self.meant, data=given))
            except InvalidRow as problem:
                raise unnumbered(problem, self.intake.table, given) from None
            yield from self.intake.written(rows)

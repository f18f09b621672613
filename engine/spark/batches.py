"""Rows of a table that come as a Spark DataFrame: checked, typed and written by tasks, and held against the key.

The tasks call what checks a local batch, so a value is taken or refused as it is there. The frame is evaluated once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, and_
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from halfjoin.catalog.models import Table
from halfjoin.engine.collection import Collection
from halfjoin.engine.fingerprint import Partial, partial
from halfjoin.engine.keys import key_columns
from halfjoin.engine.primary_key import PrimaryKey, arrangement_of
from halfjoin.engine.rows import Rows, Submitted, submitted, unnumbered
from halfjoin.engine.run import Part, Run
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.spark.files import StateFiles
from halfjoin.engine.spark.flow import BROADCAST, Frame, read
from halfjoin.engine.spark.layout import Layout
from halfjoin.engine.spark.pruning import range_of
from halfjoin.engine.spark.tasks import Batches, array_of, gathered, updates_of
from halfjoin.engine.spark.writing import WRITTEN_ROWS, answers, in_files, note
from halfjoin.engine.storage.scratch import ScratchPlace
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates import DIFF, MAXIMUM, MINIMUM, TIME, Updates, concat, constant, empty
from halfjoin.engine.upserts import refuse_unordered
from halfjoin.sql.errors import InvalidRow

CHECKED_ROWS = 1 << 17  # of which a task holds the keys against what is there
_NEW = "__new"  # tells a batch's rows from those that are there


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


def checked(table: Table, frame: Frame, meaning: str, time: int, place: ScratchPlace, *, marked: bool) -> FrameRows:
    """Evaluate a frame, check its rows and write them; those without a time of their own get `time`.

    Their fingerprint is computed if they are to be `marked`.

    Raises:
        UnknownName, InvalidRow, InvalidTime: as `rows.submitted`, with a key in place of a row's number.
    """
    names = frame.columns
    if len(set(names)) < len(names):
        raise InvalidRow(f"{table.name}: a column is given twice: {', '.join(names)}")
    kinds = {name: pa.int64() if name in (TIME, DIFF) else pa.null() for name in names}
    none = submitted(table, _meant(pa.table({name: pa.nulls(0, kind) for name, kind in kinds.items()}), meaning))
    # By position: a name such as `a.b` is to Spark a field of a column `a`.
    plain = frame.toDF(*(f"c{i}" for i in range(len(names))))
    found = answers(plain, _Check(table, tuple(names), meaning, time, place.path, marked))
    notes = [json.loads(text) for text in found.notes]
    parts = [Partial(one["meaning"], one["rows"], tuple(one["sums"])) for one in notes]
    return FrameRows(
        table,
        StoredRun(place, found.files, {column.name: arrow_type(column.type) for column in table.columns}),
        reduce(add, parts, partial(none)),
        TIME in names,
        min((one["first"] for one in notes), default=MAXIMUM),
        max((one["last"] for one in notes), default=MINIMUM),
        all(one["inserts"] for one in notes),
        meaning == "upserts",
    )


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


def keyed(session: Any, rows: FrameRows, there: Sequence[Part], files: StateFiles, place: ScratchPlace) -> StoredRun:
    """The updates that rows mean for a table with a PRIMARY KEY, all of whose updates so far are `there`.

    Raises:
        InvalidRow: some time would have two rows of a key, or a row less than none.
    """
    table, whole = rows.table, rows.run.schema
    schema = {name: whole[name] for name in table.primary_key} if rows.inserts and not rows.upsert else whole
    names = list(schema)
    layout = Layout(tuple(schema.items()))
    first = table.primary_key[0]
    span = range_of(rows.run, first, schema[first])
    near = [part if span is None else span.files(part, first) for part in there]
    new = read(session, files.of(rows.run), schema, names)
    old = read(session, [path for part in near for path in files.of(part)], schema, names)
    if span is not None:
        old = old.where(span.condition(F.col(f"c{names.index(first)}")))
    key = [f"c{names.index(name)}" for name in table.primary_key]
    old = _with_keys_of(old, new, key, len(rows.run))
    both = new.withColumn(_NEW, F.lit(True)).union(old.withColumn(_NEW, F.lit(False)))
    if not rows.upsert:
        doubtful = _doubtful(both.repartition(*key), layout, key)
        if not doubtful.count():  # all partitions at once, where `isEmpty` asks them one after the other
            return rows.run
        both = _with_keys_of(both, doubtful, key, None)
    count = len(rows.run) // CHECKED_ROWS + 1
    found = answers(both.repartition(count, *key), _Keys(table, layout, place.path, rows.upsert))
    return StoredRun(place, found.files, whole) if rows.upsert else rows.run


def _with_keys_of(frame: Frame, other: Frame, key: Sequence[str], rows: int | None) -> Frame:
    """The rows whose key another frame has, of so many rows (None: few)."""
    wanted = other.select(*(F.col(name).alias(f"k{i}") for i, name in enumerate(key)))
    if rows is None or rows <= BROADCAST:
        wanted = F.broadcast(wanted)
    return frame.join(wanted, reduce(and_, (F.col(name) == F.col(f"k{i}") for i, name in enumerate(key))), "left_semi")


def _doubtful(both: Frame, layout: Layout, key: Sequence[str]) -> Frame:
    """The keys of old and new updates that may break the rule; whether they do, the tasks' check says.

    None is doubtful if all new updates of it have one time, the last, where no row is there less than zero times, and
    not more than one row. Equal rows are summed before keys are; both are there where the frame has them partitioned.
    """
    new = F.col(_NEW)
    times = [F.min(F.when(new, F.col(TIME))).alias("begin"), F.max(F.when(new, F.col(TIME))).alias("end"),
             F.max(TIME).alias("last")]  # fmt: skip
    rows = both.groupBy(*layout.in_spark[: len(layout.columns)]).agg(F.sum(DIFF).alias("copies"), *times)
    keys = rows.groupBy(*key).agg(
        F.min("copies").alias("least"), F.sum("copies").alias("rows"), F.min("begin").alias("begin"),
        F.max("end").alias("end"), F.max("last").alias("last"),
    )  # fmt: skip
    wrong = (F.col("least") < 0) | (F.col("rows") > 1) | (F.col("begin") < F.col("end"))
    return keys.where(wrong | (F.col("last") > F.col("end"))).select(*key)


@dataclass(frozen=True, slots=True)
class _Keys:
    """The task: all updates of some keys, old and new, held against the rule; of upserts the updates that they mean."""

    table: Table
    layout: Layout
    folder: Path
    upsert: bool

    def __call__(self, batches: Batches) -> Batches:
        for both in gathered(batches, MAXIMUM):
            new = array_of(both, _NEW).to_numpy(zero_copy_only=False)
            updates = updates_of(both, self.layout)
            old, changed = updates.take(np.flatnonzero(~new)), updates.take(np.flatnonzero(new))
            arrangement = arrangement_of(self.table)
            key = PrimaryKey(self.table, arrangement, key_columns(arrangement, {}))
            there = Collection(self.table.name, dict(self.layout.columns), 1, held=(Run(old),))
            try:
                if self.upsert:
                    refuse_unordered(self.table, Submitted(changed.columns, len(changed), changed.time, None, True))
                    meant = key.replaced(there, changed)
                    yield from in_files(self.folder, meant, self.table.primary_key)
                else:
                    key.check(there, changed)
            except InvalidRow as problem:
                raise unnumbered(problem, self.table, None) from None


def _meant(given: pa.Table, meaning: str) -> Any:
    return given if meaning == "plain" else Rows(given, meaning)  # type: ignore[arg-type]


def _none(rows: Submitted) -> Submitted:
    columns = {name: column.slice(0, 0) for name, column in rows.columns.items()}
    return replace(rows, columns=columns, length=0, time=None, diff=None)

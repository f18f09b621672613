"""PRIMARY KEYs of rows that came as DataFrames, held by tasks against what is in the table's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from halfjoin.catalog.models import Table
from halfjoin.engine.keys import key_columns
from halfjoin.engine.primary_key import PrimaryKey, arrangement_of
from halfjoin.engine.rows import Submitted, unnumbered
from halfjoin.engine.run import Part
from halfjoin.engine.spark.batches import FrameRows
from halfjoin.engine.spark.files import StateFiles
from halfjoin.engine.spark.frames import read
from halfjoin.engine.spark.layout import Layout
from halfjoin.engine.spark.pruning import range_of
from halfjoin.engine.spark.tasks import Batches, gathered, updates_of
from halfjoin.engine.spark.writing import answers, in_files
from halfjoin.engine.storage.scratch import Scratch
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates import MAXIMUM
from halfjoin.engine.upserts import refuse_unordered
from halfjoin.sql.errors import InvalidRow

CHECKED_ROWS = 1 << 17  # of which a task holds the keys against what is there


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
        old = tuple(run for part in there for run in files.runs(part))
        if span is not None:
            old = tuple(replace(run, files=span.files(run, table.primary_key[0])) for run in old)
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

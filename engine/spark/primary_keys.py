"""Check the PRIMARY KEYs of rows in DataFrames, by tasks that look into the table's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from halfjoin.catalog.models import Table
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.intake.primary_key import primary_key
from halfjoin.engine.intake.rows import Submitted, unnumbered
from halfjoin.engine.intake.unnamed import filled
from halfjoin.engine.intake.upserts import refuse_unordered
from halfjoin.engine.spark.batches import FrameRows
from halfjoin.engine.spark.files import StateFiles
from halfjoin.engine.spark.key_lots import Lot, lots_of
from halfjoin.engine.spark.pruning import range_of
from halfjoin.engine.spark.tasks import Batches
from halfjoin.engine.spark.writing import answers_by_number, in_files
from halfjoin.engine.storage.scratch import Scratch
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.errors import InvalidRow

CHECKED_ROWS = 1 << 16  # rows whose keys a task checks at a time


def keyed(
    session: Any, batch: Sequence[tuple[FrameRows, Sequence[Part]]], files: StateFiles, scratch: Scratch
) -> list[StoredRun]:
    """The updates that rows mean for tables with a PRIMARY KEY. Each table comes with all its updates so far.

    A task reads the rows of some keys, and looks their existing rows up in the files, as a local batch does.

    Raises:
        InvalidRow: a key would have two rows at some time, or a row a negative count.
    """
    kinds, places = [], [scratch.fresh() for _ in batch]
    for (rows, there), place in zip(batch, places, strict=True):
        first, whole = rows.table.primary_key[0], rows.run.schema
        names = rows.table.primary_key if rows.inserts and not rows.upsert else tuple(whole)
        span = range_of(rows.run, first, whole[first])
        parts = there if span is None else [span.files(part, first) for part in there]
        old = [run for part in parts for run in files.runs(part)]
        lots, (new,) = tuple(lots_of(rows.run, rows.table.primary_key, CHECKED_ROWS)), files.runs(rows.run)
        task = _Keys(rows.table, names, new, lots, tuple(old), place.path, rows.upsert, rows.unnamed)
        kinds.append(([(len(rows.run) + sum(map(len, old))) // len(lots)] * len(lots), task))
    found = answers_by_number(session, *kinds)
    return [
        StoredRun(place, made.files, rows.run.schema) if rows.upsert or rows.unnamed else rows.run
        for (rows, _), place, made in zip(batch, places, found, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Keys:
    """The task: checks all `new` rows of some keys against the rows that are already `there`.

    For upserts, and for rows with `unnamed` columns, it writes the updates that they mean.
    """

    table: Table
    names: tuple[str, ...]
    new: StoredRun
    lots: tuple[Lot, ...]
    there: tuple[StoredRun, ...]
    folder: Path
    upsert: bool
    unnamed: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        for number in (number for batch in batches for number in batch.column(0).to_pylist()):
            changed = self.lots[number].read(self.new, self.names)
            key = primary_key(self.table)
            candidates = key.candidates(self.there, changed)
            try:
                if self.upsert:
                    refuse_unordered(self.table, Submitted(changed.columns, len(changed), changed.time, None, True))
                if self.unnamed:
                    unnamed = dict.fromkeys(self.unnamed, np.ones(len(changed), np.bool_))
                    changed = filled(key, candidates, changed, unnamed, upsert=self.upsert)
                if self.upsert:
                    changed = key.replaced(candidates, changed)
                key.check(candidates, changed)  # later existing rows stay
                if self.upsert or self.unnamed:
                    yield from in_files(self.folder, changed, self.table.primary_key)
            except InvalidRow as problem:
                raise unnumbered(problem, self.table, None) from None

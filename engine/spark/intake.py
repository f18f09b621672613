"""Write checked rows in the task that checked them, with a note on each lot for the driver."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from halfjoin.catalog.models import Table
from halfjoin.engine.intake.fingerprint import partial
from halfjoin.engine.intake.rows import Submitted
from halfjoin.engine.spark.tasks import Batches
from halfjoin.engine.spark.writing import in_files, note
from halfjoin.engine.updates.updates import Updates, constant


@dataclass(frozen=True, slots=True)
class Intake:
    """Where to write a table's rows, the `time` of rows without one, and whether to compute fingerprints (`marked`)."""

    table: Table
    time: int
    folder: Path
    marked: bool

    def written(self, rows: Submitted) -> Batches:
        """Write files of the updates. Yields their answers and a note for the driver."""
        if not rows.length:  # a frame without columns
            return
        time = constant(self.time, rows.length) if rows.time is None else rows.time
        diff = constant(1, rows.length) if rows.diff is None else rows.diff
        part = partial(rows) if self.marked else replace(partial(_none(rows)), rows=rows.length)
        yield note(json.dumps({
            "meaning": part.meaning, "rows": part.rows, "sums": part.sums, "first": int(time.min()),
            "last": int(time.max()), "inserts": bool((diff == 1).all()),
        }))  # fmt: skip
        updates = Updates(rows.columns, time, diff)
        kept = updates if rows.upsert else updates.filter(diff != 0)  # an upsert with 0 deletes the row of its key
        yield from in_files(self.folder, kept, self.table.primary_key)


def _none(rows: Submitted) -> Submitted:
    columns = {name: column.slice(0, 0) for name, column in rows.columns.items()}
    unnamed = {name: missing[:0] for name, missing in rows.unnamed.items()}
    return replace(rows, columns=columns, length=0, time=None, diff=None, unnamed=unnamed)

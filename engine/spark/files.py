"""State as Parquet files that Spark's tasks read and write, in a scratch folder of one engine."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from halfjoin.engine.spark.types import encode, restore
from halfjoin.engine.updates import DIFF, TIME, Updates, empty
from halfjoin.sql.errors import UnsupportedSQL

# The files that hold a collection's updates, after (True) or before (False) the batch: columns by their names, encoded
# as in `spark.types`, `__time` and `__diff`; further columns are ignored.
FilesOf: TypeAlias = Callable[[str, bool], Sequence[str]]

_GROUP_ROWS = 1 << 18  # a row group is the least that a task reads


class RunFiles:
    """Which files hold which updates, for as long as those live.

    Args:
        folder: where the scratch folder is made; this process and all of Spark's must see it under the same path.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="halfjoin-", dir=folder))
        self._known: dict[int, tuple[str, ...]] = {}
        self._pinned: list[Updates] = []
        self._made = 0
        self.close = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def fresh(self) -> Path:
        """A path in the scratch folder at which nothing is yet."""
        self._made += 1
        return self._folder / str(self._made)

    def of(self, updates: Updates) -> tuple[str, ...]:
        """The files with these updates, written now if there are none; none where there are no updates."""
        if not len(updates):
            return ()
        if id(updates) not in self._known:
            check_names(updates.columns)
            path = self.fresh()
            path.mkdir()
            table = Updates({name: encode(column) for name, column in updates.columns.items()}, updates.time,
                            updates.diff).table(changes=True)  # fmt: skip
            pq.write_table(table, path / "0.parquet", row_group_size=_GROUP_ROWS)
            self._keep(updates, path, (str(path / "0.parquet"),))
        return self._known[id(updates)]

    def load(self, folder: Path, schema: Mapping[str, pa.DataType]) -> Updates:
        """The updates that a Spark job has written to a fresh folder."""
        table = self.table(folder)
        if not len(table):
            return empty(schema)
        columns = {name: restore(table.column(name).chunk(0), kind) for name, kind in schema.items()}
        time, diff = (table.column(name).chunk(0).to_numpy() for name in (TIME, DIFF))
        updates = Updates(columns, time, diff)
        self._keep(updates, folder, _in(folder))
        return updates

    def table(self, folder: Path) -> pa.Table:
        """All rows that a Spark job has written to a fresh folder, in one chunk."""
        files = _in(folder)
        if not files:
            return pa.table({})
        table = pq.read_table(list(files), partitioning=None, coerce_int96_timestamp_unit="us")
        return table.combine_chunks()

    def pin(self, updates: Updates) -> None:
        """Keep the files of these updates until `close`: somebody may still read them."""
        self._pinned.append(updates)

    def _keep(self, updates: Updates, folder: Path, files: tuple[str, ...]) -> None:
        self._known[id(updates)] = files
        weakref.finalize(updates, _forget, self._known, id(updates), folder)


def _in(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(map(str, folder.glob("*.parquet"))))


def check_names(names: Mapping[str, object] | Sequence[str]) -> None:
    """Refuse columns that Spark cannot keep apart."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise UnsupportedSQL(f'columns "{other}" and "{name}", which Spark takes for one, on the Spark runner',
                                 instead='rename one of them, or use Engine(runner="local")')  # fmt: skip


def _forget(known: dict[int, tuple[str, ...]], number: int, folder: Path) -> None:
    known.pop(number, None)
    shutil.rmtree(folder, ignore_errors=True)

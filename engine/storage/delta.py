"""A collection's Delta table: appended to, merged, read at a version. Written by one process, read by any tool.

A commit carries the number of the last journal entry that is in the table, as the version of an application's
transaction, so that it can be told from the table itself what is in it.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from halfjoin.engine.codes import is_exact
from halfjoin.engine.collection import GROWTH
from halfjoin.engine.storage.merging import merged
from halfjoin.engine.storage.parquet import StoredFile, file_schema, run_of, write
from halfjoin.engine.storage.place import Place
from halfjoin.engine.updates import MINIMUM, Updates
from halfjoin.sql.errors import StorageError

Run = TypeVar("Run")
_UNORDERED_BYTES = 64 << 20
_STARTED = clock.time()
_CONFIGURATION = {
    "delta.checkpointInterval": "20",
    "delta.dataSkippingNumIndexedCols": "-1",  # all: by default the statistics of `__time` are read up to 32 columns
}
KEEP_HOURS = 1  # that a file which is no longer part of the table stays, for those who are reading it


@dataclass(frozen=True, slots=True)
class Layout:
    """How a collection is laid out in files: its columns, and by which of them it is sorted."""

    schema: Mapping[str, pa.DataType]
    sort: Sequence[str]


class DeltaFolder:
    """The Delta table in a folder. `app` tells its collection from others that have had the name, or will; "" where
    there are none.
    """

    def __init__(self, place: Place, app: str) -> None:
        self.place, self._app = place, app

    def recover(self, entry: int, version: int | None) -> tuple[int, int | None]:
        """What the table holds that the journal may not know of: the last entry that is in it, and its version.

        `entry` and `version` are what the journal knows. A later commit counts if it is whole; what is torn, or
        another collection's that had the name, is removed, and so is a table of which the journal knows nothing.

        Raises:
            StorageError: what the journal knows of is not there.
        """
        try:
            table = self._open()
            if table is None or (version is not None and table.version() < version):
                self._check_there(table, version)
                return entry, version
            if version == table.version():
                return entry, version
            found = table.transaction_version(self._app)
            if version is not None and found is not None and found >= entry and self._whole(table):
                return int(found), table.version()
        except (DeltaError, OSError):  # a commit that is not readable was never acknowledged
            pass
        self.place.cut(-1 if version is None else version)  # files stay: the journal may know of them
        return entry, version

    def append(
        self, updates: Updates | None, files: Sequence[StoredFile], layout: Layout, entry: int | None,
        version: int | None,
    ) -> int | None:  # fmt: skip
        """Add updates, and files of updates that are in the folder already, to a version.

        Args:
            updates: to be written now (None: none).
            files: that are there.
            layout: of the table.
            entry: with them the table holds all entries up to this one (None: the table does not say).
            version: of the table before (None: there is none).

        Returns:
            The table's version (None: there is none).

        Raises:
            StorageError: the table is at another version, and may hold what it is not known to hold.
        """
        table = self._open()
        self._check_there(table, version)
        if table is not None and table.version() != version:
            raise StorageError(f"the table {self.place} has been written by another process; it will be looked at anew")
        if not files and (updates is None or not len(updates)):
            return None if table is None else int(table.version())
        if table is None:
            table = self._create(layout)
        added = [*(write(self.place, updates, layout.schema, layout.sort) if updates is not None else ()), *files]
        return self._commit(table, [add_action(file, True) for file in added], layout, entry)

    def merge(self, layout: Layout, since: int, *, everything: bool) -> int | None:
        """Write the smaller runs of files, or all files, anew as one run, as far as there are several; None if there
        are not. What is in memory at a time does not depend on how large they are.
        """
        table = self._open()
        # Without an order of integers a merge reads its files once for each part of them that memory holds.
        ordered = bool(layout.sort) and is_exact([pa.nulls(0, layout.schema[layout.sort[0]])])
        old = [] if table is None else _mergeable(_parts(table), everything, None if ordered else _UNORDERED_BYTES)
        if table is None or not old:
            return None
        added = merged(self.place, old, layout.schema, layout.sort, since)
        now = int(clock.time() * 1000)
        removed = [RemoveAction(part.name, False, now, part.size) for part in old]
        self._commit(table, [*(add_action(file, False) for file in added), *removed], layout, None)
        table.vacuum(KEEP_HOURS, dry_run=False, enforce_retention_duration=False)
        # What is in no version, and not written by this process for a batch that is under way, is of one that failed.
        hours = KEEP_HOURS + math.ceil((clock.time() - _STARTED) / 3600)
        table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True)
        self.place.settle()
        table.update_incremental()
        return int(table.version())  # vacuums that find something are versions, too

    def files(self, version: int | None) -> tuple[StoredFile, ...]:
        """The files of a version.

        Raises:
            StorageError: the version is not there, or is of another collection, which has the name by now.
        """
        if version is None:
            return ()
        try:
            table = DeltaTable(self.place.uri, version=version)
            if not self._app or table.transaction_version(self._app) is not None:
                return tuple(_parts(table))
        except (DeltaError, OSError) as problem:
            raise StorageError(f"the table {self.place} cannot be read at version {version}: {problem}") from problem
        raise StorageError(f"the table {self.place} was dropped, and another made with its name")

    def held(self) -> tuple[int, int]:
        """The rows of the newest version and the last of their times, without reading them."""
        table = self._open()
        parts = [] if table is None else _parts(table)
        return sum(part.rows for part in parts), max((part.latest for part in parts), default=MINIMUM)

    def _open(self) -> DeltaTable | None:
        try:
            return DeltaTable(self.place.uri)
        except TableNotFoundError:
            return None

    def _check_there(self, table: DeltaTable | None, version: int | None) -> None:
        if version is not None and (table is None or table.version() < version):
            raise StorageError(f"the table {self.place} is not there at version {version}, which the journal knows")

    def _create(self, layout: Layout) -> DeltaTable:
        self.place.make()
        table = DeltaTable.create(self.place.uri, file_schema(layout.schema), configuration=_CONFIGURATION)
        self.place.settle()
        return table

    def _commit(self, table: DeltaTable, actions: list[Any], layout: Layout, entry: int | None) -> int:
        marks = [] if entry is None else [Transaction(self._app, entry)]
        properties = CommitProperties(app_transactions=marks, max_commit_retries=0)
        table.create_write_transaction(actions, "append", file_schema(layout.schema), commit_properties=properties)
        self.place.settle()
        table.update_incremental()  # a commit does not refresh its handle
        return int(table.version())

    def _whole(self, table: DeltaTable) -> bool:
        return all(self.place.size(part.name) == part.size for part in _parts(table))


def _parts(table: DeltaTable) -> list[StoredFile]:
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return [
        StoredFile(action["path"], action["size_bytes"], action["num_records"], action["max.__time"], "")
        for action in actions
    ]


def mergeable(runs: Iterable[Run], rows: Callable[[Run], int]) -> list[Run]:
    """The runs to be merged: each of them no larger than the smaller ones together by far, so that a row is rewritten
    a logarithmic number of times."""
    chosen: list[Run] = []
    size = 0
    for run in sorted(runs, key=rows):
        if chosen and rows(run) > GROWTH * size:
            break
        chosen.append(run)
        size += rows(run)
    return chosen if len(chosen) > GROWTH else []


def _mergeable(parts: list[StoredFile], everything: bool, most: int | None) -> list[StoredFile]:
    """The files of the runs to be merged; but for everything, no more than so many bytes."""
    if everything:
        return parts
    runs: dict[str, list[StoredFile]] = {}
    for part in parts:
        runs.setdefault(run_of(part.name), []).append(part)
    small, taken = [], 0
    for files in sorted(runs.values(), key=_rows):
        taken += sum(file.size for file in files)
        if most is None or taken <= most:
            small.append(files)
    return [file for files in mergeable(small, _rows) for file in files]


def _rows(files: Iterable[StoredFile]) -> int:
    return sum(file.rows for file in files)


def add_action(file: StoredFile, changes: bool) -> AddAction:
    """The entry of a file in a commit; `changes` whether it is more than other files' rows written anew."""
    return AddAction(file.name, file.size, {}, int(clock.time() * 1000), changes, file.stats)

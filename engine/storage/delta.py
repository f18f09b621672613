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

from halfjoin.engine.arrange.collection import GROWTH
from halfjoin.engine.storage.commits import MARK, Commit, Torn, commit_file, commits
from halfjoin.engine.storage.damage import naming
from halfjoin.engine.storage.merging import merged
from halfjoin.engine.storage.parquet import StoredFile, file_schema, is_ours, run_of, write
from halfjoin.engine.storage.place import LOG, Place
from halfjoin.engine.updates.codes import is_exact
from halfjoin.engine.updates.updates import MINIMUM, Updates
from halfjoin.errors import StorageError

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

        `entry` and `version` are what the journal knows. A later commit of ours counts if it is whole; what is torn, or
        another collection's that had the name, is removed, and so is a table of which the journal knows nothing.

        Raises:
            StorageError: what the journal knows of is not there, or somebody else has changed the table.
        """
        later, torn = self._later(version)
        if version is None:
            self._check_ours(later, torn)
            self.place.cut(-1)  # files stay: the journal may know of them
            return entry, None
        if torn:
            self.place.cut(later[-1].version if later else version)
        if not later:
            self._check_there(self._open(), version)
            return entry, version
        theirs = self._untouched(version, later)
        table = DeltaTable(self.place.uri)
        found = table.transaction_version(self._app)
        if found is not None and found >= entry and self._whole(table):
            return int(found), table.version()
        self.place.cut(theirs)  # of ours, which may be in what somebody else has merged
        found = DeltaTable(self.place.uri).transaction_version(self._app)
        return max(entry, found or 0), theirs

    def foreign(self, version: int | None) -> str | None:
        """What is wrong with the table, if somebody else has changed it since a version; one look where nothing is
        newer."""
        try:
            with naming(f"the table {self.place}", DeltaError):
                if version is not None and self.is_newer(version):
                    self._untouched(version, self._later(version)[0])
        except StorageError as problem:
            return str(problem)
        return None

    def is_newer(self, version: int | None) -> bool:
        """Whether there is a commit after a version."""
        return self.place.size(commit_file(0 if version is None else version + 1)) is not None

    def _later(self, version: int | None) -> tuple[list[Commit], bool]:
        """The commits after a version, and whether one that is torn follows them."""
        found: list[Commit] = []
        try:
            found.extend(commits(self.place, -1 if version is None else version))
        except Torn:
            return found, True
        return found, False

    def _untouched(self, version: int, later: Sequence[Commit]) -> int:
        """Make sure that nobody else has changed what the table holds.

        Returns:
            The last version that is somebody else's, or the one before all.

        Raises:
            StorageError: somebody has, and has not taken it back.
        """
        theirs = [one for one in later if not self._is_ours(one)]
        changed = next((one for one in theirs if one.changes), None)
        if changed is None:
            merged = (one for one in theirs if one.rewrites)
            changed = next((one for one in merged if self._rows(one.version - 1) != self._rows(one.version)), None)
        if changed is not None:
            base, newest = DeltaTable(self.place.uri, version=changed.version - 1), DeltaTable(self.place.uri)
            if _facts(base) != _facts(newest):
                raise StorageError(_strange(self.place, changed))
        return theirs[-1].version if theirs else version

    def _rows(self, version: int) -> int:
        return sum(part.rows for part in self._parts(DeltaTable(self.place.uri, version=version)))

    def _is_ours(self, one: Commit) -> bool:
        return one.maker is not None and one.maker.partition("/")[0] == self._app.partition("/")[0]

    def _check_ours(self, found: Sequence[Commit], torn: bool) -> None:
        """Make sure that a table of which the journal knows nothing has no rows, or is another of this warehouse's that
        had the name."""
        if not found and not torn:
            strange = any(name[:20].isdigit() for name in (self.place / LOG).names())
        else:
            strange = not all(map(self._is_ours, found)) and bool(_listing(DeltaTable(self.place.uri)))
        if strange:
            raise StorageError(f"somebody else made the table {self.place}",
                               remedy="move it away, and nothing is lost", path=str(self.place))

    def append(
        self, updates: Sequence[Updates], files: Sequence[StoredFile], layout: Layout, entry: int | None,
        version: int | None,
    ) -> int | None:  # fmt: skip
        """Add updates, and files of updates that are in the folder already, to a version.

        Args:
            updates: to be written now.
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
            raise StorageError(f"the table {self.place} has been written by another process; it will be looked at anew",
                               path=str(self.place))
        if not files and not any(map(len, updates)):
            return None if table is None else int(table.version())
        if table is None:
            table = self._create(layout)
        written = [file for part in updates for file in write(self.place, part, layout.schema, layout.sort)]
        return self._commit(table, [add_action(file, True) for file in (*written, *files)], layout, entry)

    def merge(self, layout: Layout, since: int, version: int, *, everything: bool) -> int | None:
        """Write the smaller runs of files of a version, or all files, anew as one run, as far as there are several;
        None if there are not. What is in memory at a time does not depend on how large they are.
        """
        table = DeltaTable(self.place.uri, version=version)
        # Without an order of integers a merge reads its files once for each part of them that memory holds.
        ordered = bool(layout.sort) and is_exact([pa.nulls(0, layout.schema[layout.sort[0]])])
        old = _mergeable(self._parts(table), everything, None if ordered else _UNORDERED_BYTES)
        if not old:
            return None
        added = merged(self.place, old, layout.schema, layout.sort, since)
        now = int(clock.time() * 1000)
        removed = [RemoveAction(part.name, False, now, part.size) for part in old]
        at = self._commit(table, [*(add_action(file, False) for file in added), *removed], layout, None)
        self._clean(table)
        return at

    def _clean(self, table: DeltaTable) -> None:
        """Remove files that were replaced a while ago, and our own that are in no version. A vacuum would be a version,
        and take files of others, too."""
        old = table.vacuum(KEEP_HOURS, dry_run=True, enforce_retention_duration=False)
        # What is in no version, and not written by this process for a batch that is under way, is of one that failed.
        hours = KEEP_HOURS + math.ceil((clock.time() - _STARTED) / 3600)
        stray = table.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)
        for name in {*old, *(name for name in stray if is_ours(name))}:
            self.place.remove(name)

    def files(self, version: int | None, rows: int | None = None) -> tuple[StoredFile, ...]:
        """The files of a version, which have so many rows (None: that is not known).

        Raises:
            StorageError: the version is not there, or not as it was, or is of another collection, which has the name by
                now.
        """
        if version is None:
            return ()
        with naming(f"version {version} of the table {self.place}", DeltaError):
            table = DeltaTable(self.place.uri, version=self._readable(version))
            if not self._app or table.transaction_version(self._app) is not None:
                found = tuple(self._parts(table))
                if rows is not None and _rows(found) != rows:  # by a commit that is empty by now, say
                    raise StorageError(f"the log of the table {self.place} is damaged: by it version {version} has "
                                       f"{_rows(found):,} rows, and by the journal {rows:,}",
                                       path=str(self.place))  # fmt: skip
                return found
        raise StorageError(f"the table {self.place} was dropped, and another made with its name", path=str(self.place))

    def _readable(self, version: int) -> int:
        """The version, or a later one with the same rows: of a version whose files somebody else has merged, those may
        have been removed."""
        if self._app and self.is_newer(version):
            for one in self._later(version)[0]:
                if self._is_ours(one) or one.changes:
                    break
                version = one.version
        return version

    def held(self, version: int | None) -> tuple[int, int]:
        """The rows of a version and the last of their times, without reading them."""
        parts = [] if version is None else self._parts(DeltaTable(self.place.uri, version=version))
        return sum(part.rows for part in parts), max((part.latest for part in parts), default=MINIMUM)

    def _open(self) -> DeltaTable | None:
        try:
            return DeltaTable(self.place.uri)
        except TableNotFoundError:
            return None

    def _check_there(self, table: DeltaTable | None, version: int | None) -> None:
        if version is not None and (table is None or table.version() < version):
            raise StorageError(f"the table {self.place} is not there at version {version}, which the journal knows",
                               path=str(self.place))

    def _create(self, layout: Layout) -> DeltaTable:
        self.place.make()
        table = DeltaTable.create(self.place.uri, file_schema(layout.schema), configuration=_CONFIGURATION,
                                  commit_properties=CommitProperties({MARK: self._app}))  # fmt: skip
        self.place.make_durable()
        return table

    def _commit(self, table: DeltaTable, actions: list[Any], layout: Layout, entry: int | None) -> int:
        marks = [] if entry is None else [Transaction(self._app, entry)]
        properties = CommitProperties({MARK: self._app}, app_transactions=marks, max_commit_retries=0)
        table.create_write_transaction(actions, "append", file_schema(layout.schema), commit_properties=properties)
        self.place.make_durable()
        table.update_incremental()  # a commit does not refresh its handle
        return int(table.version())

    def _whole(self, table: DeltaTable) -> bool:
        return all(self.place.size(part.name) == part.size for part in self._parts(table))

    def _parts(self, table: DeltaTable) -> list[StoredFile]:
        found = []
        for action in pa.table(table.get_add_actions(flatten=True)).to_pylist():
            rows, latest = action["num_records"], action.get("max.__time")
            if rows is None or latest is None:
                raise StorageError(f"{self.place}/{action['path']} has no statistics of its rows and times in the log",
                                   path=str(self.place))
            found.append(StoredFile(action["path"], action["size_bytes"], rows, latest, ""))
        return found


def _listing(table: DeltaTable) -> set[tuple[str, int]]:
    """The files of a version."""
    return {(action["path"], action["size_bytes"]) for action in pa.table(table.get_add_actions()).to_pylist()}


def _facts(table: DeltaTable) -> tuple[object, ...]:
    """What has to be the same again where somebody takes a commit back."""
    return table.schema(), table.metadata().configuration, _listing(table)


def _strange(place: Place, culprit: Commit) -> str:
    before = culprit.version - 1
    return (
        f"somebody else wrote the table {place}: version {culprit.version} ({culprit.operation}) is not this "
        "warehouse's. Nothing of it counts, and what comes waits in the journal until it is taken back, by "
        f"deltalake.DeltaTable({place.uri!r}).restore({before}) or Spark's RESTORE TABLE .. TO VERSION AS OF {before}; "
        "rows are changed by engine.apply, INSERT and DELETE alone"
    )


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

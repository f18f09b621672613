"""Write, merge and read a collection's Delta table. One process writes it, any tool can read it.

A commit carries the number of the last journal entry that the table holds, as the version of an application's
transaction. So the table itself tells what it holds.
"""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from halfjoin.engine.storage.commits import MARK, Commit, Torn, commit_file, commits, drop_checkpoints, entries, shorten
from halfjoin.engine.storage.damage import naming
from halfjoin.engine.storage.merging import merged
from halfjoin.engine.storage.parquet import StoredFile, file_schema, is_ours, run_of, write
from halfjoin.engine.storage.place import LocalPlace, Place
from halfjoin.engine.updates.codes import is_exact
from halfjoin.engine.updates.updates import MINIMUM, Updates
from halfjoin.errors import StorageError

Run = TypeVar("Run")
_UNORDERED_BYTES = 64 << 20
_STARTED, _STARTED_TICKS = clock.time(), clock.monotonic()
_CONFIGURATION = {
    "delta.checkpointInterval": "20",
    "delta.dataSkippingNumIndexedCols": "-1",  # all: with the default of 32, wide tables have none of `__time`
}
GROWTH = 8  # files are merged unless the largest has so many times the rows of the others; more files than this wait
KEEP_HOURS = 1  # how long a file stays after it left the table, for those who still read it


@dataclass(frozen=True, slots=True)
class Layout:
    """How a collection is laid out in files: its columns, and the columns that sort the rows."""

    schema: Mapping[str, pa.DataType]
    sort: Sequence[str]


class DeltaFolder:
    """The Delta table in a folder. `app` tells its collection from earlier and later ones of the same name. It is ""
    if there can be no others.
    """

    def __init__(self, place: Place, app: str) -> None:
        self.place, self._app = place, app
        self._last: DeltaTable | None = None  # the table as it was opened or written last

    def recover(self, entry: int, version: int | None) -> tuple[int, int | None]:
        """Find the last entry that the table holds, and the table's version. The journal may not know of them yet.

        `entry` and `version` are what the journal knows. A later commit of ours counts if it is whole. Torn commits
        are removed, and so are those of an earlier collection of the same name, and a log unknown to the journal.

        Raises:
            StorageError: the version that the journal knows is missing, or somebody else has changed the table.
        """
        self._last = None  # commits may be removed, and their numbers come again
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
        self._distrust(version)
        theirs = self._untouched(version, later)
        table = DeltaTable(self.place.uri)
        found = table.transaction_version(self._app)
        if found is not None and found >= entry and self._whole(table):
            self.place.make_durable()  # who committed may have ended before that
            return int(found), table.version()
        self.place.cut(theirs)  # our commits after it; earlier ones may be part of what somebody else has merged
        found = DeltaTable(self.place.uri).transaction_version(self._app)
        return max(entry, found or 0), theirs

    def foreign(self, version: int | None) -> str | None:
        """What is wrong with the table, if somebody else has changed it since a version. Costs one file lookup if there
        is no newer commit."""
        try:
            with naming(f"the table {self.place}", DeltaError):
                if version is not None and self.is_newer(version):
                    self._untouched(version, self._later(version)[0])
        except StorageError as problem:
            return str(problem)
        return None

    def check_not_ahead(self, version: int | None, last: int) -> None:
        """Make sure that the table has nothing which the journal is still to write. `last`: the journal's last entry.

        The journal's numbers would come again, for other batches: a flush would take these for flushed, and they would
        be lost. Costs one file lookup if there is no commit after the journal's version.

        Raises:
            StorageError: the journal is of an earlier time than the table, or the table cannot be looked at.
        """
        with naming(f"the table {self.place}", DeltaError):
            if not self.is_newer(version):
                return
            later, torn = self._later(version)
            if not later or torn:
                return  # the next flush puts it right, and looks then
            self._distrust(version)
            self.check_entry(DeltaTable(self.place.uri).transaction_version(self._app), last)

    def check_entry(self, entry: int | None, last: int) -> None:
        """As `check_not_ahead`, of a table that is known to hold all entries up to `entry`."""
        if entry is not None and entry > last:
            raise StorageError(
                f"the table {self.place} has batches up to entry {entry}, but the journal ends at entry {last}: it was "
                "copied or put back without its newest part",
                remedy="put the whole folder back as it was at one moment, the journal with its -wal; read_only=True "
                "reads it as the journal has it", path=str(self.place),
            )  # fmt: skip

    def _distrust(self, version: int | None) -> None:
        """Remove checkpoints that the journal does not know of. They may not be whole; the entries beside them are."""
        if version is not None and isinstance(self.place, LocalPlace):
            drop_checkpoints(self.place, version)

    def is_newer(self, version: int | None) -> bool:
        """Whether the table has a commit after a version."""
        return self.place.size(commit_file(0 if version is None else version + 1)) is not None

    def _later(self, version: int | None) -> tuple[list[Commit], bool]:
        """The commits after a version, and whether a torn one follows them."""
        found: list[Commit] = []
        try:
            found.extend(commits(self.place, version))
        except Torn:
            return found, True
        return found, False

    def _untouched(self, version: int, later: Sequence[Commit]) -> int:
        """Check that nobody else has changed what the table holds.

        Returns:
            The last version that somebody else made, or `version` if nobody did.

        Raises:
            StorageError: somebody has changed it, and has not undone the change.
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
        """Check a table that the journal does not know: it must be empty, or belong to an earlier collection of this
        warehouse."""
        if not found and not torn:
            strange = bool(entries(self.place))  # the first of them is not there
        else:
            strange = not all(map(self._is_ours, found)) and bool(_listing(DeltaTable(self.place.uri)))
        if strange:
            raise StorageError(f"somebody else made the table {self.place}",
                               remedy="move it away, and nothing is lost", path=str(self.place))

    def append(
        self, updates: Sequence[Updates], files: Sequence[StoredFile], layout: Layout, entry: int | None,
        version: int | None,
    ) -> int | None:  # fmt: skip
        """Add updates to a version of the table, and files of updates that are already in the folder.

        Args:
            updates: the updates to write.
            files: the files that are already there.
            layout: the table's layout.
            entry: the table then holds all entries up to this one (None: the table does not say).
            version: the table's version before the call (None: there is no table).

        Returns:
            The table's version after the call (None: there is no table).

        Raises:
            StorageError: the table is at another version, so its contents are not known.
        """
        table = self._open()
        self._check_there(table, version)
        if table is not None and table.version() != version:
            raise StorageError(f"the table {self.place} was written by another process; the next flush will look at it",
                               path=str(self.place))
        if not files and not any(map(len, updates)):
            return None if table is None else int(table.version())
        if table is None:
            table = self._create(layout)
        made = (file for part in updates for file in write(self.place, part, layout.schema, layout.sort))
        with self._adding(table, made) as written:
            return self._commit(table, [add_action(file, True) for file in (*written, *files)], layout, entry)

    def merge(self, layout: Layout, since: int, version: int, *, everything: bool) -> int | None:
        """Rewrite the smaller runs of files of a version, or all its files, as one run. Returns the new version, None
        if there is nothing to merge. The memory that this takes does not grow with the files.
        """
        table = self._at(version)
        # If no integer column sorts the rows, a merge reads its files once for each part that fits into memory.
        ordered = bool(layout.sort) and is_exact([pa.nulls(0, layout.schema[layout.sort[0]])])
        old = _mergeable(self._parts(table), everything, None if ordered else _UNORDERED_BYTES)
        if not old:
            return None
        now = int(clock.time() * 1000)
        removed = [RemoveAction(part.name, False, now, part.size) for part in old]
        with self._adding(table, merged(self.place, old, layout.schema, layout.sort, since)) as added:
            at = self._commit(table, [*(add_action(file, False) for file in added), *removed], layout, None)
        self._clean(table)
        return at

    @contextmanager
    def _adding(self, table: DeltaTable, files: Iterable[StoredFile]) -> Iterator[list[StoredFile]]:
        """Write the files that the code inside adds to the table. If they are not added, they are removed, or each new
        try on a full disk would take more of it. In an object store they stay: there a commit may still come."""
        before, written = table.version(), list[StoredFile]()  # a commit moves the table on
        try:
            written.extend(files)  # after an error it has the files before it
            yield written
        except BaseException:
            with suppress(OSError):
                if isinstance(self.place, LocalPlace) and not self.is_newer(before):
                    for file in written:
                        self.place.remove(file.name)
            raise

    def _clean(self, table: DeltaTable) -> None:
        """Remove files that were replaced a while ago, files of ours that are in no version, and log entries about
        such versions. A real vacuum would make a version, and would also remove files of others."""
        old = table.vacuum(KEEP_HOURS, dry_run=True, enforce_retention_duration=False)
        # A file in no version is from a failed batch, unless this process wrote it for a batch that is still under way.
        stray = table.vacuum(KEEP_HOURS + _hours(), dry_run=True, enforce_retention_duration=False, full=True)
        for name in {*old, *(name for name in stray if is_ours(name))}:
            self.place.remove(name)
        shorten(self.place, KEEP_HOURS)

    def files(self, version: int | None, rows: int | None = None) -> tuple[StoredFile, ...]:
        """The files of a version, one run after the other. Together they must have `rows` rows (None: any number).

        Raises:
            StorageError: the version is missing or has changed, or another collection has the name now.
        """
        if version is None:
            return ()
        with naming(f"version {version} of the table {self.place}", DeltaError):
            try:
                table = self._at(self.readable(version))
            except TableNotFoundError as problem:
                raise StorageError(f"the table {self.place} is missing: its folder was moved or removed",
                                   remedy="put the folder back; a view can also be dropped and created again",
                                   path=str(self.place)) from problem  # fmt: skip
            if not self._app or table.transaction_version(self._app) is not None:
                found = tuple(sorted(self._parts(table), key=lambda part: part.name))
                if rows is not None and _rows(found) != rows:  # for example, a commit file has become empty
                    raise StorageError(f"the log of the table {self.place} is damaged: it gives version {version} "
                                       f"{_rows(found):,} rows, but the journal gives it {rows:,}",
                                       path=str(self.place))  # fmt: skip
                return found
        raise StorageError(f"the table {self.place} was dropped, and another has its name now", path=str(self.place))

    def readable(self, version: int) -> int:
        """The version to read: this one, or a later one with the same rows. If somebody else has merged a version's
        files, they may also have removed the old ones."""
        if self._app and self.is_newer(version):
            for one in self._later(version)[0]:
                if self._is_ours(one) or one.changes:
                    break
                version = one.version
        return version

    def held(self, version: int | None) -> tuple[int, int]:
        """A version's number of rows and their last time, without reading the rows."""
        parts = [] if version is None else self._parts(self._at(version))
        return sum(part.rows for part in parts), max((part.latest for part in parts), default=MINIMUM)

    def _open(self) -> DeltaTable | None:
        """The table at its newest version. None: there is none."""
        try:
            self._last = DeltaTable(self.place.uri)
        except TableNotFoundError:
            self._last = None
        return self._last

    def _at(self, version: int) -> DeltaTable:
        """The table at a version. A version never changes, so one that was opened or written before is not read again.
        """
        if self._last is None or self._last.version() != version:
            self._last = DeltaTable(self.place.uri, version=version)
        return self._last

    def _check_there(self, table: DeltaTable | None, version: int | None) -> None:
        if version is not None and (table is None or table.version() < version):
            raise StorageError(f"the table {self.place} has no version {version}, which the journal expects",
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
        table.create_write_transaction(
            actions, "append", file_schema(layout.schema), commit_properties=properties,
            post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),  # see `shorten`
        )  # fmt: skip
        self.place.make_durable()
        table.update_incremental()  # a commit does not refresh its handle
        self._last = table
        return int(table.version())

    def _whole(self, table: DeltaTable) -> bool:
        return all(self.place.size(part.name) == part.size for part in self._parts(table))

    def _parts(self, table: DeltaTable) -> list[StoredFile]:
        found = []
        for action in pa.table(table.get_add_actions(flatten=True)).to_pylist():
            rows, latest = action["num_records"], action.get("max.__time")
            if rows is None or latest is None:
                raise StorageError(f"the log has no statistics of the rows and times of {self.place}/{action['path']}",
                                   path=str(self.place))
            found.append(StoredFile(action["path"], action["size_bytes"], rows, latest, ""))
        return found


def _listing(table: DeltaTable) -> set[tuple[str, int]]:
    """The names and sizes of a version's files."""
    return {(action["path"], action["size_bytes"]) for action in pa.table(table.get_add_actions()).to_pylist()}


def _facts(table: DeltaTable) -> tuple[object, ...]:
    """The facts that must be as before once somebody has undone a commit."""
    return table.schema(), table.metadata().configuration, _listing(table)


def _strange(place: Place, culprit: Commit) -> str:
    before = culprit.version - 1
    return (
        f"somebody else wrote the table {place}: version {culprit.version} ({culprit.operation}) is not this "
        "warehouse's. halfjoin ignores it, and new updates wait in the journal until you undo it with "
        f"deltalake.DeltaTable({place.uri!r}).restore({before}) or Spark's RESTORE TABLE .. TO VERSION AS OF {before}; "
        "change rows only with engine.apply, INSERT and DELETE"
    )


def mergeable(runs: Iterable[Run], rows: Callable[[Run], int]) -> list[Run]:
    """The runs to merge. Each has at most GROWTH times the rows of the smaller ones together, so a row is rewritten a
    logarithmic number of times."""
    chosen: list[Run] = []
    size = 0
    for run in sorted(runs, key=rows):
        if chosen and rows(run) > GROWTH * size:
            break
        chosen.append(run)
        size += rows(run)
    return chosen if len(chosen) > GROWTH else []


def _mergeable(parts: list[StoredFile], everything: bool, most: int | None) -> list[StoredFile]:
    """The files of the runs to merge: all of them for `everything`, otherwise at most `most` bytes (None: no limit)."""
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


def _hours() -> int:
    """The hours that this process has run, or some more. Its clock may have been set back meanwhile, and its ticks may
    have stopped while the machine slept."""
    return math.ceil(max(clock.time() - _STARTED, clock.monotonic() - _STARTED_TICKS) / 3600)


def add_action(file: StoredFile, changes: bool) -> AddAction:
    """A file's entry in a commit. `changes`: whether it does more than rewrite the rows of other files."""
    return AddAction(file.name, file.size, {}, int(clock.time() * 1000), changes, file.stats)

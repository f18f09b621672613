"""Write the Delta table of a sink: change it copy-on-write, file by file, for tools that do not know halfjoin.

A commit carries the sink's id, and its `upper` as the version of an application's transaction. So the table itself
tells which batches it holds: each closed batch raises `upper`, so no two share one.

Sink law. Every version is the view's contents as of one time, which its commit carries. No commit is visible before its
batch is acknowledged, and each acknowledged batch is in the table once.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Schema,
    Transaction,
    write_deltalake,
)
from deltalake.exceptions import DeltaError

from halfjoin.engine.scalar.cells import cell
from halfjoin.engine.sinks.files import group_of, groups, holders, without
from halfjoin.engine.sinks.log import files_of, mend, opened, removed_file, strange
from halfjoin.engine.sinks.target import SINK
from halfjoin.engine.storage.commits import commit, commit_file
from halfjoin.engine.storage.delta import KEEP_HOURS, add_action, mergeable
from halfjoin.engine.storage.encoding import one_chunk
from halfjoin.engine.storage.parquet import StoredFile, file_type, ordered, without_intervals, write_plain
from halfjoin.engine.storage.place import LOG, Place
from halfjoin.engine.system.panics import panics_caught
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.intervals import has_intervals
from halfjoin.engine.updates.updates import Ints, Positions, Updates, concat, constant, empty
from halfjoin.errors import DataError, StorageError

ROWS = 1 << 16  # the most rows of a file, which one deletion may have to rewrite
MERGED_ROWS = 1 << 20  # groups of so many rows and more are not merged
CLEAN_EVERY = 200  # versions between searches for old files and old log entries
CHECKPOINT_EVERY = 20  # versions, at least
ENTRIES_A_VERSION = 50  # the most entries that checkpoints repeat, for each version since the last one
_UPPER, _NOTE = "halfjoin.upper", "halfjoin.note"
_CONFIGURATION = {
    "delta.checkpointInterval": str(CHECKPOINT_EVERY),
    # Copy-on-write leaves many files behind. Entries about them would fill the log.
    "delta.deletedFileRetentionDuration": f"interval {2 * KEEP_HOURS} hours",
    "delta.logRetentionDuration": f"interval {2 * KEEP_HOURS} hours",
}


@dataclass(frozen=True, slots=True)
class TableShape:
    """What the table shows: a collection's name, its columns, and the columns that sort its files."""

    name: str
    schema: Mapping[str, pa.DataType]
    sort: Sequence[str]


class SinkTable:
    """The table of the sink with that id, at the place that `find` returns. One thread at a time. No other writer.

    It takes over a table that one of the `former` sinks (their ids) has left: the first rewrite makes it this sink's.

    Raises:
        StorageError: from every method, if the place fails. Then `open` must be called again.
    """

    def __init__(self, find: Callable[[], Place], id: str, source: TableShape, former: Collection[str] = ()) -> None:
        self._find, self._id, self._source, self._former = find, id, source, former
        self._took_over = False
        self._types = {name: kind if has_intervals(kind) else file_type(kind) for name, kind in source.schema.items()}
        self._schema = pa.schema([(name, file_type(kind)) for name, kind in self._types.items()])
        self._table: DeltaTable | None = None
        self._prefix = f"part-{id}"
        self.is_open = False

    def open(self) -> int | None:
        """Open the table. Returns the `upper` of its contents, None if there is no table or it has no `upper` yet.

        Raises:
            StorageError: somebody else wrote the table.
        """
        self._table, self.is_open = None, False
        with self._reaching():
            self.place = self._find()
            mend(self.place)
            table = opened(self.place)
            if table is None:
                self.is_open = True
                return None
            last = commit(self.place, table.version())
            maker = None if last is None else last.info.get(SINK)
            took_over = maker in self._former
            if maker != self._id and not took_over:
                raise StorageError(strange(self.place, table.version()))
            self._took_over |= took_over
            self._clean(table)
            self._table, self.is_open = table, True
            found = table.transaction_version(self._id)
            return None if found is None else int(found)

    def change(self, changes: Iterable[Updates], upper: int, note: str | None = None) -> bool:
        """Commit the contents as of below `upper`, given the changes (of any times). Returns whether it committed.

        Changes come in pieces. One piece is in memory at a time. Several pieces are iterated twice.

        Raises:
            DataError: a row would have a negative count.
            StorageError: somebody else wrote the table.
        """
        return self._carry_out(changes, upper, note, whole=False)

    def rewrite(self, contents: Iterable[Updates], upper: int, note: str | None = None) -> bool:
        """Commit the contents, whatever the table has: by their difference, or with many rows by new files in place of
        all. Returns whether it committed."""
        with self._reaching():
            self._fit()
            files = None if self._table is None else files_of(self._table)
            only = _only(contents, self._source.schema)
            if files is None or only is None or (pc.sum(files["num_records"]).as_py() or 0) > limits.PIECE_ROWS:
                return self._carry_out(contents, upper, note, whole=True)
            there = [self._read(name) for name in files["path"].to_pylist()]
        minus = [Updates(part.columns, part.time, -part.diff) for part in there]
        return self.change([concat([self._stored(only), *minus])], upper, note)

    def _fit(self) -> None:
        """Give a taken-over table the columns of this source, if it has others. Then the table is empty."""
        if self._took_over and self._table is not None and self._table.schema() != Schema.from_arrow(self._schema):
            write_deltalake(
                self._table, self._schema.empty_table(), mode="overwrite", schema_mode="overwrite",
                commit_properties=CommitProperties({SINK: self._id}, max_commit_retries=0),
            )  # fmt: skip
            self.place.make_durable()
            self._table = DeltaTable(self.place.uri)

    def _carry_out(self, changes: Iterable[Updates], upper: int, note: str | None, *, whole: bool) -> bool:
        """Write the additions first, so that each deletion finds its row: in the table or among the additions."""
        only = _only(changes, self._source.schema)
        summed = None if only is None else [self._summed(only)]
        if summed is not None and not len(summed[0]) and not whole and self._knows():
            return False
        with self._reaching():
            if self._table is None:
                self._table = self._create()
            self._check_there(self._table)
            with self._writing() as written:
                files = files_of(self._table)
                removed = set(range(len(files))) if whole else set()
                for piece in summed or map(self._summed, changes):
                    new = piece.filter(piece.diff > 0)
                    rows = new.take(np.repeat(np.arange(len(new)), new.diff))
                    self._write(rows, f"{self._prefix}-{uuid.uuid4().hex}", written)
                for piece in summed or map(self._summed, changes):
                    self._delete(piece.filter(piece.diff < 0), files, removed, written)
                actions = [removed_file(files, number, True) for number in sorted(removed)]
                if not written and not actions and self._knows():
                    return False
                self._commit(self._table, [*(add_action(file, True) for file in written), *actions], upper, note)
            self._merge(self._table, upper)
            if self._table.version() % CLEAN_EVERY == 0:
                self._clean(self._table)
        return True

    def undo(self) -> None:
        """Remove the table again, if this sink made it."""
        with self._reaching():
            self.open()
            if self._table is not None and not self._took_over:
                ours = (LOG, self._prefix)
                self.place.clear([name for name in self.place.names() if not name.startswith(ours)])

    def _delete(self, gone: Updates, files: pa.Table, removed: set[int], written: list[StoredFile]) -> None:
        """Rewrite the files that hold these rows without them: first files of the table that are not removed yet, then,
        for rows not found there, files written for this commit."""
        diffs = gone.diff.copy()
        for number, rows in holders(files, gone):
            if number not in removed and self._without(files["path"][number].as_py(), gone, diffs, rows, written):
                removed.add(number)
        for file in list(written) if diffs.any() else ():
            if self._without(file.name, gone, diffs, np.arange(len(gone)), written):
                written.remove(file)
                self.place.remove(file.name)
        if diffs.any():
            position = int(np.flatnonzero(diffs)[0])
            row = {column: cell(values, position) for column, values in gone.columns.items()}
            raise DataError(
                f"{self._source.name} holds a row {int(diffs[position])} times, which no table can show: {row}; "
                "more copies were deleted than inserted", view=self._source.name,
            )

    def _without(self, name: str, gone: Updates, diffs: Ints, rows: Positions, written: list[StoredFile]) -> bool:
        """Rewrite a file without the rows that must still go, and count them off in `diffs`. Returns whether the file
        had some of them."""
        rows = rows[diffs[rows] < 0]
        if not len(rows):
            return False
        wanted = gone.take(rows)
        wanted = Updates(wanted.columns, wanted.time, diffs[rows])
        left, missing = without(self._read(name), wanted)
        if np.array_equal(missing, wanted.diff):
            return False
        diffs[rows] = missing
        self._write(left, group_of(name), written)
        return True

    def _merge(self, table: DeltaTable, upper: int) -> None:
        """Rewrite small groups of files as one group, in a commit that changes no data."""
        files = files_of(table)
        chosen = mergeable([group for group in groups(files) if group.rows < MERGED_ROWS], lambda group: group.rows)
        numbers = [number for group in chosen for number in group.files]
        if not numbers:
            return
        rows = concat([self._read(files["path"][number].as_py()) for number in numbers])
        with self._writing() as written:
            self._write(rows, f"{self._prefix}-{uuid.uuid4().hex}", written)
            added = [add_action(file, False) for file in written]
            removed = [removed_file(files, number, False) for number in numbers]
            self._commit(table, [*added, *removed], upper, "files merged")

    def _commit(self, table: DeltaTable, actions: list[Any], upper: int, note: str | None) -> None:
        facts = {SINK: self._id, _UPPER: str(upper), **({_NOTE: note} if note else {})}
        properties = CommitProperties(facts, app_transactions=[Transaction(self._id, upper)], max_commit_retries=0)
        version = table.version() + 1
        # The search for old entries takes longer the more entries there are, so not every commit does it.
        hook = PostCommitHookProperties(self._checkpoints(version), cleanup_expired_logs=version % CLEAN_EVERY == 0)
        table.create_write_transaction(
            actions, "append", self._schema, commit_properties=properties, post_commithook_properties=hook
        )
        self.place.make_durable()
        table.update_incremental()  # a commit does not refresh its handle
        if table.version() != version:
            raise StorageError(strange(self.place, table.version()))

    def _checkpoints(self, version: int) -> bool:
        """Whether a version gets a checkpoint. Each names all files that were removed in the last hours: after many
        small batches, one for every few versions would take most of the time, and gigabytes."""
        if (version + 1) % CHECKPOINT_EVERY:
            return False
        try:
            last = json.loads(self.place.read(f"{LOG}/_last_checkpoint").to_pybytes())
            return (version - int(last["version"])) * ENTRIES_A_VERSION >= int(last["size"])
        except (OSError, ValueError, LookupError, TypeError):  # there is none yet
            return True

    def _create(self) -> DeltaTable:
        table = DeltaTable.create(
            self.place.uri, self._schema, name=self._source.name, configuration=_CONFIGURATION,
            description=f"The current contents of {self._source.name}, kept by halfjoin",
            commit_properties=CommitProperties({SINK: self._id}),
        )  # fmt: skip
        self.place.make_durable()
        return table

    def _check_there(self, table: DeltaTable) -> None:
        if self.place.size(commit_file(table.version())) is None:
            raise StorageError(f"the table {self.place} is gone, and will be made again", path=str(self.place))

    def _clean(self, table: DeltaTable) -> None:
        """Remove files that nobody can still read. Removes only files of this sink and of the former sinks."""
        old = table.vacuum(KEEP_HOURS, dry_run=True, enforce_retention_duration=False, full=True)
        for name in old:
            if name.startswith(tuple(f"part-{one}" for one in (self._id, *self._former))):
                self.place.remove(name)

    def _write(self, rows: Updates, prefix: str, written: list[StoredFile]) -> None:
        if len(rows):
            table = ordered(without_intervals(rows).table(changes=False), self._source.sort)
            for start in range(0, len(table), ROWS):  # `_writing` removes the files after a failure
                name = f"{prefix}-{uuid.uuid4()}.parquet"
                written.append(write_plain(self.place, name, table.slice(start, ROWS)))

    def _read(self, name: str) -> Updates:
        table = pq.read_table(pa.BufferReader(self.place.read(name)))
        columns = {column: one_chunk(table.column(column), kind) for column, kind in self._types.items()}
        return Updates(columns, constant(0, len(table)), constant(1, len(table)))

    def _knows(self) -> bool:
        """Whether the table has an `upper`."""
        return self._table is not None and self._table.transaction_version(self._id) is not None

    def _summed(self, updates: Updates) -> Updates:
        """Changes with the types of the files, each row once."""
        return consolidate(self._stored(updates), by_time=False)

    def _stored(self, updates: Updates) -> Updates:
        """The updates with the types that the columns have in files, but for intervals."""
        if not len(updates):
            return empty(self._types)
        columns = {name: _cast(updates.columns[name], kind) for name, kind in self._types.items()}
        return Updates(columns, constant(0, len(updates)), updates.diff)

    @contextmanager
    def _writing(self) -> Iterator[list[StoredFile]]:
        """A list for written files. If the block fails, those that are not part of the table are removed."""
        written: list[StoredFile] = []
        try:
            yield written
        except BaseException:
            self._discard(written)
            raise

    def _discard(self, written: list[StoredFile]) -> None:
        try:
            with panics_caught():
                known = set(files_of(DeltaTable(self.place.uri))["path"].to_pylist())  # the commit may have succeeded
            for file in written:
                if file.name not in known:
                    self.place.remove(file.name)
        except (DeltaError, OSError):  # `_clean` finds them later
            pass

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            with panics_caught():
                yield
        except DataError:  # the rows are at fault; the table is unchanged
            raise
        except StorageError:
            self.is_open = False
            raise
        except (DeltaError, OSError, ValueError, pa.ArrowException) as problem:
            self.is_open = False
            raise StorageError(f"the table cannot be written: {problem}") from problem


def _only(pieces: Iterable[Updates], schema: Mapping[str, pa.DataType]) -> Updates | None:
    """The only piece, an empty one if there are no pieces, None if there are several."""
    found = list(islice(pieces, 2))
    return None if len(found) > 1 else found[0] if found else empty(schema)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)

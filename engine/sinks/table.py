"""The Delta table of a sink: changed copy-on-write, file by file, and read by tools that know nothing of us.

A commit carries the sink's id and the time up to which it goes: `upper`, as the version of an application's
transaction, so that the table itself tells which batches are in it. A closed batch raises `upper`: no two share one.

Sink law. Every version is the view's contents as of one time, which its commit carries. No commit is visible before its
batch is acknowledged, and each acknowledged batch is in the table once.
"""

from __future__ import annotations

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
from deltalake.exceptions import DeltaError, TableNotFoundError

from halfjoin.engine.sinks.files import group_of, groups, holders, without
from halfjoin.engine.sinks.log import files_of, mend, removed_file, strange
from halfjoin.engine.sinks.target import SINK
from halfjoin.engine.storage.commits import commit, commit_file
from halfjoin.engine.storage.delta import KEEP_HOURS, add_action, mergeable
from halfjoin.engine.storage.encoding import one_chunk
from halfjoin.engine.storage.parquet import StoredFile, file_type, ordered, write_plain
from halfjoin.engine.storage.place import LOG, Place
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Ints, Positions, Updates, concat, constant, empty
from halfjoin.errors import DataError, StorageError

ROWS = 1 << 16  # of a file: what one deletion may have to write anew
MERGED_ROWS = 1 << 20  # of a group: a larger one stays as it is
CLEAN_EVERY = 200  # versions after which old files and old entries of the log are looked for
_UPPER, _NOTE = "halfjoin.upper", "halfjoin.note"
_CONFIGURATION = {
    "delta.checkpointInterval": "20",
    # Copy-on-write leaves many files behind; entries about them would fill the log.
    "delta.deletedFileRetentionDuration": f"interval {2 * KEEP_HOURS} hours",
    "delta.logRetentionDuration": f"interval {2 * KEEP_HOURS} hours",
}


@dataclass(frozen=True, slots=True)
class TableShape:
    """What the table shows: a collection's name, its columns, and by which of them files are sorted."""

    name: str
    schema: Mapping[str, pa.DataType]
    sort: Sequence[str]


class SinkTable:
    """The table of the sink with that id, where `find` says. One thread at a time. Nobody else may write it.

    A table that one of the `former` sinks (their ids) has left is taken over: the first rewriting makes it this one's.

    Raises:
        StorageError: from every method, where the place fails; then `open` has to be called again.
    """

    def __init__(self, find: Callable[[], Place], id: str, source: TableShape, former: Collection[str] = ()) -> None:
        self._find, self._id, self._source, self._former = find, id, source, former
        self._took_over = False
        self._types = {name: file_type(kind) for name, kind in source.schema.items()}
        self._schema = pa.schema(list(self._types.items()))
        self._table: DeltaTable | None = None
        self._prefix = f"part-{id}"
        self.is_open = False

    def open(self) -> int | None:
        """Look at what is there. Returns the `upper` of the contents, None where there is not a table yet.

        Raises:
            StorageError: somebody else wrote it.
        """
        self._table, self.is_open = None, False
        with self._reaching():
            self.place = self._find()
            mend(self.place)
            try:
                table = DeltaTable(self.place.uri)
            except TableNotFoundError:
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
        """Commit the contents as of below `upper`, by changes (of any times). Returns whether there were any.

        They come in pieces, of which one is in memory at a time; they are iterated twice where there are several.

        Raises:
            DataError: a row would be contained a negative number of times.
            StorageError: somebody else wrote the table.
        """
        return self._carry_out(changes, upper, note, whole=False)

    def rewrite(self, contents: Iterable[Updates], upper: int, note: str | None = None) -> bool:
        """Commit whatever makes the table's rows the contents: their difference, or where that would be looked for in
        many rows, new files in place of all."""
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
        """Give a table that was taken over this source's columns, if it has others; then it has no rows."""
        if self._took_over and self._table is not None and self._table.schema() != Schema.from_arrow(self._schema):
            write_deltalake(
                self._table, self._schema.empty_table(), mode="overwrite", schema_mode="overwrite",
                commit_properties=CommitProperties({SINK: self._id}, max_commit_retries=0),
            )  # fmt: skip
            self.place.make_durable()
            self._table = DeltaTable(self.place.uri)

    def _carry_out(self, changes: Iterable[Updates], upper: int, note: str | None, *, whole: bool) -> bool:
        """Additions first, so that each deletion finds its row: in the table or among them."""
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
        """Take the table away again, if there is one that this sink has made."""
        with self._reaching():
            self.open()
            if self._table is not None and not self._took_over:
                ours = (LOG, self._prefix)
                self.place.clear([name for name in self.place.names() if not name.startswith(ours)])

    def _delete(self, gone: Updates, files: pa.Table, removed: set[int], written: list[StoredFile]) -> None:
        """Write the files that hold the rows anew without them: those of the table that are not removed yet, and for
        what is not there those that were written for this commit."""
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
            row = {column: values[position].as_py() for column, values in gone.columns.items()}
            raise DataError(
                f"{self._source.name} holds a row {int(diffs[position])} times, which no table can show: {row}; "
                "more copies were deleted than inserted", view=self._source.name,
            )

    def _without(self, name: str, gone: Updates, diffs: Ints, rows: Positions, written: list[StoredFile]) -> bool:
        """Whether a file had some of the rows that are still to go (`diffs`, which is changed); then what is left of it
        is written anew."""
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
        """Write small groups anew as one, in a commit that changes no data."""
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
        # To look for old entries takes as long as there are entries, so it is not done with each.
        hook = PostCommitHookProperties(cleanup_expired_logs=version % CLEAN_EVERY == 0)
        table.create_write_transaction(
            actions, "append", self._schema, commit_properties=properties, post_commithook_properties=hook
        )
        self.place.make_durable()
        table.update_incremental()  # a commit does not refresh its handle
        if table.version() != version:
            raise StorageError(strange(self.place, table.version()))

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
        """Remove files that nobody can be reading any more; of files only the sink's own."""
        old = table.vacuum(KEEP_HOURS, dry_run=True, enforce_retention_duration=False, full=True)
        for name in old:
            if name.startswith(tuple(f"part-{one}" for one in (self._id, *self._former))):
                self.place.remove(name)

    def _write(self, rows: Updates, prefix: str, written: list[StoredFile]) -> None:
        if len(rows):
            table = ordered(rows.table(changes=False), self._source.sort)
            for start in range(0, len(table), ROWS):  # what a failure leaves is removed by `_writing`
                name = f"{prefix}-{uuid.uuid4()}.parquet"
                written.append(write_plain(self.place, name, table.slice(start, ROWS)))

    def _read(self, name: str) -> Updates:
        table = pq.read_table(pa.BufferReader(self.place.read(name)))
        columns = {column: one_chunk(table.column(column), kind) for column, kind in self._types.items()}
        return Updates(columns, constant(0, len(table)), constant(1, len(table)))

    def _knows(self) -> bool:
        """Whether the table says up to where it goes."""
        return self._table is not None and self._table.transaction_version(self._id) is not None

    def _summed(self, updates: Updates) -> Updates:
        """Changes as they are to be stored, each row once."""
        return consolidate(self._stored(updates), by_time=False)

    def _stored(self, updates: Updates) -> Updates:
        """The columns with the types that they have in files."""
        if not len(updates):
            return empty(self._types)
        columns = {name: _cast(updates.columns[name], kind) for name, kind in self._types.items()}
        return Updates(columns, constant(0, len(updates)), updates.diff)

    @contextmanager
    def _writing(self) -> Iterator[list[StoredFile]]:
        """Files that are removed again if they do not become part of the table."""
        written: list[StoredFile] = []
        try:
            yield written
        except BaseException:
            self._discard(written)
            raise

    def _discard(self, written: list[StoredFile]) -> None:
        try:
            known = set(files_of(DeltaTable(self.place.uri))["path"].to_pylist())  # the answer alone may have been lost
            for file in written:
                if file.name not in known:
                    self.place.remove(file.name)
        except (DeltaError, OSError):  # they are found again by and by
            pass

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except DataError:  # of the rows; the table is as it was
            raise
        except StorageError:
            self.is_open = False
            raise
        except (DeltaError, OSError, ValueError, pa.ArrowException) as problem:
            self.is_open = False
            raise StorageError(f"the table cannot be written: {problem}") from problem


def _only(pieces: Iterable[Updates], schema: Mapping[str, pa.DataType]) -> Updates | None:
    """The one piece, which may be of no rows; None where there are several."""
    found = list(islice(pieces, 2))
    return None if len(found) > 1 else found[0] if found else empty(schema)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)

"""Keep the journal in an object store: a Delta table of the changes to it, and an SQLite copy of it in memory.

One commit holds one transaction's statements, so an entry is there whole or not at all. Object stores have no locks
that end with a process. Instead the store refuses a commit if another writer has committed since. So the engine that
opened the warehouse last may write. The one before it gets an error at its next batch, and nothing of that is kept.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time as clock
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from halfjoin.engine.storage.damage import naming
from halfjoin.engine.storage.journal import Journal
from halfjoin.engine.storage.journal_lines import Value
from halfjoin.engine.storage.ownership import check_prefix
from halfjoin.engine.storage.place import Place
from halfjoin.errors import Conflict, HalfjoinError, StorageError

_SCHEMA = pa.schema([("statement", pa.string()), ("values", pa.string()), ("data", pa.binary())])
FOLDER = "journal"  # the folder in a warehouse
_MOST_FILES = 64  # beyond this number `shrink` writes their sum as one file
_COPY = "COPY"  # instead of a statement: the whole SQLite file
_BYTES = {"bytes": True}  # instead of a value that is in the column `data`


class ObjectJournal(Journal):
    """The journal of a warehouse in an object store. Threads take turns.

    Raises:
        Conflict: in every method that writes, after another engine has opened the warehouse for writing.
    """

    def __init__(self, warehouse: Place, *, read_only: bool = False) -> None:
        place = warehouse / FOLDER
        self._place, self._turn, self._depth, self._read_only = place, RLock(), 0, read_only
        self._lost: str | None = None  # the error message, if another engine has taken over
        self._torn = False  # whether a transaction is under way or was interrupted
        self.where = str(place)
        self._known: set[str] = set()
        self._written: list[tuple[str, tuple[Value, ...]]] = []
        self._db = _memory()
        with self._reaching():
            try:
                self._table = DeltaTable(place.uri)
            except TableNotFoundError:
                if read_only:
                    raise StorageError(f"{warehouse} holds no warehouse",
                                       remedy="an engine that writes makes one", path=str(warehouse)) from None
                check_prefix(warehouse, ())
                self._table = DeltaTable.create(place.uri, _SCHEMA, configuration={"delta.checkpointInterval": "50"})
            self._catch_up()
            if not read_only and not self._has("meta"):
                check_prefix(warehouse, (FOLDER,))
                self._make()
        self._check_format(read_only=read_only)
        if not read_only:
            self._writer = f"process {os.getpid()} on {socket.gethostname()} since {clock.strftime('%F %T%z')}"
            self.keep(writer=self._writer)

    def recover(self) -> None:
        """Rebuild the copy after an interrupted transaction of any thread. The table tells whether the transaction
        counts."""
        with self._turn:
            self._depth = 0
            if not self._torn:
                return
            with self._reaching():
                self._table.update_incremental()
                files, copy = self._files(), _memory()
                self._replay(copy, sorted(files))
            super().recover()
            writer = _writer_of(copy)
            if writer == self._writer:
                self._db, self._known = copy, set(files)
            else:
                self._lost = self._lost or self._taken_by(writer)
            self._torn = False

    @contextmanager
    def beside(self) -> Iterator[Journal]:
        """Yield this journal: other threads wait for their turn."""
        yield self

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see one moment. A reader first takes over what has been written since."""
        with self._turn:
            if self._read_only and not self._depth:
                with self._reaching():
                    self._table.update_incremental()
                    self._catch_up()
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1

    def shrink(self) -> None:
        """Replace many files by one with their sum."""
        with self._turn:
            files = self._files()
            if len(files) > _MOST_FILES:
                now = int(clock.time() * 1000)
                removed = [RemoveAction(name, False, now, size) for name, size in files.items()]
                self._commit([(_COPY, (self._db.serialize(),))], removed)
                with self._reaching():
                    self._table.vacuum(1, dry_run=False, enforce_retention_duration=False)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        with self._turn, super()._guarded():
            yield

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._joined:
            yield
            return
        with self._turn:
            if self._torn:  # interrupted in another thread
                self.recover()
            self._written, self._torn = [], True
            try:
                with super()._transaction():
                    yield
            except HalfjoinError:
                self._torn = False
                raise
            self._torn = False

    def _write(self, statement: str, values: tuple[Value, ...] = ()) -> sqlite3.Cursor:
        self._written.append((statement, values))
        return super()._write(statement, values)

    def _write_all(self, statement: str, rows: Iterable[tuple[Value, ...]]) -> None:
        for values in rows:
            self._write(statement, values)

    def _keep(self) -> None:
        self._commit(self._written, [])

    def _commit(self, statements: list[tuple[str, tuple[Value, ...]]], removed: list[RemoveAction]) -> None:
        """Commit one more version of the table, exactly the next one.

        Raises:
            Conflict: another writer has committed that version.
        """
        if self._lost is not None:
            raise Conflict(self._lost)
        version = int(self._table.version()) + 1
        name = f"{version:020}-{os.urandom(8).hex()}.parquet"
        sink = pa.BufferOutputStream()
        pq.write_table(_encoded(statements), sink, compression="zstd")
        data = sink.getvalue()
        with self._reaching():
            self._place.write(name, data)
            stats = json.dumps({"numRecords": len(statements)})
            added = AddAction(name, data.size, {}, int(clock.time() * 1000), not removed, stats)
            try:
                self._table.create_write_transaction(
                    [added, *removed], "append", _SCHEMA, commit_properties=CommitProperties(max_commit_retries=0)
                )
            except DeltaError:
                self._table.update_incremental()
                if name not in self._files():  # if it is there, only the answer was lost
                    if int(self._table.version()) < version:
                        raise
                    self._lose()
            else:
                self._table.update_incremental()
        self._known = set(self._files())

    def _lose(self) -> None:
        """Stop writing.

        Raises:
            Conflict: with the name of the writer that has taken over.
        """
        other = _memory()
        self._replay(other, sorted(self._files()))
        self._lost = self._taken_by(_writer_of(other))
        other.close()
        raise Conflict(self._lost)

    def _taken_by(self, writer: str) -> str:
        return (
            f"the warehouse of {self.where} is now written by {writer}, which opened it after this engine; "
            "close this one, or read beside that one with Engine(..., read_only=True)"
        )

    def _catch_up(self) -> None:
        """Take over the versions that are not in memory."""
        files = set(self._files())
        if self._known - files:  # one file has replaced many
            self._db.close()
            self._db, self._known = _memory(), set()
        self._replay(self._db, sorted(files - self._known))
        self._known = files

    def _replay(self, db: sqlite3.Connection, names: list[str]) -> None:
        for name in names:
            with naming(f"{self._place}/{name}"):
                table = pq.read_table(pa.BufferReader(self._place.read(name)))
                for row in table.to_pylist():
                    if row["statement"] == _COPY:
                        db.deserialize(row["data"])
                    else:
                        values = [row["data"] if value == _BYTES else value for value in json.loads(row["values"])]
                        db.execute(row["statement"], values)

    def _files(self) -> dict[str, int]:
        actions = pa.table(self._table.get_add_actions()).to_pylist()
        return {action["path"]: action["size_bytes"] for action in actions}

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except (DeltaError, OSError) as problem:
            raise StorageError(f"the journal {self.where} failed: {problem}; the call had no effect",
                               path=str(self.where)) from problem


def _memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def _writer_of(db: sqlite3.Connection) -> str:
    found = db.execute("SELECT value FROM meta WHERE key = 'writer'").fetchone()
    return str(found[0]) if found else "another engine"


def _encoded(statements: list[tuple[str, tuple[Value, ...]]]) -> pa.Table:
    """Statements as rows. A value that is bytes, at most one per statement, has its own column."""
    texts, values, data = [], [], []
    for statement, given in statements:
        blobs = [value for value in given if isinstance(value, bytes)]
        shown: list[Any] = [_BYTES if isinstance(value, bytes) else value for value in given]
        texts.append(statement)
        values.append(json.dumps(shown))
        data.append(blobs[0] if blobs else None)
    return pa.table([pa.array(texts, pa.string()), pa.array(values, pa.string()), pa.array(data, pa.binary())],
                    schema=_SCHEMA)

"""The file of a journal: an SQLite database with its tables and its format, transactions, and one moment to read."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from halfjoin.engine.storage.damage import naming
from halfjoin.engine.storage.ownership import FILE
from halfjoin.engine.system.process import inherit, leak, own, release
from halfjoin.errors import StorageError

Value: TypeAlias = str | int | float | bytes | None

FORMAT = 3  # the newest: with node collections, which an engine that does not know them would let fall behind
_PLAIN = 2  # without
_BUSY_SECONDS = 60
_LARGEST_WAL = 64 << 20  # bytes that the write-ahead file keeps between checkpoints

_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE collection (
    id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, name TEXT NOT NULL, since INTEGER NOT NULL,
    created INTEGER NOT NULL, flushed INTEGER NOT NULL, version INTEGER, rows INTEGER NOT NULL, latest INTEGER NOT NULL
);
CREATE TABLE run (
    id INTEGER PRIMARY KEY, collection INTEGER NOT NULL, entry INTEGER NOT NULL, rows INTEGER NOT NULL,
    latest INTEGER NOT NULL, bytes INTEGER NOT NULL, data BLOB NOT NULL, file TEXT
);
CREATE INDEX run_of ON run (collection, entry, rows, latest, bytes);
CREATE TABLE IF NOT EXISTS arrangement (
    collection INTEGER NOT NULL, name TEXT NOT NULL, flushed INTEGER NOT NULL, version INTEGER NOT NULL,
    PRIMARY KEY (collection, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS closing (
    entry INTEGER PRIMARY KEY, low INTEGER NOT NULL, upper INTEGER NOT NULL, submitted INTEGER NOT NULL, batch TEXT
);
CREATE TABLE IF NOT EXISTS unclaimed (folder TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE batch (
    id TEXT PRIMARY KEY, mark BLOB NOT NULL, entry INTEGER NOT NULL, time INTEGER NOT NULL, low INTEGER NOT NULL,
    upper INTEGER NOT NULL, runner TEXT NOT NULL, reason TEXT NOT NULL, seconds REAL NOT NULL
) WITHOUT ROWID;
"""


class JournalFile:
    """The open file. One object serves one thread at a time; a second thread opens one of its own.

    Raises:
        StorageError: from every method, where the disk fails. Then nothing of that call is kept.
    """

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.where, self._folder = str(folder / FILE), folder
        mode = "ro" if read_only else "rwc"
        with self._guarded():
            self._db = sqlite3.connect(
                f"{(folder / FILE).resolve().as_uri()}?mode={mode}",
                uri=True, timeout=_BUSY_SECONDS, isolation_level=None,
                check_same_thread=False,
            )  # fmt: skip
        own(self)
        try:
            self._prepare(read_only)
        except BaseException:
            self.close()
            raise

    def _prepare(self, read_only: bool) -> None:
        with self._guarded():
            if not read_only:
                self._db.execute("PRAGMA auto_vacuum = INCREMENTAL")
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute(f"PRAGMA journal_size_limit = {_LARGEST_WAL}")
        if not read_only and not self._has("meta"):
            self._make()
        self._check_format(read_only=read_only)

    def _has(self, table: str) -> bool:
        with self._guarded():
            found = self._db.execute("SELECT count(*) FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        return bool(found[0])

    def _make(self) -> None:
        with self._transaction():
            for statement in _SCHEMA.strip().split(";\n"):
                self._write(statement)
            self._set(format=_PLAIN, id=str(uuid.uuid4()), entry=0, upper=0, defined=0, flushes=0, catalog="")

    def _check_format(self, *, read_only: bool) -> None:
        found = self.number("format")
        if found == 1 and read_only:
            raise StorageError(f"the warehouse of {self.where} has the older format 1",
                               remedy="open it once without read_only", path=str(self.where))
        if found == 1:  # all updates were in the journal itself
            with self._transaction():
                self._write("ALTER TABLE run ADD COLUMN file TEXT")
                self._write(_statement("arrangement"))
                self._set(format=_PLAIN, flushes=0)
        if found > FORMAT:
            raise StorageError(
                f"the warehouse of {self.where} has format {found}, and this version of halfjoin knows up to "
                f"{FORMAT}", remedy="open it with a newer one", path=str(self.where),
            )
        for table in ("unclaimed", "closing"):  # what journals of before do not have
            if not read_only and not self._has(table):
                with self._transaction():
                    self._write(_statement(table))

    def close(self) -> None:
        """Let go of the file."""
        release(self)
        self._db.close()

    def recover(self) -> None:
        """Roll back what an interrupted call of this thread has begun."""
        with self._guarded():
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def disown(self) -> None:
        """In a child, where SQLite would take the parent's locks for the child's when it is closed, or opened again."""
        leak(self._db)
        inherit(self.where)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """What is read inside belongs to one moment, whatever a writer does meanwhile; it may be nested."""
        if self._db.in_transaction:
            yield
            return
        try:
            with self._guarded():
                self._db.execute("BEGIN")
            yield
        finally:
            if self._db.in_transaction:
                with self._guarded():
                    self._db.execute("COMMIT")

    @property
    def entry(self) -> int:
        """The last one."""
        return self.number("entry")

    def meta(self, key: str) -> str:
        """One of the facts about the whole: `format`, `id`, `entry` (the last), `upper`, `defined` (the last entry that
        changed the catalog), `flushes` (how often collections were), `catalog` (JSON), `retain`, `clock`."""
        with self._guarded():
            found = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return "" if found is None else str(found[0])

    def number(self, key: str, otherwise: int | None = None) -> int:
        """One of the facts that are numbers.

        Raises:
            StorageError: it is none, or not there and nothing is said for that.
        """
        found = self.meta(key)
        if found == "" and otherwise is not None:
            return otherwise
        with naming(f"{key} in {self.where}"):
            return int(found)

    def _set(self, **facts: str | int) -> None:
        for fact in facts.items():
            self._write("INSERT OR REPLACE INTO meta VALUES (?, ?)", fact)

    def _write(self, statement: str, values: tuple[Value, ...] = ()) -> sqlite3.Cursor:
        """One change of a transaction."""
        return self._db.execute(statement, values)

    def _keep(self) -> None:
        """The last step before a transaction is committed, which may refuse it."""

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._guarded():
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield
                self._keep()
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as problem:
            raise StorageError(f"the journal {self.where} failed: {problem}; nothing of the call is kept",
                               path=str(self.where)) from problem


def _statement(table: str) -> str:
    """What makes a table."""
    return next(part for part in _SCHEMA.split(";\n") if f" {table} (" in part)

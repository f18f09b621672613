"""The SQLite file of a journal: its format version, its transactions, and its snapshots for readers."""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import chain
from pathlib import Path

from halfjoin.engine.storage.damage import naming
from halfjoin.engine.storage.journal_lines import INSERT, LINES, Value, lines
from halfjoin.engine.storage.journal_schema import FORMAT, TABLES, newer
from halfjoin.engine.storage.ownership import FILE
from halfjoin.engine.system.process import inherit, leak, own, release
from halfjoin.errors import StorageError

_BUSY_SECONDS = 60
# Pages of 4 KB in the write-ahead file that are copied into the file itself, while a batch waits: some 50 batches of a
# row. With SQLite's 1000 it waits longer, and so do the batches before the first copy: until then the write-ahead file
# grows, and what is written over old pages is on disk sooner.
_CHECKPOINT = 64
_SHARED_BYTES = 1 << 15  # of the file that SQLite makes beside a journal with a write-ahead file, at least
_FILES = 4  # that SQLite may open at a time: the journal, the two beside it, and their folder
_LARGEST_WAL = 64 << 20  # bytes that the write-ahead file may keep after a checkpoint


class JournalFile:
    """The open file. One object serves one thread at a time. A second thread opens one of its own.

    Raises:
        StorageError: from every method, if the disk fails. Then the call has changed nothing.
    """

    _joined = False  # whether a transaction is open that takes in others
    _identity: list[tuple[int, int]] | None = None  # what identifies its files; None: nothing does yet

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.where, self._folder = str(folder / FILE), folder
        # Who only reads has nothing to lose with the write-ahead file.
        self._paths = [self.where] if read_only else [self.where, f"{self.where}-wal"]
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
        except BaseException as problem:
            self.close()
            if read_only and isinstance(problem, StorageError) and self._lacks_files():
                raise StorageError(
                    f"{self.where} cannot be read: while no engine writes there, SQLite makes files beside it, and "
                    "this process may not", remedy="let it write to the folder, or keep the engine that writes open",
                    path=str(self.where),
                ) from problem
            raise
        self._identity = self._at_paths()

    def check_place(self) -> None:
        """Make sure that the file and its write-ahead file are still at their paths. SQLite would go on with files that
        were removed, so batches would be lost; and what is flushed beside them would go into whatever warehouse is
        there now.

        Raises:
            StorageError: the warehouse, its journal or the write-ahead file was moved, removed or replaced.
        """
        found = self._at_paths() if self._identity else None
        if found != self._identity:
            raise StorageError(
                f"{self.where}{'' if len(self._paths) == 1 else ' or its -wal'} was "
                f"{'moved or removed' if found is None else 'replaced'} while this engine had it open, so the call has "
                "changed nothing", remedy="put it back where it was, or close this engine and open the warehouse again "
                "where it is now", path=str(self.where),
            )  # fmt: skip

    def _at_paths(self) -> list[tuple[int, int]] | None:
        """What identifies the files at its paths; None if one is missing."""
        try:
            return [(found.st_dev, found.st_ino) for found in map(os.stat, self._paths)]
        except OSError:
            return None

    def _lacks_files(self) -> bool:
        """Whether the files are missing that SQLite makes beside the journal, and cannot be made."""
        effective = os.access in os.supports_effective_ids
        return not Path(f"{self.where}-shm").exists() and not os.access(self._folder, os.W_OK, effective_ids=effective)

    def _prepare(self, read_only: bool) -> None:
        if not read_only:
            with self._guarded():
                self._db.execute("PRAGMA auto_vacuum = INCREMENTAL")
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.execute("PRAGMA secure_delete = OFF")  # where it is on, a flush writes zeros and batches wait
            if not self._has("meta"):  # before there is a write-ahead file: one beside an empty journal means a loss
                self._make()
            with self._guarded():
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
                self._db.execute(f"PRAGMA journal_size_limit = {_LARGEST_WAL}")
        self._check_format(read_only=read_only)

    def _has(self, table: str) -> bool:
        with self._guarded():
            found = self._db.execute("SELECT count(*) FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        return bool(found[0])

    def _make(self) -> None:
        with self._transaction():
            for statement in TABLES:
                self._write(statement)
            self._set(format=FORMAT, id=str(uuid.uuid4()), defined=0, flushes=0, catalog="")
            self._write_all(INSERT, lines(0, {}, 0))

    def _check_format(self, *, read_only: bool) -> None:
        found = self.number("format")
        if found > FORMAT:
            raise StorageError(
                f"the warehouse of {self.where} has format {found}, but this version of halfjoin knows formats up to "
                f"{FORMAT}", remedy="open it with a newer one", path=str(self.where),
            )
        if found < FORMAT and read_only:
            raise StorageError(f"the warehouse of {self.where} has the older format {found}",
                               remedy="open it once without read_only", path=str(self.where))

    @contextmanager
    def in_newest_format(self) -> Iterator[None]:
        """Inside, the journal has the newest format. An older one keeps its own if what is inside raises: who is told
        to open the warehouse with the older version once more must be able to."""
        found = self.number("format")
        with nullcontext() if found == FORMAT else self.together():
            if found < FORMAT:
                for statement in newer(found):
                    self._write(statement)
                self._set(format=FORMAT)
            yield

    def copy(self, to: Path) -> None:
        """Write a copy of the file, as the snapshot around the call sees it. Others may write meanwhile.

        Raises:
            StorageError: one of the two files fails.
        """
        try:
            other = sqlite3.connect(to)
            try:
                self._db.backup(other)
            finally:
                other.close()
        except sqlite3.Error as problem:
            raise StorageError(f"{self.where} cannot be copied to {to}: {problem}", path=str(to)) from problem

    def close(self) -> None:
        """Close the file."""
        release(self)
        self._db.close()

    def recover(self) -> None:
        """Roll back a transaction that an interrupted call of this thread left open."""
        with self._guarded():
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def disown(self) -> None:
        """Give the file up in a child process. There, SQLite would take the parent's locks for its own on a close."""
        leak(self._db)
        inherit(self.where)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Inside, all reads see the file as of one moment, whatever a writer does meanwhile. May be nested."""
        if self._db.in_transaction:
            yield
            return
        self.check_place()
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
        """The number of the last entry."""
        return self._last_line()[0] // LINES

    @property
    def upper(self) -> int:
        """`upper` as the last entry left it."""
        return self._last_line()[1]

    def _last_line(self) -> tuple[int, int]:
        with self._guarded():
            found = self._db.execute("SELECT id, upper FROM line ORDER BY id DESC LIMIT 1").fetchone()
        match found:
            case int(id), int(upper):
                return id, upper
        raise StorageError(f"{self.where} cannot be read: its last entry has no end", path=str(self.where))

    def meta(self, key: str) -> str:
        """A fact about the warehouse: `format`, `id`, `defined` (the last entry that changed the catalog), `flushes`
        (the number of flushes), `catalog` (JSON), `retain`, `clock`, `errors`, `refused` (how many entries with files
        could not be written), and `source/...`: how far a source has been read."""
        with self._guarded():
            found = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return "" if found is None else str(found[0])

    def number(self, key: str, otherwise: int | None = None) -> int:
        """A fact that is a number; `otherwise` if it is missing.

        Raises:
            StorageError: it is not a number, or it is missing and there is no `otherwise`.
        """
        found = self.meta(key)
        if found == "" and otherwise is not None:
            return otherwise
        with naming(f"{key} in {self.where}"):
            return int(found)

    def _set(self, **facts: str | int) -> None:
        rows = ", ".join(["(?, ?)"] * len(facts))
        self._write(f"INSERT OR REPLACE INTO meta VALUES {rows}", tuple(chain.from_iterable(facts.items())))

    def _write(self, statement: str, values: tuple[Value, ...] = ()) -> sqlite3.Cursor:
        """Make one change inside a transaction."""
        return self._db.execute(statement, values)

    def _write_all(self, statement: str, rows: Iterable[tuple[Value, ...]]) -> None:
        """Make a change for each row of values."""
        self._db.executemany(statement, rows)

    def _keep(self) -> None:
        """The last step before a commit. A subclass may refuse the transaction here."""

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is written inside is kept in one step, or none of it."""
        with self._transaction():
            self._joined = True
            try:
                yield
            finally:
                self._joined = False

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._joined:
            yield
            return
        self.check_place()
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
            said = ": ".join([str(problem), *_causes(problem, self._folder)])
            raise StorageError(f"the journal {self.where} failed: {said}; the call has changed nothing",
                               path=str(self.where)) from problem


def _causes(problem: sqlite3.Error, folder: Path) -> Iterator[str]:
    """What SQLite does not say where it cannot open, enlarge or write a file: that of a full disk, or where a process
    has too many files, is "disk I/O error" or "unable to open database file"."""
    if not getattr(problem, "sqlite_errorname", "").startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")):
        return
    try:
        with ExitStack() as opened:
            for _ in range(_FILES):  # not the journal's own: who closes a file gives up all locks on it
                opened.callback(os.close, os.open(folder, os.O_RDONLY))
        disk = os.statvfs(folder)
    except OSError as cause:
        yield cause.strerror or str(cause)
        return
    if disk.f_bavail * disk.f_frsize < _SHARED_BYTES:
        yield "no space left on the disk"
    elif disk.f_files and not disk.f_favail:
        yield "no space left on the disk for more files"

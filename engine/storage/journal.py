"""The journal of a local warehouse: an SQLite file with the catalog, the batch ids, and the updates not yet flushed.

Durability law. A batch is acknowledged after its entry is on disk, and only then. One transaction holds the updates of
every collection that the batch touched, the new `upper` and the batch's id. Definitions change in the same way.

>>> import tempfile
>>> import halfjoin as hj
>>> folder = tempfile.TemporaryDirectory()
>>> with hj.Engine(folder.name + "/w", clock="own") as engine:
...     engine.execute("CREATE TABLE t (k bigint)")
...     applied = engine.apply({"t": [{"k": 1}]}, time=5, batch_id="first")
>>> with hj.Engine(folder.name + "/w") as engine:  # a caller that got no answer submits it again, with the same id
...     again = engine.apply({"t": [{"k": 1}]}, time=5, batch_id="first")
...     engine.read("t").num_rows, again.upper == applied.upper
(1, True)
>>> folder.cleanup()

Wrong ways. An acknowledgement before the entry is on disk loses batches when the machine stops. With one transaction
per collection, a kill between two leaves a view that does not agree with its tables. If the id has an entry of its own
before the batch's, a retried batch can be lost. If the id's entry comes after, the batch can be applied twice.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from halfjoin.engine.arrange.collection import Cold
from halfjoin.engine.batch.clock import CLOSINGS, Closing
from halfjoin.engine.storage.damage import naming
from halfjoin.engine.storage.encoding import Piece
from halfjoin.engine.storage.journal_file import JournalFile
from halfjoin.engine.storage.journal_lines import DONE, DROPPED, INSERT, LINE_BYTES, NOBODY, WAITING, first, lines
from halfjoin.engine.storage.parquet import StoredFile
from halfjoin.engine.updates.updates import MINIMUM
from halfjoin.errors import StorageError

NODES = "nodes"  # the kind of node collections
_FEW_PAGES = 1000  # pages of 4 KB, given back at a time
_FEW_LINES = 1 << 12  # deleted at a time: a batch may have to wait for it


@dataclass(frozen=True, slots=True)
class Kept:
    """A collection as the journal knows it.

    Version `version` of its Delta table (None: no table yet) holds its updates up to entry `flushed`: so many rows, and
    the latest of their times. Later updates are waiting in the journal. Their columns are those of `layout` (a message
    of Arrow) if they do not say other ones.
    """

    id: int
    kind: str  # the folder: tables, views, nodes, errors
    name: str
    since: int
    created: int  # the entry that made it
    flushed: int
    version: int | None
    rows: int
    latest: int
    layout: bytes | None

    def cold(self, waiting: Cold | None) -> Cold | None:
        """All its updates, with those that are waiting; None if there are none."""
        found = Cold(self.rows, self.latest)
        found = found if waiting is None else found.after(waiting.rows, waiting.latest)
        return found if found.rows else None


@dataclass(frozen=True, slots=True)
class New:
    """A collection to make, with its first updates."""

    kind: str
    name: str
    since: int
    layout: bytes
    pieces: Iterable[Piece | StoredFile]


@dataclass(frozen=True, slots=True)
class Answered:
    """A batch with an id. `mark` is the fingerprint of its rows. It closed the times in `[low, upper)`."""

    id: str
    mark: bytes
    time: int
    low: int
    upper: int
    runner: str
    reason: str
    seconds: float
    entry: int = 0


class Journal(JournalFile):
    """The open file. One object serves one thread at a time. A second thread opens a journal of its own.

    Raises:
        StorageError: from every method, if the disk fails. Then the call has changed nothing.
    """

    begun = 0  # the number of the entry that was begun last, which may not be kept
    _number: int | None = None  # the number of the last entry, or a larger one; None: the file tells

    # Reading.

    @contextmanager
    def beside(self) -> Iterator[Journal]:
        """The same journal for another thread."""
        self.check_place()
        other = Journal(self._folder)
        try:
            yield other
        finally:
            other.close()

    def collections(self, number: int | None = None) -> list[Kept]:
        """All collections, in the order of their creation; or the one with this number."""
        only, values = ("", ()) if number is None else ("WHERE id = ? ", (number,))
        with self._guarded():
            rows = self._db.execute(
                "SELECT id, kind, name, since, created, flushed, version, rows, latest, layout "
                f"FROM collection {only}ORDER BY id", values
            ).fetchall()  # fmt: skip
        for row in rows:
            whole = all(isinstance(value, int) for value in (*row[:1], *row[3:6], *row[7:9]))
            if not whole or not isinstance(row[6], int | None):  # a table that is not flushed has no version
                raise StorageError(f"{self.where} cannot be read: {row[:7]} is not a collection", path=str(self.where))
        return [Kept(*row) for row in rows]

    def numbers(self) -> set[int]:
        """The numbers of all collections."""
        with self._guarded():
            return {number for (number,) in self._db.execute("SELECT id FROM collection").fetchall()}

    def waiting(self, after: int = -1) -> dict[int, Cold]:
        """How many updates of entries after the given one are waiting for a flush, and the latest of their times, by
        collection. Those without such updates are left out."""
        with self._guarded():
            rows = self._db.execute(
                f"SELECT line.collection, sum(line.rows), max(line.latest) {WAITING} WHERE line.id >= ? "
                "GROUP BY line.collection", (first(after + 1),),
            ).fetchall()  # fmt: skip
        return {collection: Cold(count, latest) for collection, count, latest in rows}

    def pieces(self, collection: int, after: int, to: int | None = None) -> list[bytes | StoredFile]:
        """A collection's updates of the entries in `(after, to]` (None: all later ones), in order, as they were
        appended."""
        with self._guarded():
            end = self.entry if to is None else to
            rows = self._db.execute(
                "SELECT data, file FROM line WHERE id >= ? AND id < ? AND collection = ? ORDER BY id",
                (first(after + 1), first(end + 1), collection),
            ).fetchall()
        with naming(f"the updates in {self.where}"):
            return [_bytes(data) if file is None else StoredFile(*json.loads(file)) for data, file in rows]

    def arranged(self, collection: int) -> dict[str, int]:
        """The versions of those arrangements of a collection, by name, that hold exactly what its Delta table holds."""
        with self._guarded():
            rows = self._db.execute(
                "SELECT a.name, a.version FROM arrangement a JOIN collection c ON c.id = a.collection "
                "WHERE a.collection = ? AND a.flushed = c.flushed", (collection,),
            ).fetchall()  # fmt: skip
        return dict(rows)

    def pending(self) -> int:
        """Bytes of the lines for a flush: of updates that are only in the journal, or in files that only the journal
        knows, and of closings that are not remembered any more."""
        with self._guarded():
            updates = self._db.execute(f"SELECT coalesce(sum(line.bytes + {LINE_BYTES}), 0) {WAITING}").fetchone()
            entries = self._db.execute(f"SELECT count(*) FROM line WHERE collection = {NOBODY}").fetchone()
        return int(updates[0]) + LINE_BYTES * max(0, int(entries[0]) - CLOSINGS)

    def unclaimed(self) -> list[str]:
        """Folders of the warehouse that were made for collections but belong to none, not yet or no longer."""
        with self._guarded():
            rows = self._db.execute("SELECT folder FROM unclaimed ORDER BY folder").fetchall()
        return [folder for (folder,) in rows]

    def answered(self, batch: str) -> Answered | None:
        """The batch with that id, None if there was none."""
        with self._guarded():
            row = self._db.execute(
                "SELECT id, mark, time, low, upper, runner, reason, seconds, entry FROM batch WHERE id = ?", (batch,)
            ).fetchone()
        return None if row is None else Answered(*row)

    def closings(self) -> list[Closing]:
        """The times that the last batches closed."""
        with self._guarded():
            rows = self._db.execute(
                f"SELECT low, upper, submitted, batch FROM line WHERE collection = {NOBODY} AND low < upper "
                f"ORDER BY id DESC LIMIT {CLOSINGS}"
            ).fetchall()
        return [Closing(*row) for row in rows]

    def newest(self, prefix: str) -> str | None:
        """The greatest batch id with a prefix, None if no id has it."""
        with self._guarded():
            row = self._db.execute("SELECT max(id) FROM batch WHERE id >= ? AND id < ?", _within(prefix)).fetchone()
        return None if row[0] is None else str(row[0])

    # Writing.

    def append(
        self, pieces: Mapping[int, Iterable[Piece | StoredFile]], upper: int, batch: Answered | None,
        closing: Closing | None, facts: Mapping[str, str],
    ) -> None:  # fmt: skip
        """Write one entry: updates by collection id, `upper`, the batch's id, the times that it closes, and facts about
        the warehouse that it settles. The entry is on disk when this returns."""
        with self._transaction():
            entry = self._next()
            self._write_all(INSERT, lines(entry, pieces, upper, closing))
            if facts:
                self._set(**facts)
            if batch is not None:
                self._write(
                    "INSERT INTO batch VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (batch.id, batch.mark, entry, batch.time, batch.low, batch.upper, batch.runner, batch.reason,
                     batch.seconds),
                )
        self._number = entry

    def define(
        self, catalog: str, upper: int, new: Sequence[New], gone: Collection[int], forgotten: Iterable[str],
        renamed: Mapping[str, str], left: Iterable[str], claimed: Iterable[str], unset: Iterable[str],
    ) -> list[Kept]:  # fmt: skip
        """Write one entry that changes the definitions. Batch ids with a prefix in `forgotten` are deleted. Returns all
        collections as they are then.

        Args:
            renamed: other prefixes of batch ids, by those that they have had.
            left: the folders of the dropped collections, which may be removed from now on.
            claimed: the folders of the new ones. Some may also be in `left`.
            unset: facts that count no more.
        """
        with self._transaction():
            entry = self._next()
            self._set(catalog=catalog, defined=entry)
            for id in gone:
                self._write("DELETE FROM arrangement WHERE collection = ?", (id,))
                self._write("DELETE FROM collection WHERE id = ?", (id,))
            if gone:
                self._write(f"DELETE {DROPPED}")
            for folder in left:
                self._write("INSERT OR IGNORE INTO unclaimed VALUES (?)", (folder,))
            for folder in claimed:
                self._write("DELETE FROM unclaimed WHERE folder = ?", (folder,))
            for key in unset:
                self._write("DELETE FROM meta WHERE key = ?", (key,))
            for prefix in forgotten:
                self._write("DELETE FROM batch WHERE id >= ? AND id < ?", _within(prefix))
            for between in (True, False):  # two tables may take each other's names
                for old, made in renamed.items():
                    given, taken = (old, f"\x01{made}") if between else (f"\x01{made}", made)
                    self._write("UPDATE batch SET id = ? || substr(id, ?) WHERE id >= ? AND id < ?",
                                (taken, len(given) + 1, *_within(given)))  # fmt: skip
            pieces = {}
            for item in new:
                cursor = self._write(
                    "INSERT INTO collection (kind, name, since, created, flushed, rows, latest, layout) "
                    "VALUES (?, ?, ?, ?, ?, 0, ?, ?)",
                    (item.kind, item.name, item.since, entry, entry - 1, MINIMUM, item.layout),
                )
                pieces[int(cursor.lastrowid or 0)] = item.pieces
            self._write_all(INSERT, lines(entry, pieces, upper))
            found = self.collections()  # before the commit: after it, no error may tell that nothing is changed
        self._number = entry
        return found

    def lay_out(self, layouts: Mapping[int, bytes]) -> None:
        """Note the layouts of collections that an older version made. A layout never changes."""
        with self._transaction():
            for id, layout in layouts.items():
                self._write("UPDATE collection SET layout = ? WHERE id = ? AND layout IS NULL", (layout, id))

    def unclaim(self, folder: str) -> None:
        """Note a folder that will be made for a future collection. If no collection comes, it may be removed."""
        with self._transaction():
            self._write("INSERT OR IGNORE INTO unclaimed VALUES (?)", (folder,))

    def removed(self, folders: Iterable[str]) -> None:
        """Forget unclaimed folders, which were removed."""
        with self._transaction():
            for folder in folders:
                self._write("DELETE FROM unclaimed WHERE folder = ?", (folder,))

    def raise_since(self, sinces: Mapping[int, int]) -> None:
        """Raise `since` of collections: from now on, neither reads nor what is written need times below it."""
        with self._transaction():
            for id, since in sinces.items():
                self._write("UPDATE collection SET since = ? WHERE id = ? AND since < ?", (since, id, since))

    def flushed(
        self, collection: int, entry: int, version: int | None, rows: int, latest: int, arranged: Mapping[str, int]
    ) -> None:
        """Note that a collection's Delta table, and these versions of its arrangements by name, hold its updates up to
        an entry. They are no longer waiting."""
        with self._transaction():
            self._write(
                "UPDATE collection SET flushed = ?, version = ?, rows = ?, latest = ? WHERE id = ?",
                (entry, version, rows, latest, collection),
            )
            self._write("DELETE FROM arrangement WHERE collection = ?", (collection,))
            for name, at in arranged.items():
                self._write("INSERT INTO arrangement VALUES (?, ?, ?, ?)", (collection, name, entry, at))
            self._write("UPDATE meta SET value = value + 1 WHERE key = 'flushes'")

    def trim(self) -> None:
        """Delete the lines whose updates no longer wait, and those of closings that are not remembered any more; in
        steps. Others may write between the steps."""
        with self._guarded():
            start, end = -1, first(self.entry + 1)
            old = end - first(CLOSINGS)
            while start < end:
                found = self._db.execute("SELECT id FROM line WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?",
                                         (start, _FEW_LINES)).fetchone()
                to = end if found is None else found[0]
                within = start, to, old
                if self._db.execute(f"SELECT 1 {DONE} LIMIT 1", within).fetchone() is not None:
                    with self._transaction():
                        self._write(f"DELETE {DONE}", within)
                start = to

    def shrink(self) -> None:
        """Give the space of deleted updates back to the file system, in steps. Others may write between the steps."""
        with self._guarded():
            while self._db.execute("PRAGMA freelist_count").fetchone()[0] > _FEW_PAGES:
                self._db.execute(f"PRAGMA incremental_vacuum({_FEW_PAGES})").fetchall()
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def keep(self, **facts: str | int) -> None:
        """Set facts about the warehouse."""
        with self._transaction():
            self._set(**facts)

    def _next(self) -> int:
        """The number of a new entry. Nobody else writes entries."""
        known, self._number = self._number, None
        self.begun = (self.entry if known is None else known) + 1
        return self.begun


def _bytes(data: object) -> bytes:
    if not isinstance(data, bytes):
        raise TypeError("a value is text instead of bytes")
    return data


def app_of(journal: Journal, collection: int) -> str:
    """The name of a collection's transactions in its Delta table. No other collection has it, whatever its name."""
    return f"{journal.meta('id')}/{collection}"


def _within(prefix: str) -> tuple[str, str]:
    """The bounds of the texts with a prefix: the least of them, and the least text after them."""
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)

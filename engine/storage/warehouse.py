"""A warehouse in a local folder: what a writing engine keeps, in the order that makes it safe.

`lock` says who writes. `journal.sqlite` is the truth: definitions, frontiers, batches not flushed yet. `tables/`,
`views/` and `errors/` hold a Delta table for each collection, which follow the journal.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from os import PathLike

from halfjoin.catalog.models import Document
from halfjoin.engine.applied import Applied
from halfjoin.engine.batch import Staged
from halfjoin.engine.collection import Collection
from halfjoin.engine.feeds.ids import prefix_of
from halfjoin.engine.memory import Memory
from halfjoin.engine.run import Part
from halfjoin.engine.state import State
from halfjoin.engine.storage.encoding import Piece, encode
from halfjoin.engine.storage.fetch import Disk
from halfjoin.engine.storage.flusher import FOLDERS, Flusher, Target
from halfjoin.engine.storage.journal import Answered, New
from halfjoin.engine.storage.names import check_columns, folder_name
from halfjoin.engine.storage.parquet import StoredFile
from halfjoin.engine.storage.restore import restore
from halfjoin.engine.storage.site import place_of, site_of
from halfjoin.engine.storage.store import RETAIN, BatchId
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.errors import StorageError
from halfjoin.sql.expr import Column

FLUSH_BYTES = 32 << 20  # of updates in the journal alone, after which they are flushed between batches


class Warehouse:
    """The store of an engine that writes.

    Raises:
        Conflict: another engine writes there.
        StorageError: the folder cannot be used, or is of a newer format.
    """

    def __init__(self, warehouse: str | PathLike[str]) -> None:
        self._site = site_of(warehouse)
        self.place = self._site.place
        self._lock = self._site.lock()
        try:
            self._journal = self._site.journal(read_only=False)
        except BaseException:
            self._unlock()
            raise
        self._flusher = Flusher(self._site, self._journal)
        self._ids: dict[int, Collection] = {}
        self._created: dict[int, int] = {}
        self._pending = 0
        self._catalog = ""

    def open(self, retain: int | None, memory: Memory) -> State:
        """The state that was kept, within a budget of memory; `retain` replaces the kept default for history."""
        journal = self._journal
        known = journal.meta("retain")
        if retain is None:
            retain = int(known) if known else RETAIN
        if known != str(retain):
            journal.keep(retain=retain)
        kept = {(item.kind, item.name): item for item in journal.kept()}
        self._remove_strangers({(item.kind, folder_name(item.name)) for item in kept.values()})
        catalog = journal.meta("catalog")
        document = Document.model_validate_json(catalog) if catalog else Document()
        self._catalog = catalog
        fetch = Disk(self._site, journal, memory).fetch
        state, self._ids = restore(document, kept, int(journal.meta("upper")), retain, memory, fetch)
        self._created = {item.id: item.created for item in kept.values()}
        self._pending = journal.pending()
        return state

    def moment(self, state: State) -> AbstractContextManager[State]:
        """The state itself: nobody else changes it."""
        return nullcontext(state)

    def answered(self, state: State, batch: str) -> tuple[bytes, Applied] | None:
        """The mark and the outcome of the batch with that id, if there was one.

        The changes are taken from the views' history; a view is left out if it is newer than the batch, or its history
        no longer reaches back to it.
        """
        found = self._journal.answered(batch)
        if found is None:
            return None
        ids = {id(collection): number for number, collection in self._ids.items()}
        diffs = {}
        for name, view in state.views.items():
            contents = view.contents
            whole = contents.since < found.low or contents.since == 0
            if whole and self._created[ids[id(contents)]] < found.entry:
                diffs[name] = contents.changes(found.low, found.upper).table(changes=True)
        return found.mark, Applied(found.time, found.upper, found.runner, found.seconds, diffs, found.reason)

    def newest(self, prefix: str) -> str | None:
        """The greatest batch id that begins with a prefix, None if there is none."""
        return self._journal.newest(prefix)

    def append(self, state: State, staged: Staged, applied: Applied, batch: BatchId | None) -> None:
        """Keep a batch; called before it is published. Afterwards it is acknowledged."""
        ids = {id(collection): number for number, collection in self._ids.items()}
        pieces = {ids[id(state.collection(name))]: list(_kept(part)) for name, part in staged.runs.items()}
        for name, run in staged.errors.items():
            pieces[ids[id(state.views[name].errors)]] = list(_kept(run))
        kept = None
        if batch is not None:
            kept = Answered(
                batch.text, batch.mark, applied.time, state.upper, staged.upper, applied.runner, applied.reason,
                applied.seconds,
            )  # fmt: skip
        self._journal.append(pieces, staged.upper, kept)
        inside = (piece for parts in pieces.values() for piece in parts if isinstance(piece, Piece))
        self._pending += sum(len(piece.data) for piece in inside)

    def define(self, state: State) -> None:
        """Keep what is defined now: the catalog, new collections with what is in them, and which are gone."""
        now = _collections(state)
        there = {id(collection) for _, _, collection in now}
        known = {id(collection) for collection in self._ids.values()}
        catalog = state.catalog.document().model_dump_json()
        new = [item for item in now if id(item[2]) not in known]
        gone = [number for number, collection in self._ids.items() if id(collection) not in there]
        if not new and not gone and catalog == self._catalog:
            return
        for _, name, collection in new:
            check_columns(name, collection.schema)
        if gone:
            self._flusher.wait()
        made = [New(kind, name, c.since, (p for part in c.runs for p in _kept(part))) for kind, name, c in new]
        kept = self._journal.kept() if gone else []
        forgotten = [prefix_of(item.name) for item in kept if item.id in gone and item.kind == "tables"]
        ids = self._journal.define(catalog, state.upper, made, gone, forgotten)
        entry = int(self._journal.meta("entry"))
        self._catalog = catalog
        for number in gone:
            del self._ids[number], self._created[number]
        for number, (_, _, collection) in zip(ids, new, strict=True):
            self._ids[number], self._created[number] = collection, entry
        self._pending = self._journal.pending()
        for item in kept:
            if item.id in gone:
                place_of(self._site, item).clear()

    def settle(self, state: State) -> None:
        """Start to flush once enough has gathered; wait for it only where batches come faster than it goes."""
        if self._pending < FLUSH_BYTES or (self._flusher.busy and self._pending < 4 * FLUSH_BYTES):
            return
        self._flusher.wait()
        try:
            self._pending = self._journal.pending()
        except StorageError:  # what there is to say, the next batch will say
            return
        if self._pending >= FLUSH_BYTES:
            self._flusher.start(self._targets())

    def flush(self, state: State) -> None:
        """Bring every Delta table up to the journal."""
        self._flusher.wait()
        self._flusher.flush(self._targets())
        self._pending = self._journal.pending()

    def compact(self, state: State) -> None:
        """Flush, and write every Delta table anew without the history below since."""
        self._flusher.wait()
        self._flusher.flush(self._targets(), everything=True)
        self._pending = self._journal.pending()

    def close(self) -> None:
        """Let go of the files and the lock."""
        self._flusher.close()
        self._journal.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()

    def _targets(self) -> list[Target]:
        return [
            Target(number, collection.schema, collection.since, sort_columns(collection))
            for number, collection in self._ids.items()
        ]

    def _remove_strangers(self, known: set[tuple[str, str]]) -> None:
        """Folders of collections that were dropped, or never came to be, when a process ended."""
        for kind in FOLDERS:
            place = self._site.place / kind
            for name in place.folders():
                if (kind, name) not in known:
                    (place / name).clear()


def _kept(part: Part) -> Iterator[Piece | StoredFile]:
    """A run as the journal keeps it: its updates, or the files that hold them in the collection's folder."""
    if isinstance(part, StoredRun):
        yield from part.files
        return
    for updates in part.pieces():
        yield from encode(updates)


def _collections(state: State) -> list[tuple[str, str, Collection]]:
    """Kind, name and collection of everything that is kept."""
    found = [("tables", name, collection) for name, collection in state.tables.items()]
    for name, view in state.views.items():
        found += [("views", name, view.contents), ("errors", name, view.errors)]
    return found


def sort_columns(collection: Collection) -> tuple[str, ...]:
    """The key of the first arrangement that is on columns: by which files are sorted."""
    for key in collection.arrangements:
        names = tuple(expr.name for expr in key.keys if isinstance(expr, Column))
        if isinstance(key, ArrangementKey) and key.through is None and names and len(names) == len(key.keys):
            return names
    return ()

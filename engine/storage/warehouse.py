"""The store of an engine that writes a warehouse: it keeps batches and definitions in the journal.

`lock` says who writes. The journal is the truth: definitions, `upper`, updates not yet flushed. `tables/`, `views/`,
`nodes/` and `errors/` hold a Delta table for each collection. The Delta tables follow the journal.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import replace
from os import PathLike

import pyarrow as pa

from halfjoin.catalog.models import Document
from halfjoin.engine.arrange.changes import Changes, StoredChanges, diffs_of
from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.memory import Memory
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.batch.applied import Applied
from halfjoin.engine.batch.clock import Clock, Closing, closing_of, opened
from halfjoin.engine.batch.commit import NO_CHANGE, Entry, Step
from halfjoin.engine.batch.ids import loads_of, prefix_of
from halfjoin.engine.batch.progress import Feed, Progress, fact_of, progress_of
from halfjoin.engine.batch.stage import Staged
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.store import BatchId, named
from halfjoin.engine.batch.unreadable import first_failure
from halfjoin.engine.intake.times import now
from halfjoin.engine.linear.failures import FORM as ERRORS_FORM
from halfjoin.engine.storage.copying import Copying
from halfjoin.engine.storage.damage import naming
from halfjoin.engine.storage.encoding import Piece, layout_of
from halfjoin.engine.storage.fetch import Disk
from halfjoin.engine.storage.filing import Filing
from halfjoin.engine.storage.flusher import Flusher
from halfjoin.engine.storage.folders import Folders
from halfjoin.engine.storage.journal import Answered, Kept, New
from halfjoin.engine.storage.journal_lines import LINE_BYTES
from halfjoin.engine.storage.kept_catalog import read_catalog
from halfjoin.engine.storage.kinds import collection_of, collections, kind_of, parts, sort_columns
from halfjoin.engine.storage.lock import Lock
from halfjoin.engine.storage.names import check_columns, folder_name
from halfjoin.engine.storage.open_files import close_inside
from halfjoin.engine.storage.parquet import StoredFile
from halfjoin.engine.storage.renew import make_errors_anew
from halfjoin.engine.storage.restore import OnDisk, restore
from halfjoin.engine.storage.scratch import Links, remove_leftovers
from halfjoin.engine.storage.site import arrangements_folder, collection_place, folder_of, site_of
from halfjoin.engine.storage.store import RETAIN
from halfjoin.engine.storage.upkeep import Upkeep
from halfjoin.engine.system.behind import Behind
from halfjoin.errors import HalfjoinError

_log = logging.getLogger("halfjoin")


class Warehouse:
    """The store of an engine that writes.

    Raises:
        Conflict: another engine writes to the warehouse.
        StorageError: the folder cannot be used, or has a newer format.
    """

    def __init__(self, warehouse: str | PathLike[str]) -> None:
        self._site = site_of(warehouse)
        self.place = self._site.place
        self._numbers: dict[int, int] = {}  # the journal's numbers of collections, by the identity of the collection
        self._layouts: dict[int, pa.Schema] = {}
        self._last = 0  # the number of the journal's last entry: nobody else writes entries
        self._older_errors = True
        self._created: dict[int, int] = {}
        self._stale: set[int] = set()  # nodes that no view has any more, as this version plans the views
        self._catalog = ""
        self._sources: set[str] = set()  # the ids of those that the kept catalog has
        self._files: dict[tuple[str, str], set[str]] = {}  # of new collections, also those of a batch kept with them
        self._behind = Behind()
        self._lock: Lock | None = None
        self._ended = False
        with ExitStack() as undo:
            undo.callback(self._unlock)
            self._lock = self._site.lock()
            self._journal = self._site.journal(read_only=False)
            self.staging = self._site.staging(self._journal.meta("id"))
            if self.staging is not None:
                remove_leftovers(self.staging)
            self._flusher = Flusher(self._site, self._journal, self._lock)
            self._copying = Copying(self.staging, self._behind)
            self._links = Links(self.staging)
            self._folders = Folders(self._site, self._journal)
            self._filing = Filing(self._folders)
            self.spill = self._filing.spill
            undo.pop_all()

    def open(self, retain: int | None, clock: Clock | None, memory: Memory) -> State:
        """Restore the state that the warehouse keeps, within a memory budget. `retain` replaces the kept default for
        history.

        Raises:
            Conflict: the warehouse has another clock.
            StorageError: a view cannot be as it was. The older version that made it can still open the warehouse.
        """
        with self._journal.in_newest_format():
            return self._open(retain, clock, memory)

    def _open(self, retain: int | None, clock: Clock | None, memory: Memory) -> State:
        journal = self._journal
        self._clock, upper = journal.meta("clock"), journal.upper
        clock = opened(self._clock, clock, upper)
        known = journal.number("retain", -1)
        if retain is None:
            retain = RETAIN if known < 0 else known
        if known != retain:
            journal.keep(retain=retain)
        kept = {(item.kind, item.name): item for item in journal.collections()}
        self._folders.known = {folder_of(item) for item in kept.values()}
        self._folders.remove_unclaimed()
        self._catalog = journal.meta("catalog")
        self._disk = Disk(self._site, journal, memory, self._copying)
        self._disk.check_not_ahead()
        self._upkeep = Upkeep(journal, self._flusher, self._disk, self._behind)
        with naming(f"the catalog in {journal.where}"):
            document = read_catalog(self._catalog)
            state = State(retain, self, upper=upper, clock=clock, memory=memory)
            self._sources = {source.id for source in document.sources}
            ids = restore(state, document, kept, journal.waiting(), self._upkeep.fetch, self._upkeep.bring)
        layouts = {item.id: item.layout for item in kept.values()}
        if older := {number: _layout(collection) for number, collection in ids.items() if layouts[number] is None}:
            journal.lay_out(older)
        self._know(ids, {**layouts, **older})
        self._stale = {item.id for item in kept.values()} - ids.keys()
        self._created = {item.id: item.created for item in kept.values()}
        self._upkeep.recount()
        self._last = journal.entry
        self._older_errors = journal.meta("errors") != ERRORS_FORM
        for problem in self.foreign().values():
            _log.warning("%s", problem)
        return state

    def moment(self, state: State) -> AbstractContextManager[State]:
        """The state itself, because nobody else changes it."""
        return nullcontext(state)

    def answered(self, state: State, batch: str) -> tuple[bytes, Applied] | None:
        """The mark and the outcome of the batch with that id, None if there was none.

        The changes come from the views' history, and stay in files if it is there. A view is left out if it is newer
        than the batch, or if its history no longer reaches back to the batch.
        """
        found = self._journal.answered(batch)
        if found is None:
            return None
        changes: dict[str, Changes] = {}
        errors: dict[str, str] = {}
        for name, view in state.views.items():
            contents = view.contents
            whole = contents.since < found.low or contents.since == 0
            if whole and self._created[self._numbers[id(contents)]] < found.entry:
                parts = contents.runs
                stored = StoredChanges(contents.schema, parts, found.low, found.upper, consolidated=False)
                changes[name] = self._links.lasting(stored) if contents.in_files else stored.table()
                failure = first_failure(state, name, found.low, found.upper)
                if failure is not None:
                    errors[name] = str(failure.error)
        made = Applied(found.time, found.upper, found.runner, found.seconds, diffs_of(changes), found.reason,
                       errors=errors, clock=state.clock)  # fmt: skip
        return found.mark, made

    def closed_by(self, time: int) -> Closing | None:
        """The closing of a time, None if none of the last batches closed it."""
        return closing_of(self._journal.closings(), time)

    def as_files(self, collection: Collection) -> Sequence[Part] | None:
        """The files of the collection's Delta table, and the updates that are not in the table yet."""
        return self._disk.left(self._upkeep.ids, collection)

    def adopt(self, state: State, staged: Staged) -> Staged:
        """Link the files that tasks wrote into the folders of their Delta tables. No commit adds them yet."""
        if all(part.in_memory for part in (*staged.runs.values(), *staged.errors.values())):
            return staged
        runs = {name: self._filing.adopted(kind_of(state, name), name, part) for name, part in staged.runs.items()}
        errors = {name: self._filing.adopted("errors", name, part) for name, part in staged.errors.items()}
        return replace(staged, runs=runs, errors=errors)

    def progress(self, source: str) -> Progress:
        """How far the source with that id has been read."""
        return progress_of(self._journal.meta(fact_of(source)))

    def newest(self, prefix: str) -> str | None:
        """The greatest batch id with a prefix, None if no id has it."""
        return self._journal.newest(prefix)

    def make_room(self, state: State, staged: Staged) -> Staged:
        """Make room in the memory budget for a batch: the largest held parts go to disk first, then parts of the batch.

        Raises:
            StorageError: there is not enough room.
        """
        if not staged.runs:  # a definition may have made indexes
            state.memory.recount()
        if state.memory.takes(staged.size):
            return staged
        self.flush(state)
        state.release(staged.size)
        for part, kind, name in sorted(parts(state, staged), key=lambda found: len(found[0]), reverse=True):
            if state.memory.allows(staged.size):
                break
            others = staged.errors if kind == "errors" else staged.runs
            sort = sort_columns(collection_of(state, kind, name))
            filed = {**others, name: self._filing.filed(kind, name, part, sort)}
            staged = replace(staged, errors=filed) if kind == "errors" else replace(staged, runs=filed)
        state.memory.check(staged.size)
        return staged

    def append(
        self, state: State, staged: Staged, applied: Applied, batch: BatchId | None, feed: Feed | None
    ) -> Entry:
        """Prepare the journal's entry for a batch. Once it is kept, the batch is acknowledged, and then published."""
        pieces: dict[int, list[Piece | StoredFile]] = {}
        first: dict[tuple[str, str], list[Piece | StoredFile]] = {}  # of collections that are defined with the batch
        for part, kind, name in parts(state, staged):
            collection = collection_of(state, kind, name)
            number = self._numbers.get(id(collection))
            layout = None if number is None else self._layouts.get(number)
            made = list(self._filing.pieces(kind, name, collection, part, layout))
            if number is not None:
                pieces[number] = made
            else:
                first[kind, name] = made
                self._files[kind, name] |= {piece.name for piece in made if isinstance(piece, StoredFile)}
        kept = None
        if batch is not None:
            kept = Answered(
                batch.text, batch.mark, applied.time, state.upper, staged.upper, applied.runner, applied.reason,
                applied.seconds,
            )  # fmt: skip
        closing = None
        if staged.upper > state.upper:
            closing = Closing(state.upper, staged.upper, now(), named(batch, feed))
        settled = {} if staged.clock in (None, self._clock) else {"clock": str(staged.clock)}
        clock = settled.get("clock", self._clock)
        facts = settled if feed is None else {**settled, fact_of(feed.id): feed.after.text()}
        sizes = [piece.size + LINE_BYTES for parts in pieces.values() for piece in parts]
        pending = self._upkeep.pending + LINE_BYTES + sum(sizes)

        def commit() -> None:
            found = {(item.kind, item.name): item.id for item in self._journal.collections()} if first else {}
            new = {found[place]: made for place, made in first.items()}
            self._journal.append({**pieces, **new}, staged.upper, kept, closing, facts)

        def follow() -> None:
            self._clock, self._upkeep.pending = clock, pending

        return self._entry(commit, follow)

    def together(self, first: Entry, second: Entry) -> Entry:
        """Two entries that are kept in one step."""

        def commit() -> None:
            with self._journal.together():
                first.commit()
                second.commit()

        def follow() -> None:
            first.follow()
            second.follow()
            with suppress(HalfjoinError):  # the change is kept: it has not failed
                self._upkeep.recount()

        return self._entry(commit, follow)

    def _entry(self, commit: Step, follow: Step) -> Entry:
        """The journal's next entry."""
        last = self._last

        def checked() -> None:
            if self._ended:  # by a function that a view calls, or a handler of a signal
                raise HalfjoinError("the engine was closed while the call was under way, so the call has changed "
                                    "nothing")  # fmt: skip
            if self._lock is not None:
                self._lock.check()
            self._filing.offer()
            commit()

        def kept() -> bool:
            self._journal.recover()
            return self._journal.entry > last

        def followed() -> None:
            follow()
            self._last = self._journal.begun
            self._filing.keep()

        return Entry(checked, kept, followed)

    def _know(self, ids: dict[int, Collection], layouts: Mapping[int, bytes | None]) -> None:
        """Note the collections that the journal has, by their ids there."""
        self._upkeep.know(ids)
        self._numbers = {id(collection): number for number, collection in ids.items()}
        known = self._layouts  # a collection's never changes, and to read those of all would take long
        self._layouts = {id: known[id] if id in known else pa.ipc.read_schema(pa.py_buffer(layout))
                         for id, layout in layouts.items() if layout}  # fmt: skip

    def has_stale_nodes(self) -> bool:
        """Whether the journal has node collections that no view has any more, as this version plans the views. They
        must go before the next batch, because it would not update them."""
        return bool(self._stale)

    def has_older_errors(self) -> bool:
        """Whether the kept errors have an older form."""
        return self._older_errors

    def renew_errors(self, state: State) -> None:
        """Compute the errors anew, as part of a definition."""
        make_errors_anew(state)

    def errors_renewed(self) -> None:
        """Note that the errors now have the newest form."""
        self._journal.keep(errors=ERRORS_FORM)
        self._older_errors = False

    def recover(self) -> None:
        """Roll back a transaction that was interrupted."""
        self._journal.recover()

    def refuse(self) -> None:
        """Remove the files that a refused change has written."""
        self._filing.refuse()

    def define(self, state: State) -> Entry:
        """Prepare the journal's entry for the definitions: the catalog, new collections with their updates, and the
        dropped collections."""
        now = collections(state)
        there = {id(collection) for _, _, collection in now}
        catalog = state.catalog.document().text()
        new = [item for item in now if id(item[2]) not in self._numbers]
        gone = [number for number, collection in self._upkeep.ids.items() if id(collection) not in there]
        gone += self._stale
        if not new and not gone and catalog == self._catalog:
            return NO_CHANGE
        for kind, name, collection in new:
            check_columns(name, collection.schema)
            self._folders.check_free(f"{kind}/{folder_name(name)}")
            collection.held = tuple(self._filing.adopted(kind, name, part) for part in collection.held)
        if gone:
            self._flusher.wait()
        files = self._files = {}
        made = [New(kind, name, c.since, _layout(c), list(self._filing.first(kind, name, c, files)))
                for kind, name, c in new]  # fmt: skip
        dropped = [item for item in self._journal.collections() if item.id in gone] if gone else []
        left = [folder for item in dropped for folder in (folder_of(item), arrangements_folder(item))]
        claimed = {f"{kind}/{folder_name(name)}" for kind, name, _ in new}
        names = {table.id: name for name, table in state.catalog.tables.items() if table.id}
        known = Document.model_validate_json(self._catalog or "{}").tables if gone else []
        lasting = {table.name: names[table.id] for table in known if table.id in names}
        anew = [item.name for item in dropped if item.kind == "tables" and item.name not in lasting]
        forgotten = [prefix for name in anew for prefix in (prefix_of(name), *loads_of(name, state.tables))]
        renamed = {prefix_of(old): prefix_of(name) for old, name in lasting.items() if old != name}
        sources = {source.id for source in state.catalog.sources.values()}
        unread = [fact_of(source) for source in self._sources - sources]
        after: list[Kept] = []

        def commit() -> None:
            after[:] = self._journal.define(catalog, state.upper, made, gone, forgotten, renamed, left, claimed, unread)

        def follow() -> None:
            # An interrupted commit may not have noted them.
            kept = {(item.kind, item.name): item for item in after or self._journal.collections()}
            found = [(kept[kind, name], collection) for kind, name, collection in now]
            upkeep = self._upkeep
            for item, collection in found:
                if collection.stored is None:
                    collection.stored = OnDisk(item.id, collection, upkeep.fetch, lambda: state.upper, upkeep.bring)
            self._know({item.id: collection for item, collection in found}, {item.id: item.layout for item, _ in found})
            self._created = {item.id: item.created for item, _ in found}
            self._folders.known = {folder_of(item) for item, _ in found}
            self._catalog, self._stale = catalog, set()
            self._sources = sources
            with suppress(HalfjoinError):  # the change is kept: it has not failed
                self._upkeep.recount()
            for item in dropped:
                if folder_of(item) in claimed:  # a new collection has the name now
                    self._folders.clear(collection_place(self._site, item), files.get((item.kind, item.name), ()))
            if left:
                self._folders.remove_unclaimed()

        return self._entry(commit, follow)

    def foreign(self) -> Mapping[tuple[str, str], str]:
        """What others have done to Delta tables, by kind and name of the collection."""
        return self._disk.foreign()

    def overtaken(self) -> bool:
        """False: no other process changes the definitions."""
        return False

    def do_due_work(self, state: State) -> None:
        """What is due between batches: keep within the memory budget, and start a flush if enough updates wait."""
        self._upkeep.do_due_work(state)

    def flush(self, state: State) -> None:
        """Bring every Delta table up to date with the journal."""
        self._upkeep.flush(everything=False)

    def compact(self, state: State) -> None:
        """Flush, and rewrite every Delta table without the history below `since`."""
        self._upkeep.flush(everything=True)

    def close(self) -> None:
        """Close the journal and release the lock."""
        self._ended = True
        self._behind.close()
        self._flusher.close()
        self._copying.close()
        close_inside(self.place)
        self._journal.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()


def _layout(collection: Collection) -> bytes:
    """The layout of a collection as the journal keeps it."""
    found: bytes = layout_of(collection.schema).serialize().to_pybytes()
    return found

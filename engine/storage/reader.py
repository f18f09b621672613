"""The store of an engine that only reads: every call sees one moment of the whole warehouse, and blocks nobody."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike

from halfjoin.engine.arrange.collection import Collection, Loaded
from halfjoin.engine.arrange.memory import Memory
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.batch.clock import Clock, Closing, closing_of, opened
from halfjoin.engine.batch.progress import Progress, fact_of, progress_of
from halfjoin.engine.batch.state import State
from halfjoin.engine.storage.copying import Copying
from halfjoin.engine.storage.damage import naming
from halfjoin.engine.storage.fetch import Disk
from halfjoin.engine.storage.filling import unfilled
from halfjoin.engine.storage.kept_catalog import read_catalog
from halfjoin.engine.storage.open_files import close_inside, close_removed
from halfjoin.engine.storage.restore import restore
from halfjoin.engine.storage.site import site_of
from halfjoin.engine.storage.store import RETAIN
from halfjoin.engine.system.behind import Behind
from halfjoin.errors import HalfjoinError, StorageError

_log = logging.getLogger("halfjoin")
_UNKNOWN = -1


class Reader:
    """The store of an engine that only reads.

    Raises:
        StorageError: there is no warehouse, or it has a newer format.
    """

    def __init__(self, warehouse: str | PathLike[str]) -> None:
        self._site = site_of(warehouse)
        self.place = self._site.place
        self._journal = self._site.journal(read_only=True)
        self.staging = self._site.staging(self._journal.meta("id"))
        self._behind = Behind()
        self._copying = Copying(self.staging, self._behind)
        self._entry = self._defined = self._flushes = _UNKNOWN
        self._retain = RETAIN
        self._collections: dict[int, Collection] = {}
        self._made: State | None = None

    def open(self, retain: int | None, clock: Clock | None, memory: Memory) -> State:
        """The state as it is now. `retain` must be None: the writer chooses it.

        Raises:
            Conflict: the warehouse has another clock.
        """
        if retain is not None:
            raise HalfjoinError("only the engine that writes can set retain",
                                remedy="leave retain out with read_only=True")
        with self._journal.snapshot():
            opened(self._journal.meta("clock"), clock, 0)
            self._disk = Disk(self._site, self._journal, memory, self._copying)
            self._made = self._opened()
            for problem in self.foreign().values():
                _log.warning("%s", problem)
            return self._made

    @contextmanager
    def moment(self, state: State) -> Iterator[State]:
        """The state as the last batch or definition left it. Rows loaded inside are of the same moment.

        If an interrupt left the state half made or half updated, it is made anew.
        """
        with self._journal.snapshot():
            entry, defined = self._journal.entry, self._journal.number("defined")
            if defined != self._defined or state is not self._made or self._keeps_otherwise(entry):
                before, state = state, self._opened()
                state.functions.update(before.functions)
                self._made = state
            elif entry != self._entry or self._flushes != self._journal.number("flushes"):
                self._follow(state, entry)
            yield state

    def _keeps_otherwise(self, entry: int) -> bool:
        """Whether the writer keeps another length of history since the last moment, and there is something to add."""
        return entry != self._entry and self._journal.number("retain", RETAIN) != self._retain

    def _opened(self) -> State:
        journal, self._made = self._journal, None
        self._entry, self._defined = journal.entry, journal.number("defined")
        self._flushes = journal.number("flushes")
        self._retain = journal.number("retain", RETAIN)
        catalog, upper = journal.meta("catalog"), journal.upper
        kept = {(item.kind, item.name): item for item in journal.collections()}
        with naming(f"the catalog in {journal.where}"):
            document = read_catalog(catalog)
            clock = opened(journal.meta("clock"), None, upper)
            state = State(self._retain, self, upper=upper, clock=clock, memory=self._disk.memory)
            self._collections = restore(state, document, kept, journal.waiting(), self._fetch, lambda *_: False)
        if missing := [name for name in unfilled(state) if name in state.views]:
            raise StorageError(f"another version of halfjoin evaluated the materialized view {missing[0]} otherwise",
                               remedy="open the warehouse once without read_only=True: this fills the view anew")
        return state

    def _fetch(self, number: int, collection: Collection, upper: int, leave: bool, wait: bool) -> Loaded:
        """A collection's updates, with the arrangements that are there: only the writer makes more."""
        return self._disk.fetch(number, collection, upper, leave)

    def _follow(self, state: State, entry: int) -> None:
        """Add the updates since the last moment, and switch to newer files before the older ones are removed."""
        defined, self._defined = self._defined, _UNKNOWN  # until everything is added
        upper = self._journal.upper
        state.move_to(upper, opened(self._journal.meta("clock"), None, upper))
        newer = self._flushes != self._journal.number("flushes")
        waiting = self._journal.waiting(-1 if newer else self._entry)
        for kept in self._journal.collections():
            collection, new = self._collections.get(kept.id), waiting.get(kept.id)
            if collection is None:
                continue  # a node that no view has, as this version plans the views
            if newer and (collection.cold is not None or kept.flushed > self._entry or collection.in_files):
                # Not loaded, or the journal no longer has the updates that are missing here, or files may go soon.
                collection.unload()
                collection.cold = kept.cold(new)
            elif collection.cold is not None and new is not None:
                collection.cold = collection.cold.after(new.rows, new.latest)
            elif new is not None:
                for part in self._disk.since(kept, self._entry, collection, state.upper):
                    collection.publish(part)
            collection.since = max(collection.since, kept.since)
            collection.advance(state.upper)
            collection.tidy(state.upper)
        if newer:
            close_removed()
        self._entry, self._flushes = entry, self._journal.number("flushes")
        self._defined = defined

    def as_files(self, collection: Collection) -> Sequence[Part] | None:
        """The files of the collection's Delta table, and the updates that are not in the table yet."""
        return self._disk.left(self._collections, collection)

    def progress(self, source: str) -> Progress:
        """How far the source with that id has been read."""
        return progress_of(self._journal.meta(fact_of(source)))

    def closed_by(self, time: int) -> Closing | None:
        """The closing of a time, None if none of the last batches closed it."""
        return closing_of(self._journal.closings(), time)

    spill = None

    def recover(self) -> None:
        """End the transaction of a call that was interrupted."""
        self._journal.recover()

    def refuse(self) -> None:
        """Do nothing: there are no changes."""

    def foreign(self) -> Mapping[tuple[str, str], str]:
        """What others than the writer have done to Delta tables, by kind and name of the collection."""
        return self._disk.foreign()

    def overtaken(self) -> bool:
        """Whether the writer has changed the definitions since. The files of a dropped collection go at once."""
        with self._journal.snapshot():
            return self._defined not in (_UNKNOWN, self._journal.number("defined"))

    def do_due_work(self, state: State) -> None:
        """Keep within the memory budget. Released collections are opened again as files."""
        state.release(0)

    def close(self) -> None:
        """Close the journal."""
        self._behind.close()
        self._copying.close()
        close_inside(self.place)
        self._journal.close()

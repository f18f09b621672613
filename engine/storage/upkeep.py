"""Keeps the Delta tables of a warehouse up to date with its journal, and reads collections from them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from halfjoin.engine.arrange.collection import Collection, Loaded
from halfjoin.engine.arrange.coming import Coming
from halfjoin.engine.batch.state import State
from halfjoin.engine.storage.arranging import Arrangement, arrangements, unserved
from halfjoin.engine.storage.fetch import Disk
from halfjoin.engine.storage.flusher import Flusher, Target
from halfjoin.engine.storage.journal import Journal
from halfjoin.engine.storage.kinds import sort_columns
from halfjoin.engine.system.behind import Behind
from halfjoin.errors import HalfjoinError

_log = logging.getLogger("halfjoin")
FLUSH_BYTES = 32 << 20  # bytes of unflushed updates from which a flush starts between batches
_JOURNAL_SHARE = 16  # a flush also starts from 1/16 of the memory budget: unflushed updates are in memory, too


class Upkeep:
    """The flushes of a warehouse, and what its collections read from their Delta tables.

    `ids`: the collections that the journal has, by their numbers there. `pending`: the bytes of the journal that are
    in no Delta table yet.
    """

    def __init__(self, journal: Journal, flusher: Flusher, disk: Disk, behind: Behind) -> None:
        self._journal, self._flusher, self._disk, self._behind = journal, flusher, disk, behind
        self.ids: dict[int, Collection] = {}
        self.pending = 0
        self._missing: dict[int, Sequence[Arrangement]] = {}  # by collection; a thread is to make them

    def know(self, ids: dict[int, Collection]) -> None:
        """Note the collections that the journal has now."""
        self.ids = ids
        self._missing = {number: missing for number, missing in self._missing.items() if number in ids}

    def recount(self) -> None:
        """Count the bytes of the journal that are in no Delta table yet."""
        self.pending = self._journal.pending()

    def do_due_work(self, state: State) -> None:
        """Keep within the memory budget, reopen files that a flush replaced, and start a flush if enough updates wait.

        It waits for a running flush only if batches come faster than the flush goes.
        """
        limit = state.memory.limit
        most = FLUSH_BYTES if limit is None else max(1, min(FLUSH_BYTES, limit // _JOURNAL_SHARE))
        try:
            if not state.memory.takes(0):
                self.flush(everything=False)
                state.release(0)
            if not self._flusher.busy:
                self._renew()
            if (self.pending < most and not self._missing) or (self._flusher.busy and self.pending < 4 * most):
                return
            self._flusher.wait()
            self._renew()
            self.recount()
        except HalfjoinError:  # the next batch reports it
            return
        missing, self._missing = self._missing, {}
        numbers = self.ids if self.pending >= most else missing
        self._flusher.start([replace(self._target(number), missing=missing.get(number, ())) for number in numbers])

    def flush(self, *, everything: bool) -> None:
        """Bring every Delta table up to date with the journal; with `everything`, rewrite each without the history
        below its `since`."""
        self._flush_now(self._targets(), everything=everything)

    def fetch(self, number: int, collection: Collection, upper: int, leave: bool, wait: bool) -> Loaded:
        """A collection's updates on disk, with the arrangements that it needs there. Lookups that need not wait search
        through the files until the arrangements are made behind the batches."""
        loaded = self._disk.fetch(number, collection, upper, leave)
        missing = unserved(loaded.parts, collection)
        if missing and wait and self._flusher.busy:  # perhaps it makes them
            self._flusher.wait()
            loaded = self._disk.fetch(number, collection, upper, leave)
            missing = unserved(loaded.parts, collection)
        if missing and not wait:
            self._missing[number] = missing
        elif missing:
            try:
                self._flush_now([replace(self._target(number), missing=missing)], everything=False)
            except HalfjoinError as problem:  # for example, the disk is full; it can still be read
                _log.warning("the arrangements of %s cannot be stored, so lookups will be slow: %s",
                             collection.name, problem)  # fmt: skip
            loaded = self._disk.fetch(number, collection, upper, leave)
        return loaded

    def bring(self, coming: Coming, upper: int) -> bool:
        """Load parts in a thread, if they fit into memory together with others that come."""
        size = coming.size + sum(one.coming.size for one in self.ids.values() if one.coming is not None)
        if not self._disk.memory.recommends(size):
            return False
        return self._behind.submit(lambda: coming.load(upper, lambda: self._behind.stopping))

    def _flush_now(self, targets: Sequence[Target], *, everything: bool) -> None:
        self._flusher.wait()
        try:
            self._flusher.flush(targets, everything=everything)
        finally:
            self._renew()
        self.recount()

    def _renew(self) -> None:
        """Unload collections in files whose tables have newer files. Older files are removed after a while, and the
        newer ones contain the runs in memory. No flush may run meanwhile."""
        for number in list(self._flusher.changed):
            collection = self.ids.get(number)
            if collection is not None and collection.in_files:
                if collection.coming is not None:  # soon it needs no files
                    continue
                collection.unload()
            self._flusher.changed.discard(number)

    def _targets(self) -> list[Target]:
        return [self._target(number) for number in self.ids]

    def _target(self, number: int) -> Target:
        """How a collection is flushed. If it is all in memory, it needs no arrangements on disk."""
        collection = self.ids[number]
        wanted = arrangements(collection) if collection.cold is not None or collection.in_files else ()
        return Target(number, collection.schema, collection.since, sort_columns(collection), tuple(wanted))

"""Flush updates from the journal to the Delta tables while batches go on. Only flushed updates leave the journal."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from time import perf_counter

import pyarrow as pa
from deltalake.exceptions import DeltaError

from halfjoin.engine.storage.arranging import Arrangement
from halfjoin.engine.storage.damage import naming
from halfjoin.engine.storage.delta import DeltaFolder, Layout
from halfjoin.engine.storage.encoding import decode
from halfjoin.engine.storage.journal import Journal, Kept, app_of
from halfjoin.engine.storage.lock import Lock
from halfjoin.engine.storage.open_files import close_removed
from halfjoin.engine.storage.parquet import StoredFile
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.site import Site, arrangements_of, collection_place
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.system.behind import Behind
from halfjoin.engine.system.telemetry import Done, tell, watched
from halfjoin.engine.updates.consolidate import cancel
from halfjoin.errors import HalfjoinError, StorageError

_log = logging.getLogger("halfjoin")


@dataclass(frozen=True, slots=True)
class Target:
    """A collection to flush: its id, its columns, its `since`, and the columns that sort its files.

    `arrangements` are those that it may have on disk. Those already there are kept up to date, or dropped if they are
    not listed. Those in `missing` are made.
    """

    id: int
    schema: Mapping[str, pa.DataType]
    since: int
    sort: Sequence[str]
    arrangements: Sequence[Arrangement] = ()
    missing: Sequence[Arrangement] = ()


class Flusher:
    """Brings Delta tables up to date with the journal, in the caller's thread or in its own. `lock` keeps other writers
    away as long as its thread works, even if nobody has the engine any more."""

    def __init__(self, site: Site, journal: Journal, lock: Lock | None) -> None:
        self._site, self._journal, self._lock = site, journal, lock
        self._behind = Behind("halfjoin-flush")
        self._seen: set[int] = set()
        self.changed: set[int] = set()  # collections whose tables have new versions; read it when no flush runs

    @property
    def busy(self) -> bool:
        """Whether its thread is running."""
        return self._behind.busy

    def start(self, targets: Sequence[Target]) -> None:
        """Flush in a thread, or in this one if there can be no more. A failure loses nothing: the journal keeps the
        updates, and a later flush tries again."""

        def work() -> None:
            try:
                self.flush(targets)
            except HalfjoinError as problem:
                _log.warning("flushing failed, and will be tried again: %s", problem)

        if not self._behind.submit(work):
            work()

    def wait(self) -> None:
        """Wait until its thread has ended."""
        self._behind.wait()

    def flush(self, targets: Sequence[Target], *, everything: bool = False) -> None:
        """Flush these collections and merge their files, with `everything` into one run.

        Raises:
            StorageError: a table could not be written. The other tables are written.
        """
        started = perf_counter()
        try:
            self._flush_all(targets, everything=everything)
        except BaseException as problem:
            self._tell(started, targets, type(problem).__name__)
            raise
        self._tell(started, targets, None)

    @staticmethod
    def _tell(started: float, targets: Sequence[Target], error: str | None) -> None:
        attributes = {"halfjoin.collections": len(targets)}
        if watched():
            tell(Done("halfjoin.flush", started, perf_counter() - started, attributes, error))

    def _flush_all(self, targets: Sequence[Target], *, everything: bool) -> None:
        problems: list[HalfjoinError] = []
        try:
            with self._journal.beside() as journal:
                journal.raise_since({target.id: target.since for target in targets})
                entry = journal.entry
                kept, waiting = {item.id: item for item in journal.collections()}, journal.waiting()
                for target in targets:
                    try:
                        place = collection_place(self._site, kept[target.id])
                        with naming(place, DeltaError, fails="cannot be flushed"):
                            self._flush(journal, kept[target.id], target, entry, target.id in waiting, everything)
                    except StorageError as problem:  # it concerns this table; a Conflict, for example, concerns all
                        problems.append(problem)
                journal.trim()
                journal.shrink()
            close_removed()
            pa.default_memory_pool().release_unused()  # a merge makes it large
        except HalfjoinError:
            raise
        except Exception as problem:  # from the file system, Parquet or Delta: the journal keeps the updates
            said = str(problem) or type(problem).__name__  # a MemoryError says nothing
            raise StorageError(f"flushing the warehouse {self._site.place} failed: {said}",
                               path=str(self._site.place)) from problem
        if problems:
            raise problems[0] if len(problems) == 1 else StorageError("; ".join(map(str, problems)))

    def _flush(
        self, journal: Journal, kept: Kept, target: Target, entry: int, waiting: bool, everything: bool
    ) -> None:
        table = DeltaFolder(collection_place(self._site, kept), app_of(journal, kept.id))
        flushed, version = kept.flushed, kept.version
        if waiting or everything or kept.id not in self._seen or self._is_newer(table, version):
            self._seen.discard(kept.id)  # until this flush has succeeded: it may fail halfway
            flushed, version = table.recover(flushed, version)
            table.check_entry(flushed, entry)
        if version == kept.version and (waiting or everything):
            table.files(version, kept.rows)  # a check: do not add to a table that has lost rows
        layout = Layout(target.schema, target.sort)
        pieces = journal.pieces(kept.id, flushed, entry) if waiting else []
        if pieces:
            files = [piece for piece in pieces if isinstance(piece, StoredFile)]
            encoded = [piece for piece in pieces if isinstance(piece, bytes)]
            updates = decode(encoded, target.schema, journal.where, kept.layout)
            summed = [cancel(part.not_before(target.since)) for part in updates]
            version = table.append(summed, files, layout, entry, version)
            flushed = entry
        if version is not None and (pieces or everything):
            version = table.merge(layout, target.since, version, everything=everything) or version
        there = journal.arranged(kept.id)
        arranged = {} if version is None else self._arrange(journal, kept, target, version, flushed, everything)
        if (flushed, version, arranged) != (kept.flushed, kept.version, there):
            self.changed.add(kept.id)
            journal.flushed(kept.id, flushed, version, *table.held(version), arranged)
        self._seen.add(kept.id)
        for name in there.keys() - arranged.keys():
            (arrangements_of(self._site, kept) / name).clear()

    @staticmethod
    def _is_newer(table: DeltaFolder, version: int | None) -> bool:
        """Whether the table has commits that the journal does not know. Not asked in an object store: it takes long."""
        return isinstance(table.place, LocalPlace) and table.is_newer(version)

    def _arrange(
        self, journal: Journal, kept: Kept, target: Target, version: int, flushed: int, everything: bool
    ) -> dict[str, int]:
        """Make the arrangements hold what the collection's table holds at a version. Returns their versions by name."""
        there, missing = journal.arranged(kept.id), {one.name for one in target.missing}
        found = {}
        for one in target.arrangements:
            if one.name in there or one.name in missing:
                place = arrangements_of(self._site, kept) / one.name
                base = StoredRun(collection_place(self._site, kept), (), target.schema)
                known = None if one.name in missing else there[one.name]
                if known is not None and flushed == kept.flushed and not everything:
                    found[one.name] = known
                    continue
                if known is None:
                    files = DeltaFolder(base.place, "").files(version)
                    parts = replace(base, files=files).pieces()
                else:
                    pieces = journal.pieces(kept.id, kept.flushed, flushed)
                    files = tuple(piece for piece in pieces if isinstance(piece, StoredFile))
                    entries = [piece for piece in pieces if isinstance(piece, bytes)]
                    updates = decode(entries, target.schema, journal.where, kept.layout)
                    parts = chain(updates, replace(base, files=files).pieces())
                try:
                    at = one.extend(place, (part.not_before(target.since) for part in parts), known, everything,
                                    target.since)  # fmt: skip
                except (HalfjoinError, DeltaError, OSError, pa.ArrowException) as problem:
                    _log.warning("the arrangement %s is dropped, so lookups will be slow: %s", one.key, problem)
                    continue
                if at is not None:
                    found[one.name] = at
        return found

    def close(self) -> None:
        """Wait for the running flush."""
        self.wait()

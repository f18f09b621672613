"""Fetch a collection from disk, as runs: in memory if they fit there, otherwise in their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from halfjoin.engine.arrange.collection import Collection, Loaded
from halfjoin.engine.arrange.memory import INDEXED, Memory
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import loaded_runs
from halfjoin.engine.storage.arranging import arrangements
from halfjoin.engine.storage.copying import Copying
from halfjoin.engine.storage.delta import DeltaFolder
from halfjoin.engine.storage.encoding import decode
from halfjoin.engine.storage.journal import Journal, Kept, app_of
from halfjoin.engine.storage.parquet import StoredFile
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.site import Site, arrangements_of, collection_place
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.errors import StorageError
from halfjoin.planner.plan import ArrangementKey


@dataclass(frozen=True, slots=True)
class Disk:
    """Where updates are: in Delta tables, and in the journal if they are not in a table yet."""

    site: Site
    journal: Journal
    memory: Memory
    copying: Copying

    def fetch(self, number: int, collection: Collection, upper: int, leave: bool) -> Loaded:
        """All updates that a collection has now. With `leave` those in files stay there if they serve all lookups.

        Raises:
            StorageError: a file is missing or damaged.
        """
        with self.journal.snapshot():
            kept, base, pieces = self._look(number, collection)
            versions = self.journal.arranged(number)
            known = self.journal.numbers()
        recent = self._recent(kept, pieces, collection)
        size = base.loaded_bytes + recent.loaded_bytes
        size += INDEXED * len(collection.arrangements) * (len(base) + len(recent))
        left = False
        if not self.memory.recommends(size):
            base = replace(base, arranged=self._arranged(kept, collection, versions))
            self.copying.only(known)
            stored: list[Part] = [run for run in self.copying.of(number, [base, recent]) if len(run)]
        elif leave and all(key.keys and base.serves(key) and recent.serves(key) for key in collection.arrangements):
            self.copying.only(known - {number})
            stored = [run for run in (base, recent) if len(run)]
            left = bool(stored)
        else:
            self.copying.only(known - {number})
            stored = [*loaded_runs(chain(base.pieces(), recent.pieces()), upper)] if len(base) + len(recent) else []
        return Loaded([*stored, *self._in_journal(kept, pieces, collection, upper)], left)

    def left(self, known: Mapping[int, Collection], collection: Collection) -> Sequence[Part] | None:
        """The same, with all files left on disk; None if the collection is not stored or files cannot be linked."""
        number = next((number for number, one in known.items() if one is collection), None)
        if number is None or not isinstance(self.site.place, LocalPlace):
            return None
        with self.journal.snapshot():
            kept, base, pieces = self._look(number, collection)
        parts: list[Part] = [base, self._recent(kept, pieces, collection)]
        return [*(part for part in parts if len(part)), *self._in_journal(kept, pieces, collection, 0)]

    def since(self, kept: Kept, entry: int, collection: Collection, upper: int) -> Sequence[Part]:
        """The updates that the journal has of a collection after an entry."""
        pieces = self.journal.pieces(kept.id, entry)
        recent = self._recent(kept, pieces, collection)
        return [*([recent] if len(recent) else []), *self._in_journal(kept, pieces, collection, upper)]

    def foreign(self) -> dict[tuple[str, str], str]:
        """What somebody else has done to Delta tables, by kind and name. Empty for an object store: there each question
        takes long, so the engine asks it only when it flushes a table."""
        if not isinstance(self.site.place, LocalPlace):
            return {}
        found = {}
        for kept in self.journal.collections():
            table = DeltaFolder(collection_place(self.site, kept), app_of(self.journal, kept.id))
            problem = table.foreign(kept.version)
            if problem is not None:
                found[kept.kind, kept.name] = problem
        return found

    def check_not_ahead(self) -> None:
        """Make sure that no table is ahead of the journal. Not asked in an object store, as `foreign`.

        Raises:
            StorageError: the journal is of an earlier time than a table.
        """
        if isinstance(self.site.place, LocalPlace):
            last = self.journal.entry
            for kept in self.journal.collections():
                table = DeltaFolder(collection_place(self.site, kept), app_of(self.journal, kept.id))
                table.check_not_ahead(kept.version, last)

    def _look(self, number: int, collection: Collection) -> tuple[Kept, StoredRun, Sequence[bytes | StoredFile]]:
        """The collection's entry in the journal, its Delta table, and the pieces that are not in the table yet."""
        kept = next(iter(self.journal.collections(number)))
        place = collection_place(self.site, kept)
        files = DeltaFolder(place, app_of(self.journal, number)).files(kept.version, kept.rows)
        return kept, StoredRun(place, files, collection.schema), self.journal.pieces(number, kept.flushed)

    def _recent(self, kept: Kept, pieces: Sequence[bytes | StoredFile], collection: Collection) -> StoredRun:
        """The files that are not in the Delta table yet, as a run."""
        files = tuple(piece for piece in pieces if isinstance(piece, StoredFile))
        return StoredRun(collection_place(self.site, kept), files, collection.schema)

    def _in_journal(
        self, kept: Kept, pieces: Sequence[bytes | StoredFile], collection: Collection, upper: int
    ) -> Sequence[Part]:
        encoded = [piece for piece in pieces if isinstance(piece, bytes)]
        new = decode(encoded, collection.schema, self.journal.where, kept.layout)
        return loaded_runs((part for part in new if len(part)), upper)

    def _arranged(
        self, kept: Kept, collection: Collection, versions: dict[str, int]
    ) -> dict[ArrangementKey, StoredRun]:
        """The arrangements that exist as the journal knows them. They are only copies, so damaged ones do not count."""
        found = {}
        for one in arrangements(collection):
            place = arrangements_of(self.site, kept) / one.name
            try:
                files = DeltaFolder(place, "").files(versions.get(one.name))
                whole = all(place.size(file.name) == file.size for file in files)
            except (StorageError, OSError):  # for example, the folder may not be read
                continue
            if files and whole:
                found[one.key] = one.run(place, files)
        return found

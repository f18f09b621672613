"""What a collection has on disk, as runs: read into memory where they fit there, left in their files where not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.memory import INDEXED, Memory
from halfjoin.engine.arrange.run import Part, loaded_runs
from halfjoin.engine.storage.arranging import arrangements
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
    """Where the updates are: in Delta tables, and in a journal those that are not there yet."""

    site: Site
    journal: Journal
    memory: Memory

    def fetch(self, number: int, collection: Collection, upper: int) -> Sequence[Part]:
        """A collection's updates, all that there are now.

        Raises:
            StorageError: a file is missing or damaged.
        """
        with self.journal.snapshot():
            kept, base, pieces = self._look(number, collection)
            versions = self.journal.arranged(number)
        recent = self._recent(kept, pieces, collection)
        size = base.loaded_bytes + recent.loaded_bytes
        size += INDEXED * len(collection.arrangements) * (len(base) + len(recent))
        if not self.memory.invites(size):
            base = replace(base, arranged=self._arranged(kept, collection, versions))
            stored: list[Part] = [run for run in (base, recent) if len(run)]
        elif len(base) + len(recent):
            stored = [*loaded_runs(chain(base.pieces(), recent.pieces()), upper)]
        else:
            stored = []
        return [*stored, *self._in_journal(pieces, collection, upper)]

    def left(self, known: Mapping[int, Collection], collection: Collection) -> Sequence[Part] | None:
        """The same with all that is in files left there; None where it is not known yet, or nobody can link to them."""
        number = next((number for number, one in known.items() if one is collection), None)
        if number is None or not isinstance(self.site.place, LocalPlace):
            return None
        with self.journal.snapshot():
            kept, base, pieces = self._look(number, collection)
        parts: list[Part] = [base, self._recent(kept, pieces, collection)]
        return [*(part for part in parts if len(part)), *self._in_journal(pieces, collection, 0)]

    def since(self, kept: Kept, entry: int, collection: Collection, upper: int) -> Sequence[Part]:
        """What the journal has of a collection after an entry."""
        pieces = self.journal.pieces(kept.id, entry)
        recent = self._recent(kept, pieces, collection)
        return [*([recent] if len(recent) else []), *self._in_journal(pieces, collection, upper)]

    def foreign(self) -> dict[tuple[str, str], str]:
        """By kind and name, what somebody else has done to Delta tables. In an object store that is asked of a table
        when it is flushed, as each question takes its time there."""
        if not isinstance(self.site.place, LocalPlace):
            return {}
        found = {}
        for kept in self.journal.kept():
            table = DeltaFolder(collection_place(self.site, kept), app_of(self.journal, kept.id))
            problem = table.foreign(kept.version)
            if problem is not None:
                found[kept.kind, kept.name] = problem
        return found

    def _look(self, number: int, collection: Collection) -> tuple[Kept, StoredRun, Sequence[bytes | StoredFile]]:
        """The collection as the journal knows it, its Delta table, and what is not there yet."""
        kept = next(item for item in self.journal.kept() if item.id == number)
        place = collection_place(self.site, kept)
        files = DeltaFolder(place, app_of(self.journal, number)).files(kept.version, kept.stored)
        return kept, StoredRun(place, files, collection.schema), self.journal.pieces(number, kept.flushed)

    def _recent(self, kept: Kept, pieces: Sequence[bytes | StoredFile], collection: Collection) -> StoredRun:
        """The files that are not in the Delta table yet."""
        files = tuple(piece for piece in pieces if isinstance(piece, StoredFile))
        return StoredRun(collection_place(self.site, kept), files, collection.schema)

    def _in_journal(
        self, pieces: Sequence[bytes | StoredFile], collection: Collection, upper: int
    ) -> Sequence[Part]:
        new = decode([piece for piece in pieces if isinstance(piece, bytes)], collection.schema, self.journal.where)
        return loaded_runs((part for part in new if len(part)), upper)

    def _arranged(
        self, kept: Kept, collection: Collection, versions: dict[str, int]
    ) -> dict[ArrangementKey, StoredRun]:
        """The arrangements that are there as the journal knows them. They are copies: one that is damaged is none."""
        found = {}
        for one in arrangements(collection):
            place = arrangements_of(self.site, kept) / one.name
            try:
                files = DeltaFolder(place, "").files(versions.get(one.name))
            except StorageError:
                continue
            if files and all(place.size(file.name) == file.size for file in files):
                found[one.key] = one.run(place, files)
        return found

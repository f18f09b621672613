"""Write large runs to files in their collection's folder. The journal refers to the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
from deltalake.exceptions import DeltaError

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.storage.encoding import Piece, encode
from halfjoin.engine.storage.folders import Folders
from halfjoin.engine.storage.kinds import sort_columns
from halfjoin.engine.storage.parquet import StoredFile, write
from halfjoin.engine.storage.place import LocalPlace, Place
from halfjoin.engine.storage.scratch import ScratchPlace
from halfjoin.engine.storage.stored_run import StoredRun, stored
from halfjoin.engine.updates.updates import Updates, concat
from halfjoin.errors import HalfjoinError, StorageError

Files: TypeAlias = list[tuple[Place, str]]
BULK_ROWS = 1 << 17  # rows from which a run is kept as files that the journal refers to


@dataclass(slots=True)
class Filing:
    """Puts runs into files of collections, existing or future ones.

    The files of a change that is refused are removed, or a large batch that does not fit on the disk would leave no
    room for smaller ones. Where writing the entry failed, its files stay until the journal has kept something else:
    up to then, a kill might bring the entry back.
    """

    folders: Folders
    _written: Files = field(default_factory=list)  # by the change under way
    _offered: Files = field(default_factory=list)  # to the journal, by the change under way
    _doubtful: Files = field(default_factory=list)  # by changes whose entries failed

    def spill(self, kind: str, name: str, updates: Updates, sort: Sequence[str]) -> StoredRun:
        """Write updates to files of a collection. The files count once the journal refers to them."""
        place = self.folders.claimed(kind, name)
        schema = {column: array.type for column, array in updates.columns.items()}
        try:
            place.make()
            files = []
            for file in write(place, updates, schema, sort):
                self._written.append((place, file.name))
                files.append(file)
            return StoredRun(place, tuple(files), schema)
        except OSError as problem:
            raise StorageError(f"the rows of {name} cannot be written to {place}: {problem}",
                               path=str(place)) from problem

    def filed(self, kind: str, name: str, part: Part, sort: Sequence[str]) -> Part:
        """The part in files: a part in memory is written."""
        return self.spill(kind, name, concat([*part.pieces()]), sort) if part.in_memory else part

    def adopted(self, kind: str, name: str, part: Part) -> Part:
        """The part with its files in the folder of its Delta table. If tasks wrote them, they are linked there, but no
        commit adds them yet."""
        run = stored(part)
        if run is None or not isinstance(run.place, ScratchPlace):
            return part
        place = self.folders.claimed(kind, name)
        try:
            place.make()
            self._written += [(place, file.name) for file in run.files]
            place.link(run.place.path, [file.name for file in run.files])
        except OSError as problem:
            raise StorageError(f"the files of {name} cannot be linked into {place}: {problem}",
                               path=str(place)) from problem
        return StoredRun(place, run.files, run.schema)

    def pieces(
        self, kind: str, name: str, collection: Collection, part: Part, layout: pa.Schema | None = None
    ) -> Iterator[Piece | StoredFile]:
        """A run as the journal keeps it: its updates, or the files in the collection's folder that hold them."""
        if len(part) >= BULK_ROWS:
            part = self.filed(kind, name, part, sort_columns(collection))
        run = stored(part)
        if run is not None:
            yield from run.files
        else:
            for updates in part.pieces():
                yield from encode(updates, layout)

    def first(
        self, kind: str, name: str, collection: Collection, files: dict[tuple[str, str], set[str]]
    ) -> Iterator[Piece | StoredFile]:
        """The first updates of a new collection, as the journal keeps them. Notes the names of their files in `files`.
        """
        noted = files.setdefault((kind, name), set())
        for part in collection.held:
            for piece in self.pieces(kind, name, collection, part):
                if isinstance(piece, StoredFile):
                    noted.add(piece.name)
                yield piece

    def offer(self) -> None:
        """Note that the journal is about to keep the files."""
        self._offered, self._written = [*self._offered, *self._written], []

    def keep(self) -> None:
        """Note that the journal has kept them. The entries that failed before this one cannot come back."""
        self._offered = []
        self._settle()

    def refuse(self) -> None:
        """Remove the files of a change that the journal has not kept."""
        self._remove(self._written)
        self._doubtful, self._offered, self._written = [*self._doubtful, *self._offered], [], []
        if self._doubtful and isinstance(self.folders.site.place, LocalPlace):  # an object store has room
            with suppress(HalfjoinError):  # the next call tries again, and so does the next entry
                journal = self.folders.journal  # an equal value might write nothing over what is left of the entry
                journal.keep(refused=journal.number("refused", 0) + 1)
                self._settle()

    def _settle(self) -> None:
        if self._doubtful:
            self._remove(self._doubtful)
            self._doubtful = []

    @staticmethod
    def _remove(files: Files) -> None:
        for place, name in files:
            with suppress(OSError, DeltaError):  # a merge removes it later
                place.remove(name)

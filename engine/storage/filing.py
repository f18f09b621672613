"""Write large runs to files in their collection's folder. The journal refers to the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.storage.encoding import Piece, encode
from halfjoin.engine.storage.folders import Folders
from halfjoin.engine.storage.kinds import sort_columns
from halfjoin.engine.storage.parquet import StoredFile, write
from halfjoin.engine.storage.scratch import ScratchPlace
from halfjoin.engine.storage.stored_run import StoredRun, stored
from halfjoin.engine.updates.updates import Updates, concat
from halfjoin.errors import StorageError

BULK_ROWS = 1 << 17  # rows from which a run is kept as files that the journal refers to


@dataclass(frozen=True, slots=True)
class Filing:
    """Puts runs into files of collections, existing or future ones."""

    folders: Folders

    def spill(self, kind: str, name: str, updates: Updates, sort: Sequence[str]) -> StoredRun:
        """Write updates to files of a collection. The files count once the journal refers to them."""
        place = self.folders.claimed(kind, name)
        schema = {column: array.type for column, array in updates.columns.items()}
        try:
            place.make()
            return StoredRun(place, tuple(write(place, updates, schema, sort)), schema)
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

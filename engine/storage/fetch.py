"""What a collection has on disk, as runs: read into memory where they fit there, left in their files where not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from halfjoin.engine.memory import Memory
from halfjoin.engine.run import Part, make_run
from halfjoin.engine.storage.delta import DeltaFolder
from halfjoin.engine.storage.encoding import decode
from halfjoin.engine.storage.journal import Journal, Kept
from halfjoin.engine.storage.parquet import StoredFile
from halfjoin.engine.storage.site import Site, place_of
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates import concat


@dataclass(frozen=True, slots=True)
class Disk:
    """Where the updates are: in Delta tables, and in a journal those that are not there yet."""

    site: Site
    journal: Journal
    memory: Memory

    def fetch(self, number: int, schema: Mapping[str, pa.DataType], upper: int) -> Sequence[Part]:
        """A collection's updates, all that there are now.

        Raises:
            StorageError: a file is missing or damaged.
        """
        with self.journal.snapshot():
            kept = next(item for item in self.journal.kept() if item.id == number)
            files = DeltaFolder(place_of(self.site, kept), "").files(kept.version)
            pieces = self.journal.pieces(number, kept.flushed)
        return self._parts(kept, [*files, *pieces], schema, upper)

    def since(self, kept: Kept, entry: int, schema: Mapping[str, pa.DataType], upper: int) -> Sequence[Part]:
        """What the journal has of a collection after an entry."""
        return self._parts(kept, self.journal.pieces(kept.id, entry), schema, upper)

    def _parts(
        self, kept: Kept, pieces: Sequence[bytes | StoredFile], schema: Mapping[str, pa.DataType], upper: int
    ) -> Sequence[Part]:
        """Files first, then what the journal itself has."""
        files = tuple(piece for piece in pieces if isinstance(piece, StoredFile))
        stored = StoredRun(place_of(self.site, kept), files, schema)
        parts: list[Part] = []
        if len(stored) and not self.memory.takes(stored.loaded_bytes):
            parts.append(stored)
        elif len(stored):
            parts.append(make_run(concat(list(stored.pieces())), upper))
        new = decode([piece for piece in pieces if isinstance(piece, bytes)], schema)
        return [*parts, make_run(new, upper)] if len(new) else parts

"""Stored arrangements: the updates of a collection on disk once more, sorted by a key that its own files do not serve.

They are copies. A version counts where the journal says that it holds exactly what the collection's own table holds;
any other is made anew, or cut back to the one that counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

import halfjoin
from halfjoin.engine.codes import codes, is_exact
from halfjoin.engine.collection import Collection
from halfjoin.engine.run import KeyColumns, Part
from halfjoin.engine.storage.delta import DeltaFolder, Layout
from halfjoin.engine.storage.lookup import CODE
from halfjoin.engine.storage.names import folder_name
from halfjoin.engine.storage.parquet import StoredFile, write
from halfjoin.engine.storage.place import Place
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates import Updates
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How the files of an arrangement are made of a collection's updates.

    `coded`: they have a column more, the key's code; unless the key is a column that is its own code.
    """

    key: ArrangementKey
    columns: KeyColumns
    layout: Layout
    coded: bool

    @property
    def name(self) -> str:
        """Of its folder: another for another key, and for another version of halfjoin, which may compute it anew."""
        mark = hashlib.sha256(f"{halfjoin.__version__} {self.key!r}".encode()).hexdigest()
        return f"{folder_name(str(self.key))}-{mark[:12]}"

    def rows(self, updates: Updates) -> Updates:
        """The updates as they are in the files: those that have a key, each once."""
        if not self.coded:
            return updates
        arrays, origins = self.columns(updates)
        found = updates if origins is None else updates.take(origins)
        return found.with_columns({CODE: pa.array(codes(arrays, len(found)))})

    def run(self, place: Place, files: tuple[StoredFile, ...]) -> StoredRun:
        """The files as a run."""
        return StoredRun(place, files, self.layout.schema, coded=self.coded)

    def extend(
        self, place: Place, parts: Iterable[Updates], version: int | None, everything: bool, since: int
    ) -> int | None:
        """Add updates to a version of its table (None: a new one), a part at a time; then merge its files.

        Returns:
            The table's version, None if there is nothing in it.
        """
        if version is None:
            place.clear()
        else:
            place.cut(version)  # what a flush that was cut short had done
        place.make()
        table, layout = DeltaFolder(place, ""), self.layout
        files = [file for part in parts for file in write(place, self.rows(part), layout.schema, layout.sort)]
        at = table.append(None, files, layout, None, version)
        everything |= version is None and len(files) > 1
        return at if at is None else table.merge(layout, since, everything=everything) or at


def arrangements(collection: Collection) -> Iterator[Arrangement]:
    """Those that a collection may have on disk.

    Not what a query needs for a moment, and no keys through table functions: they may be computed by code that is not
    there, and give one row several keys. Lookups by those search through the collection.
    """
    if any(name.lower() == CODE for name in collection.schema):
        return
    for key, shared in collection.arrangements.items():
        if key.keys and key.through is None and any(user.kind != "query" for user in shared.users):
            yield _arrangement(key, shared.columns, collection.schema)


def _arrangement(key: ArrangementKey, columns: KeyColumns, schema: Mapping[str, pa.DataType]) -> Arrangement:
    (first, *more) = key.keys
    if not more and isinstance(first, Column) and is_exact([pa.nulls(0, schema[first.name])]):
        return Arrangement(key, columns, Layout(schema, (first.name,)), False)
    return Arrangement(key, columns, Layout({**schema, CODE: pa.int64()}, (CODE,)), True)


def unserved(parts: Sequence[Part], collection: Collection) -> list[Arrangement]:
    """The arrangements that parts in files do not serve."""
    stored = [part for part in parts if isinstance(part, StoredRun)]
    return [one for one in arrangements(collection) if not all(part.serves(one.key) for part in stored)]

"""Stored arrangements: the updates of a collection on disk once more, sorted by a key that its own files do not serve.

They are copies. A version counts where the journal says that it holds exactly what the collection's own table holds;
any other is made anew, or cut back to the one that counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.run import KeyColumns, Part
from halfjoin.engine.linear.tables import is_built_in
from halfjoin.engine.storage.delta import DeltaFolder, Layout
from halfjoin.engine.storage.lookup import CODE
from halfjoin.engine.storage.names import folder_name
from halfjoin.engine.storage.parquet import StoredFile, write
from halfjoin.engine.storage.place import Place
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes, is_exact
from halfjoin.engine.updates.updates import Updates
from halfjoin.planner.linear import Explode
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column
from halfjoin.version import VERSION

MOST_COPIES = 16  # of a row; more would take more of the disk than lookups are worth
_SAMPLE = 1 << 12  # rows that are asked how many keys they have


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
        mark = hashlib.sha256(f"{VERSION} {self.key!r}".encode()).hexdigest()
        return f"{folder_name(str(self.key))}-{mark[:12]}"

    def rows(self, updates: Updates) -> Iterator[Updates]:
        """The updates as they are in the files, a part at a time: those that have a key, once for each code of theirs
        (several where a table function makes the key)."""
        if not self.coded:
            yield updates
            return
        arrays, origins = self.columns(updates)
        values = codes(arrays, len(updates) if origins is None else len(origins))
        if origins is None:
            yield updates.with_columns({CODE: pa.array(values)})
            return
        order = np.lexsort((values, origins))
        again = np.zeros(len(order), np.bool_)
        again[1:] = (np.diff(values[order]) == 0) & (np.diff(origins[order]) == 0)
        order = order[~again]
        for start in range(0, len(order), limits.READ_ROWS):
            part = order[start : start + limits.READ_ROWS]
            yield updates.take(origins[part]).with_columns({CODE: pa.array(values[part])})

    def copies(self, run: StoredRun) -> float:
        """About how often a row of these files would be in the arrangement, by the first of them."""
        some = next(run.pieces(), None)
        if some is None:
            return 0
        some = some.slice(0, min(len(some), _SAMPLE))
        return sum(map(len, self.rows(some))) / len(some)

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
        files = [file for part in parts for rows in self.rows(part)
                 for file in write(place, rows, layout.schema, layout.sort)]  # fmt: skip
        at = table.append((), files, layout, None, version)
        everything |= version is None and len(files) > 1
        return at if at is None else table.merge(layout, since, at, everything=everything) or at


def arrangements(collection: Collection) -> Iterator[Arrangement]:
    """Those that a collection may have on disk.

    Not what a query needs for a moment, and no keys through a user's table function: its code may be another by now
    than what made the files, or not be there, and might not bear to be called from a thread of ours. Lookups by those
    search through the collection.
    """
    if any(name.lower() == CODE for name in collection.schema):
        return
    for key, shared in collection.arrangements.items():
        if key.keys and _lasts(key) and any(user.kind != "query" for user in shared.users):
            yield _arrangement(key, shared.columns, collection.schema)


def _lasts(key: ArrangementKey) -> bool:
    """Whether the key of a row is the same in every process."""
    steps = () if key.through is None else key.through.steps
    return all(is_built_in(step.function) for step in steps if isinstance(step, Explode))


def _arrangement(key: ArrangementKey, columns: KeyColumns, schema: Mapping[str, pa.DataType]) -> Arrangement:
    (first, *more) = key.keys
    if key.through is None and not more and isinstance(first, Column) and is_exact([pa.nulls(0, schema[first.name])]):
        return Arrangement(key, columns, Layout(schema, (first.name,)), False)
    return Arrangement(key, columns, Layout({**schema, CODE: pa.int64()}, (CODE,)), True)


def unserved(parts: Sequence[Part], collection: Collection) -> list[Arrangement]:
    """The arrangements that parts in files do not serve, and that would not take many times their room on disk."""
    stored = [part for part in parts if isinstance(part, StoredRun)]
    found = [one for one in arrangements(collection) if not all(part.serves(one.key) for part in stored)]
    return [one for one in found if one.key.through is None or all(one.copies(run) <= MOST_COPIES for run in stored)]

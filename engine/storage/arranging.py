"""Keep arrangements on disk: a collection's updates once more, sorted by a key that its own files do not serve.

They are copies. A version counts if the journal says that it holds exactly what the collection's own table holds. Any
other version is made anew, or cut back to the one that counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.index import KeyColumns
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.linear.tables import is_built_in
from halfjoin.engine.storage.delta import DeltaFolder, Layout
from halfjoin.engine.storage.lookup import CODE
from halfjoin.engine.storage.names import folder_name
from halfjoin.engine.storage.parquet import StoredFile, write
from halfjoin.engine.storage.place import Place
from halfjoin.engine.storage.stored_run import StoredRun, stored
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes, is_exact
from halfjoin.engine.updates.updates import Updates
from halfjoin.planner.linear import Explode
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column
from halfjoin.version import VERSION

MOST_COPIES = 16  # copies of a row; more would take more disk space than the lookups are worth
_SAMPLE = 1 << 12  # rows in the sample that estimates the copies


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How an arrangement's files are made from a collection's updates.

    `coded`: the files have an additional column, the key's code. A key that is one column may be its own code.
    """

    key: ArrangementKey
    columns: KeyColumns
    layout: Layout
    coded: bool

    @property
    def name(self) -> str:
        """The name of its folder. It depends on the key and on the version of halfjoin, whose codes may differ."""
        mark = hashlib.sha256(f"{VERSION} {self.key!r}".encode()).hexdigest()
        return f"{folder_name(str(self.key))}-{mark[:12]}"

    def rows(self, updates: Updates) -> Iterator[Updates]:
        """The updates as they are in the files, a part at a time. Each is there once per code of its keys: not at all
        without a key, several times if a table function makes several keys."""
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
        """About how often the arrangement would have a row of this run, estimated from the first rows."""
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
        """Add updates to a version of its table (None: to a new table), a part at a time. Then merge the files.

        Returns:
            The table's version, None if the table is empty.
        """
        if version is None:
            place.clear()
        else:
            place.cut(version)  # remove the commits of a flush that was cut short
        place.make()
        table, layout = DeltaFolder(place, ""), self.layout
        files = [file for part in parts for rows in self.rows(part)
                 for file in write(place, rows, layout.schema, layout.sort)]  # fmt: skip
        at = table.append((), files, layout, None, version)
        everything |= version is None and len(files) > 1
        return at if at is None else table.merge(layout, since, at, everything=everything) or at


def arrangements(collection: Collection) -> Iterator[Arrangement]:
    """The arrangements that a collection may have on disk.

    Two kinds are left out, and their lookups search through the collection. A query needs its arrangements only for a
    moment. A key through a user's table function may change: its code may differ from the code that made the files, or
    be missing, and it may not be safe to call from our thread.
    """
    if any(name.lower() == CODE for name in collection.schema):
        return
    for key, shared in collection.arrangements.items():
        if key.keys and _lasts(key) and any(user.kind != "query" for user in shared.users):
            yield _arrangement(key, shared.columns, collection.schema)


def _lasts(key: ArrangementKey) -> bool:
    """Whether the key of a row is the same in every process."""
    steps = () if key.through is None else key.through.steps
    return all(is_built_in(name) for step in steps if isinstance(step, Explode) for name in step.functions)


def _arrangement(key: ArrangementKey, columns: KeyColumns, schema: Mapping[str, pa.DataType]) -> Arrangement:
    (first, *more) = key.keys
    if key.through is None and not more and isinstance(first, Column) and is_exact([pa.nulls(0, schema[first.name])]):
        return Arrangement(key, columns, Layout(schema, (first.name,)), False)
    return Arrangement(key, columns, Layout({**schema, CODE: pa.int64()}, (CODE,)), True)


def unserved(parts: Sequence[Part], collection: Collection) -> list[Arrangement]:
    """The arrangements that the parts in files do not serve, without those that would take too much disk space."""
    runs = [run for part in parts if (run := stored(part)) is not None]
    found = [one for one in arrangements(collection) if not all(run.serves(one.key) for run in runs)]
    return [one for one in found if one.key.through is None or all(one.copies(run) <= MOST_COPIES for run in runs)]

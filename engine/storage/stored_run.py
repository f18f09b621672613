"""A run whose rows stay in Parquet files: what is looked up is read, what cannot be there is left out by statistics."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.netting import together
from halfjoin.engine.arrange.run import KeyColumns, Run
from halfjoin.engine.storage.lookup import KeySearch, key_reads, lookup
from halfjoin.engine.storage.parquet import StoredFile
from halfjoin.engine.storage.parquet_reader import opened
from halfjoin.engine.storage.place import Place
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, TIME, Updates, concat, constant, empty, product
from halfjoin.errors import StorageError
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column

SEARCHED_ROWS = 1 << 16  # fewer are searched through faster than an arrangement of them is kept up to date

_log = logging.getLogger("halfjoin")


@dataclass(frozen=True, slots=True)
class StoredRun:
    """Updates in files that never change: those of a version of a Delta table, or of a batch that is not in it yet.

    A lookup reads the row groups whose statistics allow for one of the keys, and keeps the rows that have one; so it
    costs little where the files are sorted by a column of the key. Where they are not, `arranged` may have the same
    updates in files that are.
    """

    place: Place
    files: tuple[StoredFile, ...]
    schema: Mapping[str, pa.DataType]
    arranged: Mapping[ArrangementKey, StoredRun] = field(default_factory=dict)
    coded: bool = False  # whether the files have the code of a key, and are sorted by it

    def __len__(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def latest(self) -> int:
        """The last of the times."""
        return max((file.latest for file in self.files), default=MINIMUM)

    @property
    def loaded_bytes(self) -> int:
        """About what the rows would hold in memory."""
        return sum(opened(self.place, file.name).loaded_bytes(self.schema) for file in self.files)

    @property
    def row_bytes(self) -> int:
        """No rows are in memory."""
        return 0

    @property
    def index_bytes(self) -> int:
        """No indexes are in memory."""
        return 0

    @property
    def stored(self) -> tuple[int, int]:
        """Files in which the rows stay, and their bytes, those of arrangements included."""
        runs = [self, *self.arranged.values()]
        return sum(len(run.files) for run in runs), sum(file.size for run in runs for file in run.files)

    def closed(self, upper: int) -> StoredRun:
        """Files know their times."""
        return self

    def closing(self, low: int, high: int) -> Updates:
        """The updates with times in `[low, high)`."""
        found = list(self.pieces(low, high))
        return concat(found) if found else empty(self.schema)

    def pieces(
        self, low: int = MINIMUM, high: int = MAXIMUM, names: Iterable[str] | None = None
    ) -> Iterator[Updates]:
        """The updates with times in `[low, high)`, some row groups at a time, with these columns (all)."""
        everything = low == MINIMUM and high == MAXIMUM
        schema = self.schema if names is None else {name: self.schema[name] for name in dict.fromkeys(names)}
        for file in self.files:
            if file.latest < low:
                continue
            source = opened(self.place, file.name)
            groups = np.ones(source.groups, np.bool_)
            if not everything:
                bounds = source.bounds(TIME, pa.int64())
                if bounds is not None:
                    groups = (bounds[1] >= low) & (bounds[0] < high)
            for updates in source.read(groups, schema, limits.READ_ROWS):
                found = updates if everything else updates.filter((low <= updates.time) & (updates.time < high))
                if len(found):
                    yield found

    def present(self, closed: int, names: Iterable[str] | None = None) -> Iterator[Updates]:
        """The updates, added up as far as they are read together."""
        for updates in self.pieces(names=names):
            sums = together(updates, closed) if closed > MINIMUM else None
            found = updates if sums is None else updates.take(sums[0])
            if len(found):
                yield found if sums is None else Updates(found.columns, found.time, sums[1])

    def narrowed(
        self, key: ArrangementKey, columns: KeyColumns, keys: Sequence[pa.Array], names: Iterable[str]
    ) -> Iterator[Run]:
        """The updates that have one of these keys, or one of the same code, about `limits.READ_ROWS` at a time."""
        sought = lookup(key, columns, keys)
        wanted = list(dict.fromkeys([*names, *key_reads(key, self.schema)]))
        arranged, given = self.arranged.get(key), 0
        if arranged is not None:
            try:
                for updates in arranged._found(sought, wanted):
                    yield Run(updates)
                    given += 1
                return
            except StorageError as problem:  # it is a copy, and the rows themselves are here
                _log.warning("an arrangement on disk cannot be used, which makes lookups slow: %s", problem)
            for updates in islice(arranged._found(sought, wanted), given):  # take back what it gave before it failed
                yield Run(Updates(updates.columns, updates.time, product(updates.diff, constant(-1, len(updates)))))
        for updates in self._found(sought, wanted):
            yield Run(updates)

    def _found(self, sought: KeySearch, names: Sequence[str]) -> Iterator[Updates]:
        """These columns of the updates that are looked for, about `limits.READ_ROWS` at a time."""
        found, rows = list[Updates](), 0
        for file in self.files:
            for updates in sought.find(opened(self.place, file.name), self.schema, names, self.coded, limits.READ_ROWS):
                found.append(updates)
                rows += len(updates)
                if rows >= limits.READ_ROWS:
                    yield concat(found).select(names)
                    found, rows = [], 0
        if found:
            yield concat(found).select(names)

    def serves(self, key: ArrangementKey) -> bool:
        """Whether lookups by a key read little: a column of it ascends in each file, or there is an arrangement, or
        the rows are few."""
        if not key.keys or key in self.arranged or len(self) < SEARCHED_ROWS:
            return True
        names = [expr.name for expr in key.keys if isinstance(expr, Column)] if key.through is None else []
        sources = [opened(self.place, file.name) for file in self.files] if names else []
        return any(all(source.ascends(name, self.schema[name]) for source in sources) for name in names)

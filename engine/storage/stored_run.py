"""A run whose rows stay in Parquet files. A lookup reads only the row groups that may hold its keys, by statistics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.index import Footprint, KeyColumns
from halfjoin.engine.arrange.netting import together
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.partial import RowFilter
from halfjoin.engine.arrange.run import Run, loaded_runs
from halfjoin.engine.scalar.ends import Ends, Sieve
from halfjoin.engine.storage.lookup import KeySearch, key_reads, lookup
from halfjoin.engine.storage.lots import Footers, Opening
from halfjoin.engine.storage.mapped import Copies
from halfjoin.engine.storage.parquet import StoredFile
from halfjoin.engine.storage.parquet_reader import OpenFile, opened
from halfjoin.engine.storage.place import Place
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, TIME, Ints, Updates, concat, constant, empty, product
from halfjoin.errors import StorageError
from halfjoin.planner.plan import ArrangementKey
from halfjoin.planner.wants import ALL, Wants
from halfjoin.sql.expr import Column

SEARCHED_ROWS = 1 << 16  # fewer rows have no arrangement on disk: it costs less to search through them

_log = logging.getLogger("halfjoin")


@dataclass(frozen=True, slots=True)
class StoredRun:
    """Updates in files that never change: the files of a Delta table's version, or of a batch not yet in the table.

    A lookup reads the row groups whose statistics admit one of the keys, and keeps the rows that have one. So it costs
    little if a column of the key sorts the files. If none does, `arranged` may have the same updates in files that the
    key sorts.
    """

    in_memory: ClassVar[bool] = False
    place: Place
    files: tuple[StoredFile, ...]
    schema: Mapping[str, pa.DataType]
    arranged: Mapping[ArrangementKey, StoredRun] = field(default_factory=dict)
    coded: bool = False  # whether the files have the column of a key's codes, and are sorted by it
    copies: Copies = field(default_factory=Copies, compare=False)
    sieve: Sieve | None = field(default=None, compare=False)  # of a query: what reads all rows needs those that pass it
    opening: Opening = field(default_factory=Opening, init=False, compare=False, repr=False)

    def __len__(self) -> int:
        return sum(file.rows for file in self.files)

    def loaded(self, upper: int) -> Sequence[Run]:
        """The rows, read into memory, in as few runs as possible."""
        return loaded_runs(self.pieces(), upper)

    @property
    def decoded(self) -> int:
        """The rows that lookups have read so far. Includes those of arrangements."""
        runs = [self, *self.arranged.values()]
        return sum(opened(run.place, file.name).decoded for run in runs for file in run.files)

    def build(
        self, key: ArrangementKey, columns: KeyColumns, wants: Wants = ALL, begins: int = MINIMUM
    ) -> None:
        """Do nothing: there is no index in memory. Arrangements on disk come with the files."""

    def serve(self, filters: Mapping[ArrangementKey, RowFilter]) -> None:
        """Do nothing: there is no index in memory."""

    def alone(self) -> StoredRun:
        """This part itself."""
        return self

    @property
    def hidden(self) -> int:
        """None in memory."""
        return 0

    def lacks(self, key: ArrangementKey) -> bool:
        """False: there is no index in memory to make."""
        return False

    def among(self, key: ArrangementKey, columns: KeyColumns, keys: list[pa.Array]) -> StoredRun:
        """The same part: it has no index in memory."""
        return self

    def sifted(self, sieve: Sieve) -> Sequence[StoredRun]:
        """The same files; what reads all rows passes over row groups without rows that pass."""
        return (replace(self, sieve=sieve),)

    def apart(self) -> StoredRun:
        """The same part: it has no index in memory."""
        return self

    def drop(self, key: ArrangementKey) -> None:
        """Do nothing: there is no index in memory. The next flush drops arrangements on disk."""

    def footprint(self, key: ArrangementKey) -> Footprint:
        """The files of an arrangement, if it is on disk."""
        found = self.arranged.get(key)
        return Footprint() if found is None else Footprint(0, 0, *found.stored)

    @property
    def earliest(self) -> int:
        """The least possible time, because the earliest is not known without reading files."""
        return MINIMUM

    @property
    def latest(self) -> int:
        """The last of the times."""
        return max((file.latest for file in self.files), default=MINIMUM)

    @property
    def loaded_bytes(self) -> int:
        """About the bytes that the rows would take in memory."""
        return sum(opened(self.place, file.name).loaded_bytes(self.schema) for file in self.files)

    @property
    def row_bytes(self) -> int:
        """0: no rows are in memory."""
        return 0

    @property
    def index_bytes(self) -> int:
        """0: no indexes are in memory."""
        return 0

    @property
    def stored(self) -> tuple[int, int]:
        """The number of files, and their bytes. Includes the files of arrangements."""
        runs = [self, *self.arranged.values()]
        return sum(len(run.files) for run in runs), sum(file.size for run in runs for file in run.files)

    def closed(self, upper: int) -> StoredRun:
        """Itself: files know their times."""
        return self

    def closes(self, low: int, high: int) -> bool:
        """Whether `closing` may give updates."""
        return any(file.latest >= low for file in self.files)

    def closing(self, low: int, high: int) -> Updates:
        """The updates with times in `[low, high)`."""
        found = list(self.pieces(low, high))
        return concat(found) if found else empty(self.schema)

    def pieces(
        self, low: int = MINIMUM, high: int = MAXIMUM, names: Iterable[str] | None = None
    ) -> Iterator[Updates]:
        """The updates with times in `[low, high)`, some row groups at a time, with the columns `names` (None: all)."""
        everything = low == MINIMUM and high == MAXIMUM
        schema = self.schema if names is None else {name: self.schema[name] for name in dict.fromkeys(names)}
        for file in self.files:
            if file.latest < low:
                continue
            source = opened(self.place, file.name)
            passing = None if self.sieve is None else self.sieve(partial(self._ends, source))
            groups = np.ones(source.groups, np.bool_) if passing is None else passing
            if not everything:
                bounds = source.bounds(TIME, pa.int64())
                if bounds is not None:
                    groups = groups & (bounds[1] >= low) & (bounds[0] < high)
            for updates in source.read(groups, schema, limits.READ_ROWS):
                found = updates if everything else updates.filter((low <= updates.time) & (updates.time < high))
                if len(found):
                    yield found

    def _ends(self, source: OpenFile, name: str) -> Ends | None:
        """The ends of a column in the row groups of a file."""
        return source.ends(name, self.schema[name])

    def present(
        self, closed: int, names: Iterable[str] | None = None, choose: Callable[[Run], Ints] | None = None
    ) -> Iterator[Updates]:
        """The updates with these columns. Those read together are added up, if they are closed."""
        for updates in self.pieces(names=names):
            sums = together(updates, closed) if closed > MINIMUM else None
            found = updates if sums is None else updates.take(sums[0])
            if len(found):
                yield found if sums is None else Updates(found.columns, found.time, sums[1])

    def narrowed(
        self, key: ArrangementKey, columns: KeyColumns, keys: Sequence[pa.Array], names: Iterable[str]
    ) -> Iterator[Run]:
        """The updates with one of these keys, or with a key of the same code, about `limits.READ_ROWS` at a time."""
        sought = lookup(key, columns, keys)
        wanted = list(dict.fromkeys([*names, *key_reads(key, self.schema)]))
        arranged, given = self.arranged.get(key), 0
        if arranged is not None:
            try:
                for updates in arranged._found(sought, wanted):
                    yield Run(updates)
                    given += len(updates)
                return
            except StorageError as problem:  # the arrangement is a copy, so the rows are here, too
                _log.warning("an arrangement on disk cannot be used, so lookups will be slow: %s", problem)
            for updates in arranged._first(given, sought, wanted):  # take back what it gave before it failed
                yield Run(Updates(updates.columns, updates.time, product(updates.diff, constant(-1, len(updates)))))
        for updates in self._found(sought, wanted):
            yield Run(updates)

    def _found(self, sought: KeySearch, names: Sequence[str]) -> Iterator[Updates]:
        """These columns of the updates that a search finds, about `limits.READ_ROWS` at a time."""
        found, rows = list[Updates](), 0
        for updates in self._in_files(sought, names):
            found.append(updates)
            rows += len(updates)
            if rows >= limits.READ_ROWS:
                yield concat(found).select(names)
                found, rows = [], 0
        if found:
            yield concat(found).select(names)

    def _first(self, count: int, sought: KeySearch, names: Sequence[str]) -> Iterator[Updates]:
        """The first rows that a search gives. Copies give the same rows in the same order, perhaps in other parts."""
        parts = self._in_files(sought, names) if count else iter(())
        for updates in parts:
            yield updates.slice(0, min(count, len(updates))).select(names)
            count -= len(updates)
            if count <= 0:
                return

    def _in_files(self, sought: KeySearch, names: Sequence[str]) -> Iterator[Updates]:
        """The same, one file after the other, or one lot of files, if the lot has a mapped copy."""
        footers, most = self._footers(), limits.READ_ROWS
        possible, serves = sought.possible(footers, self.schema, self.coded), self.coded or self.serves(sought.key)
        for lot, first in footers.lots:
            numbers = np.flatnonzero(possible[first : first + len(lot.sources)])
            if not len(numbers):
                continue
            copy, rows = self.copies.of(lot), None
            if not serves and sought.key.through is None:
                index = self.copies.index(lot, sought.key, partial(sought.index, lot, self.schema))
                rows = None if index is None else sought.rows(index)
            if copy is not None:
                yield from sought.find_mapped(copy, names, self.coded, most, rows)
                continue
            if rows is not None:
                for source, some in lot.split(rows):
                    yield from sought.find_rows(source, self.schema, names, some, most)
            else:
                for number in numbers.tolist():
                    yield from sought.find(lot.sources[number], self.schema, names, self.coded, most)
            self.copies.looked_up(lot, self.schema)

    def _footers(self) -> Footers:
        return self.opening(self.place, self.files, self.schema)

    def serves(self, key: ArrangementKey) -> bool:
        """Whether lookups by a key read little: a column of the key ascends in each file, or an arrangement is on disk,
        or there are few rows."""
        if not key.keys or key in self.arranged or len(self) < SEARCHED_ROWS:
            return True
        names = [expr.name for expr in key.keys if isinstance(expr, Column)] if key.through is None else []
        return any(self._footers().ascends(name, self.schema[name]) for name in names)


def stored(part: Part) -> StoredRun | None:
    """The part as a run in files, None if its rows are in memory. Only this function knows the class of a part."""
    return part if isinstance(part, StoredRun) else None

"""A run whose rows stay in Parquet files: what is looked up is read, what cannot be there is left out by statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from halfjoin.engine.codes import codes, is_exact
from halfjoin.engine.run import KeyColumns, Run
from halfjoin.engine.storage.parquet import StoredFile
from halfjoin.engine.storage.parquet_reader import Bounds, opened
from halfjoin.engine.storage.place import Place
from halfjoin.engine.updates import MAXIMUM, MINIMUM, TIME, Ints, Mask, Updates, concat, empty
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column, columns_of

READ_ROWS = 1 << 18  # of files, that are in memory at a time


@dataclass(frozen=True, slots=True)
class StoredRun:
    """Updates in files that never change: those of a version of a Delta table, or of a batch that is not in it yet.

    A lookup reads the row groups whose statistics allow for one of the keys, and keeps the rows that have one; so it
    costs little where the files are sorted by the key, or by a column of it.
    """

    place: Place
    files: tuple[StoredFile, ...]
    schema: Mapping[str, pa.DataType]

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

    def close(self, upper: int) -> None:
        """Files know their times."""

    def closing(self, low: int, high: int) -> Updates:
        """The updates with times in `[low, high)`."""
        found = list(self.pieces(low, high))
        return concat(found) if found else empty(self.schema)

    def pieces(self, low: int = MINIMUM, high: int = MAXIMUM) -> Iterator[Updates]:
        """The updates with times in `[low, high)`, some row groups at a time."""
        everything = low == MINIMUM and high == MAXIMUM
        for file in self.files:
            if file.latest < low:
                continue
            source = opened(self.place, file.name)
            groups = np.ones(source.groups, np.bool_)
            if not everything:
                bounds = source.bounds(TIME, pa.int64())
                if bounds is not None:
                    groups = (bounds[1] >= low) & (bounds[0] < high)
            for updates in source.read(groups, self.schema, READ_ROWS):
                found = updates if everything else updates.filter((low <= updates.time) & (updates.time < high))
                if len(found):
                    yield found

    def narrowed(
        self, key: ArrangementKey, columns: KeyColumns, keys: Sequence[pa.Array], names: Iterable[str]
    ) -> Run:
        """The updates that have one of these keys, or one of the same code."""
        probes = np.unique(codes(keys, len(keys[0])))
        wanted = dict.fromkeys([*names, *_reads(key, self.schema)])
        schema = {name: self.schema[name] for name in wanted}
        found = [empty(schema)]
        for file in self.files:
            source = opened(self.place, file.name)
            groups = np.ones(source.groups, np.bool_)
            for expr, array in zip(key.keys, keys, strict=True):
                if key.through is None and isinstance(expr, Column):
                    groups &= _possible(source.bounds(expr.name, self.schema[expr.name]), array)
            read = source.read(groups, schema, READ_ROWS)
            found.extend(updates.take(_hits(updates, columns, probes)) for updates in read)
        return Run(concat(found))


def _reads(key: ArrangementKey, schema: Mapping[str, pa.DataType]) -> list[str]:
    """The collection's columns that an arrangement's keys are computed from."""
    if key.through is not None:
        return list(schema)
    return sorted({name for expr in key.keys for name in columns_of(expr)})


def _hits(updates: Updates, columns: KeyColumns, probes: Ints) -> Ints:
    """The rows that have an entry with one of the codes (sorted, each once)."""
    arrays, origins = columns(updates)
    entries = codes(arrays, len(updates) if origins is None else len(origins))
    found = np.minimum(np.searchsorted(probes, entries), len(probes) - 1)
    rows = np.flatnonzero(probes[found] == entries)
    return rows if origins is None else np.unique(origins[rows])


def _possible(bounds: Bounds | None, probes: pa.Array) -> Mask | bool:
    """The row groups that may hold one of the values; all where nothing is known of them."""
    if bounds is None or not is_exact([probes.drop_null()]):
        return True
    least, greatest, nulls = bounds
    values = np.unique(codes([probes.drop_null()], len(probes) - probes.null_count))
    mask: Mask = np.searchsorted(values, least, "left") < np.searchsorted(values, greatest, "right")
    return mask | nulls if probes.null_count else mask

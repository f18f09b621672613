"""Parquet files of updates, read: whole, or the row groups whose statistics allow for what is looked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from halfjoin.engine.codes import codes, is_exact
from halfjoin.engine.storage.encoding import from_table
from halfjoin.engine.storage.parquet import file_type
from halfjoin.engine.storage.place import Place
from halfjoin.engine.updates import DIFF, TIME, Ints, Mask, Updates
from halfjoin.sql.errors import StorageError

_OPEN_FILES = 256

Bounds = tuple[Ints, Ints, Mask]


class Source:
    """An open file, with what its footer says. Files never change, so neither does that."""

    def __init__(self, place: Place, name: str) -> None:
        self._where = f"{place}/{name}"
        self._file = pq.ParquetFile(place.open(name), coerce_int96_timestamp_unit="us")
        self._rows = np.array([self._file.metadata.row_group(i).num_rows for i in range(self.groups)], np.int64)
        self._bounds: dict[str, Bounds | None] = {}

    @property
    def groups(self) -> int:
        """The number of row groups."""
        return int(self._file.metadata.num_row_groups)

    def loaded_bytes(self, schema: Mapping[str, pa.DataType]) -> int:
        """About what the updates would hold in memory; texts count as what they take before compression."""
        fixed = sum(kind.bit_width / 8 if _is_fixed(kind) else 4 for kind in (*schema.values(), pa.int64(), pa.int64()))
        metadata = self._file.metadata
        wide = {name for name, kind in schema.items() if not _is_fixed(kind)}
        texts = [i for i in range(metadata.num_columns) if metadata.schema.column(i).path.split(".")[0] in wide]
        inside = sum(metadata.row_group(g).column(i).total_uncompressed_size for g in range(self.groups) for i in texts)
        return int(fixed * int(self._rows.sum())) + int(inside)

    def bounds(self, name: str, kind: pa.DataType) -> Bounds | None:
        """Of each row group the least and greatest code of a column, and whether NULLs may be in it.

        None where the column's values are not their codes (see `codes.is_exact`), or nothing is known of them.
        """
        if name not in self._bounds:
            self._bounds[name] = self._found_bounds(name, kind)
        return self._bounds[name]

    def _found_bounds(self, name: str, kind: pa.DataType) -> Bounds | None:
        if not is_exact([pa.nulls(0, kind)]):
            return None
        metadata = self._file.metadata
        number = next(i for i in range(metadata.num_columns) if metadata.schema.column(i).path == name)
        found = [metadata.row_group(i).column(number).statistics for i in range(self.groups)]
        if not all(s is not None and (s.has_min_max or s.null_count == s.num_values + s.null_count) for s in found):
            return None
        least, greatest = ([s.min if side == 0 else s.max for s in found] for side in (0, 1))
        empty = np.array([not s.has_min_max for s in found], np.bool_)
        low, high = (codes([pa.array(values, file_type(kind))], len(found)) for values in (least, greatest))
        low, high = np.where(empty, 1, low), np.where(empty, 0, high)
        nulls = np.array([not s.has_null_count or s.null_count > 0 for s in found], np.bool_)
        return low, high, nulls

    def read(self, groups: Mask, schema: Mapping[str, pa.DataType], most: int) -> Iterator[Updates]:
        """These columns of the updates in some row groups, about `most` rows at a time.

        Raises:
            StorageError: the file is damaged.
        """
        chosen = np.flatnonzero(groups)
        if not len(chosen):
            return
        steps = np.cumsum(self._rows[chosen]) // max(most, 1)
        for part in np.split(chosen, np.flatnonzero(np.diff(steps)) + 1):
            try:
                table = self._file.read_row_groups(part.tolist(), columns=[*schema, TIME, DIFF])
            except (OSError, pa.ArrowException) as problem:
                raise StorageError(f"{self._where} cannot be read: {problem}") from problem
            yield from_table(table, schema)


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind))


def opened(place: Place, name: str) -> Source:
    """A file of a table's folder, which stays open for the next lookup.

    Raises:
        StorageError: it is missing or damaged.
    """
    try:
        return _opened(place, name)
    except (OSError, pa.ArrowException) as problem:
        raise StorageError(f"{place}/{name} cannot be read: {problem}") from problem


@lru_cache(maxsize=_OPEN_FILES)
def _opened(place: Place, name: str) -> Source:
    return Source(place, name)

"""Read Parquet files of updates: whole, or only the row groups whose statistics admit the wanted values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from halfjoin.engine.scalar.ends import Ends
from halfjoin.engine.storage.damage import naming
from halfjoin.engine.storage.encoding import one_chunk
from halfjoin.engine.storage.open_files import OPEN, Opened, Recent, read
from halfjoin.engine.storage.parquet import LOADED_BYTES
from halfjoin.engine.storage.place import Place
from halfjoin.engine.updates.codes import is_exact
from halfjoin.engine.updates.updates import DIFF, TIME, Ints, Mask, Updates, constant

_KNOWN_FILES = 1 << 13  # a lookup needs only a fraction of a file's footer
_THREADED = 512  # column chunks. From this number on it pays to decode in several threads

_EXACT = ("BOOLEAN", "INT32", "INT64")  # the stored types of columns whose values are their codes

Bounds = tuple[Ints, Ints, Mask]


class OpenFile:
    """A file and the content of its footer. Files never change, so the content does not change either."""

    def __init__(self, place: Place, name: str) -> None:
        self._place, self._name = place, name
        metadata = self._metadata
        self.groups = int(metadata.num_row_groups)
        self.group_rows = np.array([metadata.row_group(i).num_rows for i in range(self.groups)], np.int64)
        self.rows = int(self.group_rows.sum())
        self._loaded_bytes: bytes | None = (metadata.metadata or {}).get(LOADED_BYTES)
        self.decoded = 0  # rows that lookups have decoded so far, however many of their columns
        self._bounds: dict[str, Bounds | None] = {}
        self._text_bounds: dict[str, tuple[Any, Any, Mask]] = {}

    @property
    def _opened(self) -> Opened:
        with self._naming():
            return OPEN.of(self._place, self._name)

    @property
    def _metadata(self) -> pq.FileMetaData:
        return self._opened.file.metadata

    def _naming(self) -> AbstractContextManager[None]:
        return naming(f"{self._place}/{self._name}")

    def loaded_bytes(self, schema: Mapping[str, pa.DataType]) -> int:
        """About the bytes of the updates in memory. In files by others, texts count with their encoded size."""
        if self._loaded_bytes is not None:
            with self._naming():
                return int(self._loaded_bytes)
        metadata = self._metadata
        fixed = sum(kind.bit_width / 8 if _is_fixed(kind) else 4 for kind in (*schema.values(), pa.int64(), pa.int64()))
        wide = {name for name, kind in schema.items() if not _is_fixed(kind)}
        texts = [i for i in range(metadata.num_columns) if metadata.schema.column(i).path.split(".")[0] in wide]
        inside = sum(metadata.row_group(g).column(i).total_uncompressed_size for g in range(self.groups) for i in texts)
        return int(fixed * self.rows) + int(inside)

    def bounds(self, name: str, kind: pa.DataType) -> Bounds | None:
        """For each row group the least and greatest code of a column, and whether the column may have NULLs.

        None if the column's values are not their codes (see `codes.is_exact`), or if statistics are missing.
        """
        if name not in self._bounds:
            with self._naming():
                self._bounds[name] = self._found_bounds(name, kind)
        return self._bounds[name]

    def _found_bounds(self, name: str, kind: pa.DataType) -> Bounds | None:
        if not is_exact([pa.nulls(0, kind)]):
            return None
        found = self._statistics(name)
        if not all(s is not None and s.physical_type in _EXACT and (s.has_min_max or not s.num_values) for s in found):
            return None
        # The raw numbers, which are the codes: Python has no dates for years beyond 9999.
        low = np.array([s.min_raw if s.has_min_max else 1 for s in found], np.int64)
        high = np.array([s.max_raw if s.has_min_max else 0 for s in found], np.int64)
        nulls = np.array([not s.has_null_count or s.null_count > 0 for s in found], np.bool_)
        return low, high, nulls

    def ends(self, name: str, kind: pa.DataType) -> Ends | None:
        """The least and the greatest value of a column in each row group. None: they are not known."""
        if pa.types.is_string(kind):
            texts = self.texts(name)
            return None if texts is None else Ends(*(pa.array(side.tolist(), kind) for side in texts))
        bounds = None if pa.types.is_boolean(kind) else self.bounds(name, kind)
        if bounds is None:
            return None
        low, high, _ = bounds
        return Ends(*(pa.array(side.astype(f"i{kind.bit_width // 8}"), mask=low > high).view(kind)
                      for side in (low, high)))  # fmt: skip

    def _statistics(self, name: str) -> list[Any]:
        metadata = self._metadata
        number = [metadata.schema.column(i).path for i in range(metadata.num_columns)].index(name)
        return [metadata.row_group(i).column(number).statistics for i in range(self.groups)]

    def between(self, name: str, low: str, high: str) -> Mask:
        """The row groups in which a column of texts may have a value from `low` to `high`, in the order of bytes."""
        least, greatest, known = self._texts(name)
        # In arrays, because numpy cuts trailing NULs off a single text.
        meets = (least <= np.array([high], object)) & (greatest >= np.array([low], object))
        mask: Mask = meets.astype(np.bool_) | ~known
        return mask

    def texts(self, name: str) -> tuple[Any, Any] | None:
        """For each row group the least and greatest value of a column of texts. None unless all are known."""
        least, greatest, known = self._texts(name)
        return (least, greatest) if known.all() else None

    def _texts(self, name: str) -> tuple[Any, Any, Mask]:
        """The same, and whether each is known. Kept, because every lookup by a text needs them."""
        if name not in self._text_bounds:
            with self._naming():
                found = self._statistics(name)
            known = np.array([s is not None and s.has_min_max for s in found], np.bool_)
            ends = [(s.min, s.max) if known[i] else ("", "") for i, s in enumerate(found)]
            least, greatest = (np.array([end[side] for end in ends], object) for side in (0, 1))
            self._text_bounds[name] = least, greatest, known
        return self._text_bounds[name]

    def ascends(self, name: str, kind: pa.DataType) -> bool:
        """Whether the values of a column never descend from one row group to the next."""
        bounds = self.bounds(name, kind)
        if bounds is None:
            return self.groups == 1
        least, greatest = (side[bounds[0] <= bounds[1]] for side in bounds[:2])
        return bool((least[1:] >= greatest[:-1]).all())

    def read(self, groups: Mask, schema: Mapping[str, pa.DataType], most: int) -> Iterator[Updates]:
        """These columns of the updates in some row groups, about `most` rows at a time.

        Raises:
            StorageError: the file is damaged.
        """
        for part in self.parts(groups, most):
            yield self.updates(part, schema)

    def parts(self, groups: Mask, most: int) -> Iterator[Ints]:
        """The numbers of some row groups, in parts of about `most` rows."""
        chosen = np.flatnonzero(groups)
        if len(chosen):
            steps = np.cumsum(self.group_rows[chosen]) // max(most, 1)
            yield from np.split(chosen, np.flatnonzero(np.diff(steps)) + 1)

    def updates(self, groups: Ints, schema: Mapping[str, pa.DataType]) -> Updates:
        """These columns of the updates in the row groups with these numbers.

        Raises:
            StorageError: the file is damaged.
        """
        known = {name: self._constant(name, groups) for name in (TIME, DIFF)}
        asked = {name: pa.int64() for name, values in known.items() if values is None}
        columns = self.columns(groups, {**schema, **asked})
        with self._naming():  # the columns have no NULLs
            time, diff = (columns.pop(name).to_numpy() if values is None else values for name, values in known.items())
        return Updates(columns, time, diff)

    def columns(self, groups: Ints, schema: Mapping[str, pa.DataType]) -> dict[str, pa.Array]:
        """These columns of the row groups with these numbers, in the given types.

        Raises:
            StorageError: the file is damaged.
        """
        if not schema:
            return {}
        many = len(groups) * len(schema) >= _THREADED
        found = self._opened
        with self._naming():
            with found.turn:  # a flush reads, too
                table = found.file.read_row_groups(groups.tolist(), columns=list(schema), use_threads=many)
            return {name: one_chunk(table.column(name), kind) for name, kind in schema.items()}

    def whole(self, name: str, kind: pa.DataType) -> pa.Array:
        """A column of all rows. Another thread may ask for it while lookups read the file.

        Raises:
            StorageError: the file is damaged.
        """
        with self._naming():
            alone = read(self._place, self._name, self._metadata)
            return one_chunk(alone.read(columns=[name], use_threads=False).column(name), kind)

    def _constant(self, name: str, groups: Ints) -> Ints | None:
        """The values of a column of integers, if its statistics in these row groups show that all are equal."""
        bounds = self.bounds(name, pa.int64())
        if bounds is None:
            return None
        least, greatest, nulls = (side[groups] for side in bounds)
        if nulls.any() or int(least.min()) != int(greatest.max()):
            return None
        return constant(int(least[0]), int(self.group_rows[groups].sum()))


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind))


def opened(place: Place, name: str) -> OpenFile:
    """Open a file by its name in a table's folder.

    Raises:
        StorageError: the file is missing or damaged.
    """
    return _KNOWN.of(place.bare, name)


_KNOWN = Recent(_KNOWN_FILES, OpenFile)

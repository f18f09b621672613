"""The files of a run together: which of them a lookup reads, and in what lots they are copied."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from halfjoin.engine.storage.parquet import StoredFile, run_of
from halfjoin.engine.storage.parquet_reader import Bounds, OpenFile, opened
from halfjoin.engine.storage.place import Place
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Ints, Mask

BYTES = 256 << 20  # of a lot's rows in memory; a copy is made a column at a time
ROWS = 1 << 22  # of a lot; to sort so many codes takes 200 MB


@dataclass(frozen=True, slots=True)
class Lot:
    """Some neighbours among the files of a run. Two lots of the same files are equal."""

    place: Place
    names: tuple[str, ...]
    sources: tuple[OpenFile, ...] = field(compare=False, repr=False)
    size: int = field(compare=False)  # about the bytes of its rows in memory

    def __str__(self) -> str:
        return f"{self.place}/{self.names[0]}"

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(source.rows for source in self.sources)

    @property
    def decoded(self) -> int:
        """The rows that lookups have decoded so far."""
        return sum([source.decoded for source in self.sources])

    def has_only(self, names: Container[str]) -> bool:
        """Whether all its files are among these."""
        return all(name in names for name in self.names)

    def split(self, rows: Ints) -> Iterator[tuple[OpenFile, Ints]]:
        """The files that have some rows, with these rows' positions there. `rows`: positions in the lot, ascending."""
        start = 0
        for source in self.sources:
            some = rows[rows.searchsorted(start) : rows.searchsorted(start + source.rows)]
            if len(some):
                yield source, some - start
            start += source.rows

    def parts(self, name: str, kind: pa.DataType) -> Iterator[pa.Array]:
        """A column of all its rows, file after file.

        Raises:
            StorageError: a file is damaged.
        """
        for source in self.sources:
            yield source.whole(name, kind)

    def column(self, name: str, kind: pa.DataType) -> pa.Array:
        """The same, as one array."""
        return pa.concat_arrays([*self.parts(name, kind)])

    def same(self, name: str) -> int | None:
        """The value of a column of integers in all rows, if the statistics show that there is only one."""
        found = [source.bounds(name, pa.int64()) for source in self.sources]
        low, high, nulls = _outer([one for one in found if one is not None])
        known = None not in found and not nulls.any() and low.min() == high.max()
        return int(low[0]) if known else None


class Footers:
    """The footers of a run's files, read as if each file were a row group, and the lots of the files, in order.

    A lot has files of one run, so that what sorts the run sorts the lot.
    """

    def __init__(self, place: Place, files: Sequence[StoredFile], schema: Mapping[str, pa.DataType]) -> None:
        self.sources = [opened(place, file.name) for file in files]
        self.groups = len(files)
        self.lots = list[tuple[Lot, int]]()  # each with the number of its first file
        self._bounds: dict[str, Bounds | None] = {}
        self._ascends: dict[str, bool] = {}
        first = size = rows = 0
        for number, source in enumerate(self.sources):
            size, rows, next_ = size + source.loaded_bytes(schema), rows + source.rows, number + 1
            ends = next_ == len(files) or run_of(files[next_].name) != run_of(files[first].name)
            if ends or size >= BYTES or rows >= ROWS:
                names = tuple(file.name for file in files[first:next_])
                self.lots.append((Lot(place.bare, names, tuple(self.sources[first:next_]), size), first))
                first, size, rows = next_, 0, 0

    def bounds(self, name: str, kind: pa.DataType) -> Bounds | None:
        """As `OpenFile.bounds`, for each file."""
        if name not in self._bounds:
            found = [source.bounds(name, kind) for source in self.sources]
            self._bounds[name] = None if None in found else _outer([one for one in found if one is not None])
        return self._bounds[name]

    def ascends(self, name: str, kind: pa.DataType) -> bool:
        """Whether the values of a column never descend in a file from one row group to the next."""
        if name not in self._ascends:
            self._ascends[name] = all(source.ascends(name, kind) for source in self.sources)
        return self._ascends[name]

    def between(self, name: str, low: str, high: str) -> Mask:
        """As `OpenFile.between`, for each file."""
        return np.array([source.between(name, low, high).any() for source in self.sources], np.bool_)


def _outer(found: Sequence[Bounds]) -> Bounds:
    """The bounds of files, of the bounds of their row groups."""
    low = [int(least.min(where=least <= greatest, initial=MAXIMUM)) for least, greatest, _ in found]
    high = [int(greatest.max(where=least <= greatest, initial=MINIMUM)) for least, greatest, _ in found]
    return np.array(low, np.int64), np.array(high, np.int64), np.array([nulls.any() for *_, nulls in found], np.bool_)


class Opening:
    """Opens the footers of a run when they are first needed."""

    def __init__(self) -> None:
        self._footers: Footers | None = None

    def __reduce__(self) -> tuple[type[Opening], tuple[()]]:
        """Another process opens its own."""
        return Opening, ()

    def __call__(self, place: Place, files: Sequence[StoredFile], schema: Mapping[str, pa.DataType]) -> Footers:
        """The footers of these files: always the same ones."""
        if self._footers is None:
            self._footers = Footers(place, files, schema)
        return self._footers

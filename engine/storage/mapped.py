"""Files that lookups need often, once more: mapped into memory, so that a row costs a page and not a row group.

A Parquet file gives its rows by row groups, so a batch of many keys decodes most of a table. A mapped copy holds the
same rows as Arrow has them in memory (Arrow IPC, not compressed), and a lookup touches the pages of its rows. These
pages belong to the system's cache of files, which gives them up when memory is needed.

The copies are this process's alone. Each is a file without a name: nobody else can change it, and it ends with the
process, however that ends.

Rent or buy. A file is copied once lookups have decoded 1/8 as many rows of it as it has, and one lookup copies no more
rows than it decodes, apart from one file. So a copy never costs more than a fixed multiple of what was spent without
it, a table that is looked up a few times has none, and no batch waits for the copies of a whole table.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from halfjoin.engine.storage.parquet_reader import OpenFile
from halfjoin.engine.storage.place import LocalPlace, Place
from halfjoin.engine.updates.codes import codes, is_exact
from halfjoin.engine.updates.updates import DIFF, TIME, Ints, Updates, constant
from halfjoin.errors import StorageError

PART_BYTES = 64 << 20  # the bytes of rows that are copied at a time
SHARE = 8  # a file is copied when lookups have decoded this fraction (1/8) of its rows. They go on, so it is early
FREE = 16  # copies leave 1/16 of the disk free

_log = logging.getLogger("halfjoin")


@dataclass(frozen=True, slots=True)
class Mapped:
    """A part of a file: its updates, and the codes of each column whose codes never descend. Such a column has no NULL.
    """

    updates: Updates
    ascending: Mapping[str, Ints]

    def spans(self, name: str, values: Ints) -> tuple[Ints, Ints]:
        """Where the rows of each of these values (sorted, distinct) begin and end in an ascending column.

        Values outside the bounds of the column are left out.
        """
        entries = self.ascending[name]
        values = values[values.searchsorted(entries[0]) : values.searchsorted(entries[-1], "right")]
        return entries.searchsorted(values), entries.searchsorted(values, "right")


class Copies:
    """The mapped copies of a collection's files.

    Args:
        fresh: makes an empty folder, which is removed when nobody holds it. None: there are no copies.
    """

    def __init__(self, fresh: Callable[[], LocalPlace] | None = None) -> None:
        self._fresh, self._able = fresh, fresh is not None
        self._made: dict[tuple[Place, str], Sequence[Mapped]] = {}

    def __reduce__(self) -> tuple[type[Copies], tuple[()]]:
        """Another process has none."""
        return Copies, ()

    def keep(self, names: Container[str]) -> None:
        """Give up all copies but those of files with these names. If the disk was full, try again."""
        self._able = self._fresh is not None
        self._made = {known: parts for known, parts in self._made.items() if known[1] in names}

    def of(self, place: Place, name: str) -> Sequence[Mapped]:
        """The copy of a file, in parts. No parts if there is none."""
        return self._made.get((place.bare, name), ()) if self._made else ()

    def due(self, place: Place, name: str, source: OpenFile) -> bool:
        """Whether lookups have decoded enough rows of a file, and it may be copied."""
        if not self._able or (place.bare, name) in self._made:
            return False
        return source.decoded * SHARE >= int(source.group_rows.sum())

    def make(self, place: Place, name: str, source: OpenFile, schema: Mapping[str, pa.DataType]) -> Sequence[Mapped]:
        """Copy a file. No parts if the disk is full or the file is damaged: lookups go on in the file itself."""
        made = list[Mapped]()
        try:
            assert self._fresh is not None
            folder = self._fresh()
            for updates in _read(source, schema):
                _check_free(folder.path, updates.nbytes)
                made.append(_mapped(updates, folder.path / str(len(made))))
        except (OSError, pa.ArrowException, StorageError) as problem:
            _log.warning("%s/%s cannot be mapped into memory, so lookups stay slow: %s", place, name, problem)
            made, self._able = [], not isinstance(problem, OSError)
        self._made[place.bare, name] = made
        return made


def _read(source: OpenFile, schema: Mapping[str, pa.DataType]) -> Iterator[Updates]:
    size, rows = max(source.loaded_bytes(schema), 1), int(source.group_rows.sum())
    yield from source.read(np.ones(source.groups, np.bool_), schema, max(1, rows * PART_BYTES // size))


def _check_free(folder: Path, size: int) -> None:
    disk = shutil.disk_usage(folder)
    if disk.free - size < disk.total // FREE:
        raise OSError(f"the disk has only {disk.free:,} bytes left")


def _mapped(updates: Updates, path: Path) -> Mapped:
    """Write updates into a new file, map it, and take its name away."""
    columns, known = dict[str | tuple[str], pa.Array](updates.columns.items()), dict[str, int]()
    ascending = dict[str, str | tuple[str]]()  # where the codes are: in the column, or beside it under `(name,)`
    for name, values in ((TIME, updates.time), (DIFF, updates.diff)):
        if bool((values == values[0]).all()):
            known[name] = int(values[0])
        else:
            columns[name] = pa.array(values)
    for name, column in updates.columns.items():
        if is_exact([column]):
            values = codes([column], len(column))
            if bool((values[1:] >= values[:-1]).all()):
                ascending[name] = name if column.type == pa.int64() else (name,)
                columns.setdefault(ascending[name], pa.array(values))
    places = {key: place for place, key in enumerate(columns)}  # a file has no names, so none can be that of two
    batch = pa.record_batch([*columns.values()], [*map(str, places.values())])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pa.memory_map(str(path)) as file:  # the arrays keep the mapping, and need no open file
        there = pa.ipc.open_file(file).get_batch(0)
    path.unlink()
    time, diff = (constant(known[name], len(updates)) if name in known else there.column(places[name]).to_numpy()
                  for name in (TIME, DIFF))  # fmt: skip
    found = Updates({name: there.column(places[name]) for name in updates.columns}, time, diff)
    return Mapped(found, {name: there.column(places[key]).to_numpy() for name, key in ascending.items()})

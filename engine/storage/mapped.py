"""Files that lookups need often, once more: mapped into memory, so that a row costs a page and not a row group.

A Parquet file gives its rows by row groups, so a batch of many keys decodes most of a table. A mapped copy holds the
same rows as Arrow has them in memory (Arrow IPC, not compressed), and a lookup touches the pages of its rows. These
pages belong to the system's cache of files, which gives them up when memory is needed.

The copies are this process's alone. Each is a file without a name: nobody else can change it, and it ends with the
process, however that ends. Together they take at most half of the memory that there is: where the cache cannot hold
them, the files, which are compressed, are quicker.

Rent or buy. A lot of files is copied once lookups have decoded 1/32 as many rows of it as it has. So copies never cost
more than a fixed multiple of what was spent without them, and a table that is looked up a few times has none. No batch
waits for a copy: a thread makes them, while lookups go on in the files.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import pyarrow as pa

from halfjoin.engine.arrange.index import Index, index_of
from halfjoin.engine.storage.lots import Lot
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.system.behind import Behind
from halfjoin.engine.updates.codes import codes, is_exact
from halfjoin.engine.updates.updates import DIFF, MAXIMUM, TIME, Ints, Updates, constant
from halfjoin.errors import StorageError
from halfjoin.planner.plan import ArrangementKey

SHARE = 32  # a lot is copied when lookups have decoded this fraction (1/32) of its rows. They go on, so it is early
FREE = 16  # copies leave 1/16 of the disk free

_log = logging.getLogger("halfjoin")


@dataclass(frozen=True, slots=True)
class Mapped:
    """A lot of files: its updates, and the codes of each column whose codes never descend. Such a column has no NULL.
    """

    updates: Updates
    ascending: Mapping[str, Ints]

    def spans(self, name: str, values: Ints) -> tuple[Ints, Ints]:
        """Where the rows of each of these values (sorted, distinct) begin and end in an ascending column.

        Values that are not in the column are left out.
        """
        entries = self.ascending[name]
        values = values[values.searchsorted(entries[0]) : values.searchsorted(entries[-1], "right")]
        low = entries.searchsorted(values)
        there = entries[low] == values
        low = low[there]
        return low, entries.searchsorted(values[there], "right")


class Copies:
    """The mapped copies of a collection's files, by lot.

    Args:
        fresh: makes an empty folder, which is removed when nobody holds it. None: there are no copies.
        behind: where copies are made.
        left: how many bytes more copies may take.
    """

    def __init__(
        self, fresh: Callable[[], LocalPlace] | None = None, behind: Behind | None = None,
        left: Callable[[], int] = lambda: MAXIMUM,
    ) -> None:  # fmt: skip
        self._fresh, self._behind, self._left = fresh, behind, left
        self._able = fresh is not None and behind is not None
        self._lock = Lock()  # of what follows: a thread makes copies
        self._made: dict[Lot, Mapped | None] = {}  # None: it is not made yet, or cannot be made
        self._indexes: dict[tuple[Lot, ArrangementKey], Index | None] = {}

    def __reduce__(self) -> tuple[type[Copies], tuple[()]]:
        """Another process has none."""
        return Copies, ()

    def keep(self, names: Container[str]) -> None:
        """Give up all copies but those of files with these names. If the disk was full, try again."""
        with self._lock:
            self._able = self._fresh is not None and self._behind is not None
            self._made = {lot: made for lot, made in self._made.items() if lot.has_only(names)}
            self._indexes = {both: index for both, index in self._indexes.items() if both[0].has_only(names)}

    @property
    def size(self) -> int:
        """About the bytes of all copies, those to come included."""
        return sum([lot.size for lot in self._made])

    def of(self, lot: Lot) -> Mapped | None:
        """The copy of a lot, None if there is none yet."""
        return self._made.get(lot) if self._made else None

    def index(self, lot: Lot, key: ArrangementKey, build: Callable[[], Index]) -> Index | None:
        """A mapped index of a lot by a key that does not sort its rows. There is none until lookups have decoded as
        many rows as the lot has, and it is made."""
        if self._able and (lot, key) not in self._indexes and lot.decoded >= lot.rows:
            assert self._behind is not None
            with self._lock:
                self._indexes[lot, key] = None
            self._behind.submit(lambda: self._make_index(lot, key, build), soon=True)
        return self._indexes.get((lot, key)) if self._indexes else None

    def _make_index(self, lot: Lot, key: ArrangementKey, build: Callable[[], Index]) -> None:
        with self._giving_up(lot):
            if self._able and (lot, key) in self._indexes:
                place, made = self._fresh_place(), build()
                codes, rows = (_written(pa.array(part), place.path).to_numpy() for part in (made.codes, made.rows))
                with self._lock:
                    if (lot, key) in self._indexes:
                        self._indexes[lot, key] = index_of(codes, rows, made.exact)

    def looked_up(self, lot: Lot, schema: Mapping[str, pa.DataType]) -> None:
        """Have a lot copied, if lookups have decoded enough rows of its files, and the copy does not take too much."""
        if not self._able or lot in self._made or lot.decoded * SHARE < max(lot.rows, 1) or lot.size > self._left():
            return
        assert self._behind is not None
        with self._lock:
            self._made[lot] = None
        self._behind.submit(lambda: self._make(lot, schema))

    def _make(self, lot: Lot, schema: Mapping[str, pa.DataType]) -> None:
        """Copy a lot."""
        with self._giving_up(lot):
            if self._able and lot in self._made:
                place = self._fresh_place()  # held, because the folder ends with it
                made = _mapped(lot, schema, place.path, self._stopping)
                with self._lock:
                    if made is not None and lot in self._made:
                        self._made[lot] = made

    def _fresh_place(self) -> LocalPlace:
        assert self._fresh is not None
        return self._fresh()

    def _stopping(self) -> bool:
        return self._behind is None or self._behind.stopping

    @contextmanager
    def _giving_up(self, lot: Lot) -> Iterator[None]:
        """If the disk is full, lookups go on in the files. If a file is damaged or gone, lookups there report it."""
        try:
            yield
        except StorageError:
            pass
        except (OSError, pa.ArrowException) as problem:
            _log.warning("%s cannot be mapped into memory, so lookups stay slow: %s", lot, problem)
            if isinstance(problem, OSError):
                with self._lock:
                    self._able = False
                    self._made = {lot: made for lot, made in self._made.items() if made is not None}
                    self._indexes = {both: made for both, made in self._indexes.items() if made is not None}


def _mapped(lot: Lot, schema: Mapping[str, pa.DataType], folder: Path, stopping: Callable[[], bool]) -> Mapped | None:
    """Copy a lot's files into a folder, a column at a time, and map them. None: there is no time left for it."""
    columns, ascending = dict[str, pa.Array](), dict[str, Ints]()
    for name, kind in schema.items():
        if stopping():
            return None
        column = columns[name] = _copied(lot, name, kind, folder)
        if is_exact([column]):
            values = codes([column], len(column))
            if bool((values[1:] >= values[:-1]).all()):
                kept = values if column.type == pa.int64() else _written(pa.array(values), folder).to_numpy()
                ascending[name] = kept
    time, diff = (_kept(lot, name, folder) for name in (TIME, DIFF))
    return Mapped(Updates(columns, time, diff), ascending)


def _kept(lot: Lot, name: str, folder: Path) -> Ints:
    """Times or diffs. If all are equal, they take no space."""
    same = lot.same(name)
    if same is not None:
        return constant(same, lot.rows)
    kept: Ints = _copied(lot, name, pa.int64(), folder).to_numpy()
    return kept


def _copied(lot: Lot, name: str, kind: pa.DataType, folder: Path) -> pa.Array:
    """A lot's column in a new file, mapped into memory. Values of one width go there file after file: to get memory for
    all of them takes longer than to decode them."""
    if (pa.types.is_primitive(kind) or pa.types.is_decimal(kind)) and kind.bit_width % 8 == 0:
        made = _plain(lot.parts(name, kind), kind, folder)
        if made is not None:
            return made
    return _written(lot.column(name, kind), folder)


def _plain(parts: Iterable[pa.Array], kind: pa.DataType, folder: Path) -> pa.Array | None:
    """The parts of a column in a new file, mapped into memory as one array. None: there are NULLs."""
    width, rows, path = kind.bit_width // 8, 0, folder / "column"
    with pa.OSFile(str(path), "wb") as sink:
        for part in parts:
            if part.null_count:
                return None
            _check_free(folder, part.nbytes)
            sink.write(part.buffers()[1].slice(part.offset * width, len(part) * width))
            rows += len(part)
    with pa.memory_map(str(path)) as file:
        there = file.read_buffer()
    path.unlink()
    return pa.Array.from_buffers(kind, rows, [None, there])


def _check_free(folder: Path, size: int) -> None:
    disk = shutil.disk_usage(folder)
    if disk.free - size < disk.total // FREE:
        raise OSError(f"the disk has only {disk.free:,} bytes left")


def _written(column: pa.Array, folder: Path) -> pa.Array:
    """A column in a new file, mapped into memory. The file has no name any more."""
    _check_free(folder, column.nbytes)
    batch, path = pa.record_batch([column], ["0"]), folder / "column"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pa.memory_map(str(path)) as file:  # the arrays keep the mapping, and need no open file
        there = pa.ipc.open_file(file).get_batch(0)
    path.unlink()
    return there.column(0)

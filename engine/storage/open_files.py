"""The Parquet files that were read last stay open, because opening one reads its footer.

A file that is removed takes space on the disk as long as somebody has it open. So whoever removes files, and who
reads beside that, closes those that are gone; an engine that closes closes the files of its warehouse.
"""

from __future__ import annotations

import resource
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Generic, TypeVar

import pyarrow.parquet as pq

from halfjoin.engine.storage.place import LocalPlace, Place
from halfjoin.engine.system.process import own

T = TypeVar("T")
_MOST = 256
_all: list[Recent[Any]] = []


class Recent(Generic[T]):
    """What was made of files, for at most so many of them. What nobody has asked for for the longest time goes first.
    """

    def __init__(self, most: int, make: Callable[[Place, str], T]) -> None:
        self._most, self._make = most, make
        self._lock = Lock()
        self._made: OrderedDict[tuple[Place, str], T] = OrderedDict()
        own(self)
        _all.append(self)

    def disown(self) -> None:
        """In a forked child: another thread may have held the lock, and is not there to release it."""
        self._lock = Lock()

    def of(self, place: Place, name: str) -> T:
        """What is made of a file, by its name in a place. Who uses an open file keeps it open meanwhile."""
        with self._lock:
            found = self._made.get((place, name))
            if found is not None:
                self._made.move_to_end((place, name))
                return found
        made = self._make(place, name)
        with self._lock:
            found = self._made.setdefault((place, name), made)  # another thread may have been quicker
            if len(self._made) > self._most:
                self._made.popitem(last=False)
        return found

    def files(self) -> list[tuple[Place, str]]:
        """The files of which something is here."""
        with self._lock:
            return list(self._made)

    def drop(self, files: Iterable[tuple[Place, str]]) -> None:
        """Forget what was made of these files."""
        with self._lock:
            for file in files:
                self._made.pop(file, None)


def close_removed() -> None:
    """Close the local files that were removed."""
    gone = [(place, name) for place, name in OPEN.files() if isinstance(place, LocalPlace) and _is_gone(place, name)]
    for recent in _all:
        recent.drop(gone)


def _is_gone(place: LocalPlace, name: str) -> bool:
    try:
        return place.size(name) is None
    except OSError:  # it may be of another warehouse, which must not end this one's flush
        return False


def close_inside(folder: Place) -> None:
    """Close the local files in a folder and in the folders in it, and forget their footers: others may come there."""
    if isinstance(folder, LocalPlace):
        within = f"{folder}/"
        for recent in _all:
            recent.drop([(place, name) for place, name in recent.files() if f"{place}/".startswith(within)])


@dataclass(frozen=True, slots=True)
class Opened:
    """An open file. Who reads rows through it holds `turn`: Arrow's reader of a file is for one thread at a time."""

    file: pq.ParquetFile
    turn: Lock = field(default_factory=Lock)


def read(place: Place, name: str, metadata: pq.FileMetaData | None) -> pq.ParquetFile:
    """Open a file. `metadata`: the content of its footer, None if it is not known."""
    # Reads that go through other threads and are joined help where each takes long: in an object store.
    far = not isinstance(place, LocalPlace)
    return pq.ParquetFile(place.open(name), metadata=metadata, coerce_int96_timestamp_unit="us", pre_buffer=far,
                          page_checksum_verification=True)  # fmt: skip


def _most() -> int:
    """A quarter of the files that the process may have open, which are 256 on some systems, if that is less."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if allowed == resource.RLIM_INFINITY else max(1, min(_MOST, allowed // 4))


OPEN = Recent(_most(), lambda place, name: Opened(read(place, name, None)))

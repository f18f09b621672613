"""The Parquet files that were read last stay open, because opening one reads its footer.

A file that is removed takes space on the disk as long as somebody has it open. So whoever removes files closes those
that are gone, and an engine that closes closes the files of its warehouse.
"""

from __future__ import annotations

import os
import resource
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

import pyarrow.parquet as pq

from halfjoin.engine.storage.place import LocalPlace, Place
from halfjoin.engine.system.process import own

_MOST = 256


class OpenFiles:
    """At most so many open files: the one that was not read for the longest time is closed first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._files: OrderedDict[tuple[Place, str], pq.ParquetFile] = OrderedDict()
        own(self)

    def disown(self) -> None:
        """In a forked child: another thread may have held the lock, and is not there to release it."""
        self._lock = Lock()

    def file(self, place: Place, name: str) -> pq.ParquetFile:
        """A file by its name in a place, opened if it is not open. Who uses it keeps it open meanwhile."""
        with self._lock:
            found = self._files.get((place, name))
            if found is not None:
                self._files.move_to_end((place, name))
                return found
        found = read(place, name, None)
        with self._lock:
            self._files[place, name] = found
            if len(self._files) > self._most:
                self._files.popitem(last=False)
        return found

    def close_removed(self) -> None:
        """Close the local files that were removed."""
        self._close(lambda place, name: not os.path.exists(place.path / name))

    def close_inside(self, folder: Place) -> None:
        """Close the local files in a folder and in the folders in it."""
        if isinstance(folder, LocalPlace):
            within = folder.path
            self._close(lambda place, _: place.path.is_relative_to(within))

    def _close(self, ends: Callable[[LocalPlace, str], bool]) -> None:
        with self._lock:
            found = list(self._files)
        for place, name in found:
            if isinstance(place, LocalPlace) and ends(place, name):
                with self._lock:
                    self._files.pop((place, name), None)


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


OPEN = OpenFiles(_most())

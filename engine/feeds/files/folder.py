"""A folder that files arrive in: which are there, which are complete, and waiting for more."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatch
from typing import Any, BinaryIO
from zlib import crc32

from halfjoin.engine.feeds.files.options import FilesOptions
from halfjoin.engine.feeds.source import needed
from halfjoin.errors import StorageError

UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".filepart", ".swp", "~")  # ends of names of such files
_AGAIN = 0.25  # seconds between two looks while files settle
_REMOTE = 5.0  # seconds between two looks at a folder elsewhere


@dataclass(frozen=True, slots=True)
class File:
    """A file: its name, with the folders that it is in, its time of last change, and a mark of its size and that time.
    """

    name: str
    time: float
    mark: int
    size: int


class Folder:
    """The folder of a source.

    Raises:
        HalfjoinError: fsspec, or the package that it needs for the URL, is not installed.
    """

    def __init__(self, options: FilesOptions) -> None:
        fsspec = needed("fsspec", "FILES", "files")
        self._options = options
        try:
            self._system, self._path = fsspec.url_to_fs(options.path)
        except (ImportError, ValueError) as problem:
            raise StorageError(f"{options.path} cannot be opened: {problem}", path=options.path) from None
        self._local = "file" in (self._system.protocol if isinstance(self._system.protocol, tuple)
                                 else (self._system.protocol,))  # fmt: skip
        given = options.settle
        self._settle = given if given is not None else 1.0 if self._local else 0.0
        self._listed: dict[str, File] = {}  # by the last look
        self._seen: dict[str, tuple[int, float]] = {}  # the mark of each file, and since when it has it

    def files(self) -> tuple[list[File], bool]:
        """The complete files in the order that the options say, and whether others are still settling.

        Raises:
            StorageError: the folder cannot be read.
        """
        with self._reaching():
            self._forget()
            listed = self._system.ls(self._path, detail=True)
            if any(entry["name"] == self._path and entry["type"] == "file" for entry in listed):
                raise NotADirectoryError(self._path)
            if self._options.recursive:
                listed = list(self._system.find(self._path, detail=True).values())
            links = {one["name"] for one in listed if one.get("islink") and self._system.isfile(one["name"])}
            # Of a link the list has the time of the link, and `look` that of the file.
            found = [self._file(self._system.info(one["name"]) if one["name"] in links else one) for one in listed
                     if one["type"] == "file" or one["name"] in links]
        self._listed = {one.name: one for one in found}
        wanted = [one for one in found if self._wanted(one.name.split("/"))]
        now, seen = time.monotonic(), self._seen
        self._seen = {one.name: seen[one.name] if seen.get(one.name, (None,))[0] == one.mark else (one.mark, now)
                      for one in wanted}  # fmt: skip
        ready = [one for one in wanted if self._settled(one, now)]
        ready.sort(key=lambda one: (one.time, one.name) if self._options.order == "time" else (one.name,))
        return ready, len(ready) < len(wanted)

    def _wanted(self, parts: list[str]) -> bool:
        """Whether a file is to be read, by its name and those of the folders that it is in."""
        *folders, name = parts
        hidden = name.startswith((".", "_")) or any(map(_is_hidden, folders))
        return not hidden and fnmatch(name, self._options.pattern) and not name.endswith(UNFINISHED)

    def _forget(self) -> None:
        """Let the file system look anew."""
        if self._options.recursive:
            self._system.invalidate_cache()
        else:
            self._system.invalidate_cache(self._path)

    def _settled(self, file: File, now: float) -> bool:
        return now - self._seen[file.name][1] >= self._settle or self._settle <= time.time() - file.time

    def look(self, name: str) -> File | None:
        """A file as it is now; None: it is gone."""
        with self._reaching():
            self._forget()
            try:
                found = self._file(self._system.info(f"{self._path}/{name}"))
            except FileNotFoundError:
                return None
        if self._local:
            return found
        if name not in self._listed:
            self.files()
        listed = self._listed.get(name)  # some stores tell the time of a file to the second, and more of it in a list
        same = listed is not None and (listed.size, int(listed.time)) == (found.size, int(found.time))
        return listed if same else found

    def open(self, name: str) -> BinaryIO:
        """Open a file to read it."""
        with self._reaching():
            made: BinaryIO = self._system.open(f"{self._path}/{name}", "rb")
            return made

    def wait(self, seconds: float, *, settling: bool) -> None:
        """Wait until something changes in the folder, or for some time."""
        if settling or not self._local:
            time.sleep(min(seconds, _AGAIN if settling else _REMOTE))
        elif seconds > 0:
            watchfiles: Any = needed("watchfiles", "FILES", "files")
            # Closed here, and not when it is collected: an interrupt that comes then would be lost.
            watched = watchfiles.watch(self._path, rust_timeout=max(1, int(seconds * 1000)), yield_on_timeout=True,
                                       debounce=50, step=10, raise_interrupt=True,
                                       recursive=self._options.recursive)  # fmt: skip
            with self._reaching(), closing(watched):
                next(watched, None)

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except NotADirectoryError:
            raise StorageError(f"{self._options.path} is a file, and a source reads a folder", path=self._options.path,
                               remedy="give its folder, and its name as the option pattern; or load the file alone: "
                               "halfjoin load WAREHOUSE TABLE FILE") from None  # fmt: skip
        except FileNotFoundError:
            raise StorageError(f"there is no folder {self._options.path}", path=self._options.path) from None
        except OSError as problem:
            raise StorageError(f"{self._options.path} cannot be read: {problem}", path=self._options.path) from None

    def _file(self, entry: dict[str, Any]) -> File:
        """A file of what fsspec lists. Stores name the time of the last change in several ways."""
        found = next((entry[key] for key in ("mtime", "LastModified", "last_modified", "updated", "created")
                      if entry.get(key) is not None), 0)  # fmt: skip
        if isinstance(found, str):
            found = datetime.fromisoformat(found)
        changed = found.timestamp() if isinstance(found, datetime) else float(found)
        name, size = entry["name"], int(entry["size"] or 0)
        inside = name.removeprefix(f"{self._path.rstrip('/')}/") if self._options.recursive else name.rsplit("/", 1)[-1]
        return File(inside, changed, crc32(f"{size} {changed:.6f}".encode()), size)


def _is_hidden(folder: str) -> bool:
    """Whether a folder's name says that it is no part of the rows. `_year=2024` names a column, as for Spark."""
    return folder.startswith(".") or (folder.startswith("_") and "=" not in folder)

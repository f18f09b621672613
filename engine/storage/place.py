"""Where files are: a local folder or a prefix of an object store. A write is durable when the call returns."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import ClassVar, Protocol

import pyarrow as pa
import pyarrow.fs as pafs

LOG = "_delta_log"
UPLOADED = "#"  # in the name of a file that delta-rs writes before it gets its own: a kill in between leaves it behind


class Place(Protocol):
    """A folder that holds a Delta table, or folders of them."""

    def __hash__(self) -> int: ...

    @property
    def uri(self) -> str:
        """The address for the `deltalake` package."""

    @property
    def bare(self) -> Place:
        """The same place for caches. Unlike this object, it does not keep a scratch folder in existence."""

    def __truediv__(self, name: str) -> Place:
        """A folder inside this one."""

    def names(self) -> Iterator[str]:
        """The names of the files and folders in it. No names if there is no such folder."""

    def make(self) -> None:
        """Create the folder."""

    def clear(self, keep: Container[str] = ()) -> None:
        """Remove the folder and everything in it, except the files and folders with these names."""

    def write(self, name: str, data: pa.Buffer) -> None:
        """Write a file."""

    def read(self, name: str) -> pa.Buffer:
        """A file's content."""

    def open(self, name: str) -> pa.NativeFile:
        """Open a file for reading at any position."""

    def size(self, name: str) -> int | None:
        """A file's size in bytes. None if there is no file of this name."""

    def link(self, folder: Path, names: Iterable[str]) -> None:
        """Link the files of another folder on the same disk into this one, with the time of now.

        Raises:
            OSError: the disk refuses it.
        """

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""

    def make_durable(self) -> None:
        """Make the newest commit of the table durable."""

    def cut(self, version: int) -> None:
        """Remove the commits after a version."""


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """A folder of the local file system."""

    lasting: ClassVar[bool] = True  # whether its files survive a power failure
    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @property
    def uri(self) -> str:
        """The address for the `deltalake` package, quoted, because the package unquotes what looks quoted."""
        return self.path.resolve().as_uri()

    @property
    def bare(self) -> LocalPlace:
        """The same folder, as a place that keeps nothing in existence."""
        return LocalPlace(self.path)

    def __truediv__(self, name: str) -> LocalPlace:
        return LocalPlace(self.path / name)

    def names(self) -> Iterator[str]:
        """The names of the files and folders in it. No names if there is no such folder."""
        with suppress(FileNotFoundError):
            yield from os.listdir(self.path)

    def make(self) -> None:
        """Create the folder."""
        self.path.mkdir(parents=True, exist_ok=True)
        sync(self.path.parent)
        sync(self.path.parent.parent)

    def clear(self, keep: Container[str] = ()) -> None:
        """Remove the folder and everything in it, except these names."""
        kept = False
        for path in [self.path / name for name in self.names()]:
            if path.name in keep:
                kept = True
            elif path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        if not kept:
            shutil.rmtree(self.path, ignore_errors=True)

    def write(self, name: str, data: pa.Buffer) -> None:
        """Write a file."""
        try:
            with (self.path / name).open("wb") as file:
                file.write(data)
                if self.lasting:
                    file.flush()
                    os.fsync(file.fileno())
        except OSError:  # do not let a part of it fill the disk for good
            self.remove(name)
            raise
        if self.lasting:
            sync(self.path)

    def read(self, name: str) -> pa.Buffer:
        """A file's content, mapped into memory."""
        return pa.memory_map(str(self.path / name)).read_buffer()

    def open(self, name: str) -> pa.NativeFile:
        """Open a file for reading at any position."""
        return pa.OSFile(str(self.path / name))

    def size(self, name: str) -> int | None:
        """A file's size in bytes. None if there is no file of this name."""
        try:
            found = os.stat(self.path / name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def link(self, folder: Path, names: Iterable[str]) -> None:
        """Make hard links. Sets the files' modification times, because vacuum looks at these."""
        for name in names:
            os.utime(folder / name)
            sync(folder / name)  # nobody has, if they come from a scratch folder
            os.link(folder / name, self.path / name)
        sync(self.path)

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        (self.path / name).unlink(missing_ok=True)

    def make_durable(self) -> None:
        """Sync the log's newest files, its folder, and the folder's entry to disk."""
        log = self.path / LOG
        whole = (name for name in os.listdir(log) if UPLOADED not in name)
        for name in nlargest(3, whole):  # a table with many small commits has thousands
            sync(log / name)
        sync(log)
        sync(self.path)

    def cut(self, version: int) -> None:
        """Remove the commits after a version, the last first."""
        for path in sorted((self.path / LOG).glob("*"), reverse=True):
            if _is_after(path.name, version):
                path.unlink()


class ObjectPlace:
    """A prefix of an object store, by its URL. The environment has the credentials (`AWS_...`)."""

    def __init__(self, url: str) -> None:
        from deltalake.fs import DeltaStorageHandler  # Spark's tasks do not need it

        self.uri = url.rstrip("/")
        self._files = pafs.PyFileSystem(DeltaStorageHandler(self.uri))

    def __str__(self) -> str:
        return self.uri

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPlace) and other.uri == self.uri

    def __hash__(self) -> int:
        return hash(self.uri)

    @property
    def bare(self) -> ObjectPlace:
        """Itself: it keeps nothing in existence."""
        return self

    def __truediv__(self, name: str) -> ObjectPlace:
        return ObjectPlace(f"{self.uri}/{name}")

    def names(self) -> Iterator[str]:
        """The names of the files and prefixes in it."""
        found = self._files.get_file_info(pafs.FileSelector("", allow_not_found=True))
        yield from (info.base_name for info in found if info.base_name)

    def make(self) -> None:
        """Do nothing: an object store has only names of files."""

    def clear(self, keep: Container[str] = ()) -> None:
        """Remove everything in it, except these names."""
        for info in self._files.get_file_info(pafs.FileSelector("", allow_not_found=True, recursive=True)):
            if info.type == pafs.FileType.File and info.path.partition("/")[0] not in keep:
                self._files.delete_file(info.path)

    def write(self, name: str, data: pa.Buffer) -> None:
        """Write a file."""
        # The stream takes only bytes. A buffer that never overflows passes bytes on.
        with self._files.open_output_stream(name, buffer_size=data.size + 1) as file:
            file.write(data)

    def read(self, name: str) -> pa.Buffer:
        """A file's content."""
        with self._files.open_input_file(name) as file:
            return file.read_buffer()

    def open(self, name: str) -> pa.NativeFile:
        """Open a file for reading at any position."""
        return self._files.open_input_file(name)

    def size(self, name: str) -> int | None:
        """A file's size in bytes. None if there is no file of this name."""
        info = self._files.get_file_info(name)
        return int(info.size) if info.type == pafs.FileType.File else None

    def link(self, folder: Path, names: Iterable[str]) -> None:
        """Upload the files."""
        for name in names:
            self.write(name, pa.memory_map(str(folder / name)).read_buffer())

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        if self.size(name) is not None:
            self._files.delete_file(name)

    def make_durable(self) -> None:
        """Do nothing: a commit is durable when it is made."""

    def cut(self, version: int) -> None:
        """Remove the commits after a version, the last first."""
        found = self._files.get_file_info(pafs.FileSelector(LOG, allow_not_found=True))
        for info in sorted(found, key=lambda info: info.base_name, reverse=True):
            if _is_after(info.base_name, version):
                self._files.delete_file(info.path)


def sync(path: Path) -> None:
    """Make a file's content, or a folder's entries, survive a power failure."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folder(path: Path) -> None:
    """Make a folder, with those above it that are not there, so that it survives a power failure."""
    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in new:
        sync(folder.parent)


def _is_after(name: str, version: int) -> bool:
    number = name.partition(".")[0]
    return name == "_last_checkpoint" or (number.isdigit() and int(number) > version)

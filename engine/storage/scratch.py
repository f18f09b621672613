"""Folders for files that no journal names yet. Each folder exists as long as somebody holds its place."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from halfjoin.engine.arrange.changes import StoredChanges
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.stored_run import StoredRun, stored
from halfjoin.engine.system.process import own
from halfjoin.errors import StorageError

_PREFIX = "halfjoin-"


class Scratch:
    """A folder for such folders. It is removed with the last of them, and locked until then. When a process ends, in
    whatever way, its lock becomes free.

    Args:
        folder: where to create it. None: in the system's folder for temporary files.

    Raises:
        StorageError: from every method, for example if the disk is full.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        lock = None
        with _making(folder or tempfile.gettempdir()):
            if folder is not None:
                Path(folder).mkdir(parents=True, exist_ok=True)
            while lock is None:  # somebody may remove a folder as a leftover before it is locked
                self._folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=folder)).absolute()
                lock = _locked(self._folder)
        self._made = 0
        self._lock = lock
        weakref.finalize(self, _removed, self._folder, lock, os.getpid())
        own(self)

    def disown(self) -> None:
        """In a forked child: close the lock. The folder is the parent's, and its lock must end with the parent."""
        os.close(self._lock)

    def fresh(self) -> ScratchPlace:
        """Create an empty folder."""
        self._made += 1
        return ScratchPlace(self, self._folder / str(self._made))

    def linked(self, run: StoredRun) -> StoredRun:
        """The same run through links, which stay when its own files are merged and removed. Through copies if the
        scratch folder is on another disk."""
        if not isinstance(run.place, LocalPlace) or isinstance(run.place, ScratchPlace):
            return run
        place = self.fresh()
        for file in run.files:
            try:
                os.link(run.place.path / file.name, place.path / file.name)
            except FileNotFoundError as problem:
                raise StorageError(f"{run.place}/{file.name} cannot be read: {problem}",
                                   path=str(run.place)) from problem
            except OSError:
                with _making(place):
                    shutil.copyfile(run.place.path / file.name, place.path / file.name)
        return StoredRun(place, run.files, run.schema)


class PassingPlace(LocalPlace):
    """A folder of files that end with a process. Who keeps one links it into a folder that lasts."""

    lasting = False


class ScratchPlace(PassingPlace):
    """A folder that is removed when nobody holds this object any more."""

    def __init__(self, scratch: Scratch, path: Path) -> None:
        super().__init__(path)
        object.__setattr__(self, "_scratch", scratch)  # keeps the scratch folder in existence
        with _making(path):
            path.mkdir()
        weakref.finalize(self, _cleared, path, os.getpid())

    def write(self, name: str, data: pa.Buffer) -> None:
        """Write a file."""
        with _making(self):
            super().write(name, data)


class Links:
    """Keeps the files of changes, through links, as long as somebody holds the changes.

    Args:
        staging: a folder of the warehouse for the links, created when needed. None: there are no links, and files stay
            for about an hour after they were merged into others.
    """

    def __init__(self, staging: Path | None) -> None:
        self._staging = staging
        self._scratch: Scratch | None = None

    def lasting(self, changes: StoredChanges) -> StoredChanges:
        """The same changes, whose files stay.

        Raises:
            StorageError: the files are missing, or the disk is full.
        """
        if self._staging is None or all(part.in_memory for part in changes.parts):
            return changes
        scratch = self._scratch = self._scratch or Scratch(self._staging)
        parts = [part if (run := stored(part)) is None else scratch.linked(run) for part in changes.parts]
        return replace(changes, parts=tuple(parts))


@contextmanager
def _making(place: object) -> Iterator[None]:
    """Wrap code that writes files of work in progress to a folder.

    Raises:
        StorageError: they cannot be written.
    """
    try:
        yield
    except OSError as problem:
        raise StorageError(f"files of work in progress cannot be written to {place}: {problem}",
                           path=str(place)) from problem


def remove_leftovers(folder: Path) -> None:
    """Remove the folders of processes that ended before they could remove them."""
    for path in folder.glob(f"{_PREFIX}*"):
        lock = _locked(path)
        if lock is not None:
            _removed(path, lock, os.getpid())


def _locked(folder: Path) -> int | None:
    """Lock a folder. None if somebody else has locked it, if it is gone, or if it is not ours."""
    try:
        lock = os.open(folder, os.O_RDONLY)
    except (FileNotFoundError, PermissionError):
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except OSError:  # a disk without locks, which never holds a warehouse
        return lock
    if folder.exists():
        return lock
    os.close(lock)
    return None


def _removed(folder: Path, lock: int, process: int) -> None:
    if process == os.getpid():  # not in a forked child
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _cleared(folder: Path, process: int) -> None:
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)

"""Folders for files that no journal knows of (yet): each is there for as long as somebody holds its place."""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import weakref
from dataclasses import replace
from pathlib import Path

from halfjoin.engine.changes import StoredChanges
from halfjoin.engine.storage.place import LocalPlace
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.sql.errors import StorageError

_PROCESS = uuid.uuid4().hex[:12]  # a process's number may be another's by now, or that of every container


class Scratch:
    """A folder for such folders. It is removed with the last of them.

    Args:
        folder: where it is made; None: among the system's temporary files.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix=f"halfjoin-{_PROCESS}-", dir=folder))
        self._made = 0
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def fresh(self) -> ScratchPlace:
        """An empty folder."""
        self._made += 1
        return ScratchPlace(self, self._folder / str(self._made))

    def linked(self, run: StoredRun) -> StoredRun:
        """The same run by links, which stay when its own files are merged into others and removed."""
        if not isinstance(run.place, LocalPlace) or isinstance(run.place, ScratchPlace):
            return run
        place = self.fresh()
        for file in run.files:
            os.link(run.place.path / file.name, place.path / file.name)
        return StoredRun(place, run.files, run.schema)


class ScratchPlace(LocalPlace):
    """A folder that is removed when nobody holds this object any more."""

    def __init__(self, scratch: Scratch, path: Path) -> None:
        super().__init__(path)
        object.__setattr__(self, "_scratch", scratch)  # which is to be there for as long
        path.mkdir()
        weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)


class Links:
    """Changes in files that stay, by links, for as long as somebody holds the changes.

    Args:
        staging: a folder of the warehouse for them, made when it is needed; None: there are no links, and files stay
            for about an hour after they were merged into others.
    """

    def __init__(self, staging: Path | None) -> None:
        self._staging = staging
        self._scratch: Scratch | None = None

    def lasting(self, changes: StoredChanges) -> StoredChanges:
        """The same changes.

        Raises:
            StorageError: the files are not there.
        """
        if self._staging is None or not any(isinstance(part, StoredRun) for part in changes.parts):
            return changes
        try:
            scratch = self._scratch = self._scratch or Scratch(self._staging)
            parts = [scratch.linked(part) if isinstance(part, StoredRun) else part for part in changes.parts]
        except OSError as problem:
            raise StorageError(f"files that are to be read later cannot be kept: {problem}") from problem
        return replace(changes, parts=tuple(parts))


def remove_leftovers(folder: Path) -> None:
    """What processes left there that ended before they could remove it."""
    for path in folder.glob("halfjoin-*"):
        if not path.name.startswith(f"halfjoin-{_PROCESS}-"):
            shutil.rmtree(path, ignore_errors=True)

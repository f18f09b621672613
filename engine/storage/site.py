"""Where a warehouse is: a local folder or the URL of an object store, and what differs between the two."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path
from typing import Protocol

from deltalake.exceptions import DeltaError

from halfjoin.engine.storage.journal import FILE, Journal, Kept
from halfjoin.engine.storage.lock import Lock
from halfjoin.engine.storage.names import folder_name
from halfjoin.engine.storage.object_journal import ObjectJournal
from halfjoin.engine.storage.place import LocalPlace, ObjectPlace, Place, sync
from halfjoin.sql.errors import HalfjoinError, StorageError


class Site(Protocol):
    """Gives out the journal, the lock and the places of collections."""

    @property
    def place(self) -> Place:
        """The folder of the warehouse."""

    @property
    def staging(self) -> Path | None:
        """A folder for files that may become part of the warehouse by links; None where there are no links."""

    def lock(self) -> Lock | None:
        """Be the only writer, as far as the site has locks; the journal sees to the rest."""

    def journal(self, *, read_only: bool) -> Journal:
        """The journal, made if it is not there."""


class LocalSite:
    """A folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.place = folder, LocalPlace(folder)
        self.staging = folder / "staging"

    def lock(self) -> Lock:
        """Be the only writer. The folder is made if it is not there."""
        try:
            folder = self._folder.resolve()
            new = [path for path in (folder, *folder.parents) if not path.exists()]
            folder.mkdir(parents=True, exist_ok=True)
            for path in new:
                sync(path.parent)
        except OSError as problem:
            raise StorageError(f"cannot make the warehouse {self._folder}: {problem}") from problem
        return Lock(self._folder)

    def journal(self, *, read_only: bool) -> Journal:
        """An SQLite file."""
        if read_only and not (self._folder / FILE).is_file():
            raise StorageError(f"there is no warehouse in {self._folder}; an engine that writes makes one")
        return Journal(self._folder, read_only=read_only)


class ObjectSite:
    """A prefix of an object store."""

    staging = None

    def __init__(self, url: str) -> None:
        try:
            self.place = ObjectPlace(url)
        except (DeltaError, OSError) as problem:
            raise StorageError(f"{url} cannot be reached: {problem}") from problem

    def lock(self) -> None:
        """There are no locks: the journal refuses all writers but the last that opened it."""

    def journal(self, *, read_only: bool) -> Journal:
        """A Delta table."""
        return ObjectJournal(self.place / "journal", read_only=read_only)


def site_of(warehouse: str | PathLike[str]) -> Site:
    """The site that a path or a URL means."""
    try:
        text = fspath(warehouse)
    except TypeError:
        raise HalfjoinError(f"{warehouse!r} is no path; give that of a folder, or the URL of an object store") from None
    if isinstance(text, str) and "://" in text and not text.startswith("file://"):
        return ObjectSite(text)
    return LocalSite(Path(text.removeprefix("file://")))


def place_of(site: Site, kept: Kept) -> Place:
    """Where a collection's Delta table is."""
    return site.place / kept.kind / folder_name(kept.name)


ARRANGEMENTS = "arrangements"


def arrangements_of(site: Site, kept: Kept) -> Place:
    """Where the Delta tables of a collection's arrangements are."""
    return site.place / ARRANGEMENTS / arrangements_name(kept)


def arrangements_name(kept: Kept) -> str:
    """The folder of a collection's arrangements; the id tells it from another that had its name."""
    return f"{folder_name(kept.name)}-{kept.id}"

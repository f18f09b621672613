"""Where a warehouse is: a local folder or the URL of an object store, and the differences between the two."""

from __future__ import annotations

import os
import tempfile
from functools import reduce
from operator import truediv
from os import PathLike, fspath
from pathlib import Path
from typing import Protocol

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from halfjoin.engine.storage.journal import Journal, Kept
from halfjoin.engine.storage.lock import Lock
from halfjoin.engine.storage.names import folder_name
from halfjoin.engine.storage.object_journal import ObjectJournal
from halfjoin.engine.storage.ownership import FILE, check_folder
from halfjoin.engine.storage.paths import check_url, is_url, local_path
from halfjoin.engine.storage.place import LocalPlace, ObjectPlace, Place, make_folder
from halfjoin.engine.system.process import check_inherited, check_threads
from halfjoin.errors import HalfjoinError, StorageError

ARRANGEMENTS = "arrangements"
_LONGEST_JOURNAL = 504  # bytes of its path: SQLite's 512 without the longest ending of a file beside it


class Site(Protocol):
    """Provides the journal, the lock and the places of collections."""

    @property
    def place(self) -> Place:
        """The folder of the warehouse."""

    def staging(self, id: str) -> Path | None:
        """A folder of the warehouse with this id, for files that may become part of it by links. None if the site has
        no links."""

    def lock(self) -> Lock | None:
        """Become the only writer, if the site has locks. Otherwise the journal ensures this."""

    def journal(self, *, read_only: bool) -> Journal:
        """The journal, created if it does not exist."""


class LocalSite:
    """A local folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.place = folder, LocalPlace(folder)

    def staging(self, id: str) -> Path:
        """A folder with the id in its name, so that nobody takes another's folder for it."""
        return self._folder / "staging" / id

    def lock(self) -> Lock:
        """Become the only writer. Creates the folder if it does not exist."""
        self._check()
        try:
            make_folder(self._folder)
        except OSError as problem:
            raise StorageError(f"cannot make the warehouse {self._folder}: {problem}",
                               path=str(self._folder)) from problem
        return Lock(self._folder)

    def _check(self) -> bool:
        journal = str(self._folder / FILE)
        check_inherited(journal)
        if len(os.fsencode(journal)) > _LONGEST_JOURNAL:
            raise StorageError(f"the path {journal[:80]}... is too long for SQLite: "
                               f"{_LONGEST_JOURNAL} bytes at most, with the name of the journal",
                               remedy="choose a shorter one", path=str(self._folder))  # fmt: skip
        return check_folder(self._folder)

    def journal(self, *, read_only: bool) -> Journal:
        """The journal, an SQLite file."""
        if read_only and not self._check():
            raise StorageError(f"there is no warehouse in {self._folder}",
                               remedy="an engine that writes makes one", path=str(self._folder))
        return Journal(self._folder, read_only=read_only)


class ObjectSite:
    """A prefix of an object store."""

    def __init__(self, url: str) -> None:
        check_url(url)
        try:
            self.place = ObjectPlace(url)
        except (DeltaError, OSError) as problem:
            raise StorageError(f"{url} cannot be reached: {problem}", path=url) from problem

    def staging(self, id: str) -> None:
        """None: there are no links."""

    def lock(self) -> None:
        """None: there are no locks. The journal refuses all writers but the last one that opened it."""

    def journal(self, *, read_only: bool) -> Journal:
        """The journal, a Delta table."""
        return ObjectJournal(self.place, read_only=read_only)


def site_of(warehouse: str | PathLike[str]) -> Site:
    """The site of a path or a URL."""
    try:
        text = fspath(warehouse)
    except TypeError:
        raise HalfjoinError(f"{warehouse!r} is not a path",
                            remedy="give the path of a folder, or the URL of an object store") from None
    text = os.fsdecode(text)
    check_threads(lambda: DeltaTable.is_deltatable(tempfile.gettempdir()))
    return ObjectSite(text) if is_url(text) else LocalSite(local_path(text))


def folder_of(kept: Kept) -> str:
    """The path of a collection's Delta table in a warehouse."""
    return f"{kept.kind}/{folder_name(kept.name)}"


def arrangements_folder(kept: Kept) -> str:
    """The path of a collection's arrangements in a warehouse. The id excludes earlier collections of the same name."""
    return f"{ARRANGEMENTS}/{folder_name(kept.name)}-{kept.id}"


def collection_place(site: Site, kept: Kept) -> Place:
    """The place of a collection's Delta table."""
    return in_site(site, folder_of(kept))


def arrangements_of(site: Site, kept: Kept) -> Place:
    """The place of the Delta tables of a collection's arrangements."""
    return in_site(site, arrangements_folder(kept))


def in_site(site: Site, path: str) -> Place:
    """A folder of a warehouse, by its path in the warehouse."""
    return reduce(truediv, path.split("/"), site.place)

"""A backup of a warehouse: a copy of one moment of it, made while an engine writes there.

The moment is that of a snapshot of the journal. The journal is copied inside the snapshot. The snapshot names the
version of each Delta table, and the files that no version has yet. None of these files changes, and each stays for an
hour after a merge. So they can be copied afterwards, with the entries of the logs up to those versions.

Wrong ways. If the tables are copied first, the journal knows versions that the copy lacks. If all of a log is copied,
its later versions hold batches that the copied journal has not.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

from halfjoin.engine.storage.commits import entries_up_to
from halfjoin.engine.storage.delta import DeltaFolder
from halfjoin.engine.storage.journal import Journal, app_of
from halfjoin.engine.storage.ownership import FILE
from halfjoin.engine.storage.parquet import StoredFile
from halfjoin.engine.storage.paths import is_url, local_path
from halfjoin.engine.storage.place import LOG, make_folder, sync
from halfjoin.engine.storage.site import LocalSite, arrangements_folder, folder_of, in_site, site_of
from halfjoin.errors import HalfjoinError, StorageError

_TRIES = 3  # it begins anew if a collection is dropped meanwhile, since its files go at once


class Backup(NamedTuple):
    """What a backup holds: the warehouse as it was at this `upper`, in so many files of so many bytes."""

    upper: int
    files: int
    bytes: int


class _Needed(NamedTuple):
    """Files of a folder of the warehouse, which is given by its path there: files of rows, and entries of the log."""

    folder: str
    rows: tuple[StoredFile, ...]
    log: list[str]


def backup(warehouse: str | PathLike[str], to: str | PathLike[str]) -> Backup:
    """Copy a warehouse to a new folder, as it is at one moment. An engine of this process or of another one may write
    to the warehouse meanwhile. It does not wait, and batches after the moment are not in the copy.

    The copy is a warehouse: `Engine(to)` opens it. The folder has its name once everything in it is on disk. If the
    call fails or is interrupted, there is no such folder.

    Args:
        warehouse: the folder of a warehouse.
        to: a folder that does not exist yet, outside of the warehouse. The folders around it are made.

    Raises:
        StorageError: there is no warehouse, `to` is there already, the disk is full, or a file is missing or damaged.
        HalfjoinError: the warehouse is in an object store.
    """
    site, target = site_of(warehouse), _target(to)
    if not isinstance(site, LocalSite):
        raise HalfjoinError(f"{fspath(warehouse)!r} is in an object store, and an engine that writes there changes "
                            "objects while they are copied", remedy="close that engine, and copy all objects under the "
                            "URL")  # fmt: skip
    if site.place.path in target.parents:
        raise StorageError(f"{target} is inside the warehouse {site.place}", remedy="choose a folder outside of it",
                           path=str(target))  # fmt: skip
    journal = site.journal(read_only=True)
    try:
        tries = 1
        while True:
            defined = journal.number("defined")
            try:
                return _copied(site, journal, target)
            except StorageError:
                if tries == _TRIES or journal.number("defined") == defined:
                    raise
            tries += 1
    finally:
        journal.close()


def _target(to: str | PathLike[str]) -> Path:
    text = os.fsdecode(fspath(to))
    if is_url(text):
        raise HalfjoinError(f"a backup goes to a folder, and {text!r} is a URL",
                            remedy="make the backup in a folder, and copy that to the object store")
    target = local_path(text)
    if target.exists():
        raise StorageError(f"{target} is there already", remedy="choose a folder that does not exist yet",
                           path=str(target))
    return target


def _copied(site: LocalSite, journal: Journal, target: Path) -> Backup:
    """One try. Everything goes into a folder beside the target, which gets the target's name at the end."""
    try:
        make_folder(target.parent)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
            made = Path(scratch) / target.name
            made.mkdir()
            with journal.snapshot():
                upper, needed = journal.upper, list(_needed(site, journal))
                journal.copy(made / FILE)
            shutil.copymode(site.place.path / FILE, made / FILE)
            copied = [made / FILE]
            for one in needed:
                copied += _filled(one, site.place.path / one.folder, made / one.folder)
            inside = {folder for file in copied for folder in file.parents if made in folder.parents}
            for path in (*copied, *inside, made):
                sync(path)
            sizes = [path.stat().st_size for path in copied]
            shutil.copymode(site.place.path, made)
            made.rename(target)
            sync(target.parent)
            return Backup(upper, len(sizes), sum(sizes))
    except OSError as problem:
        raise StorageError(f"the backup {target} cannot be made: {problem}", path=str(target)) from problem


def _needed(site: LocalSite, journal: Journal) -> Iterator[_Needed]:
    """The files that a snapshot of the journal names."""
    for kept in journal.collections():
        folder = folder_of(kept)
        yield _of_table(site, folder, app_of(journal, kept.id), kept.version, kept.rows)
        waiting = (piece for piece in journal.pieces(kept.id, kept.flushed) if isinstance(piece, StoredFile))
        yield _Needed(folder, tuple(waiting), [])
        for name, version in journal.arranged(kept.id).items():
            yield _of_table(site, f"{arrangements_folder(kept)}/{name}", "", version, None)


def _of_table(site: LocalSite, folder: str, app: str, version: int | None, rows: int | None) -> _Needed:
    """The files of a version of a Delta table, and of its log."""
    if version is None:
        return _Needed(folder, (), [])
    place = in_site(site, folder)
    table = DeltaFolder(place, app)
    return _Needed(folder, table.files(version, rows), entries_up_to(place, table.readable(version)))


def _filled(needed: _Needed, source: Path, folder: Path) -> Iterator[Path]:
    """Copy files to a folder. Yields their new paths."""
    for name in (*(file.name for file in needed.rows), *(f"{LOG}/{entry}" for entry in needed.log)):
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, copy)
        yield copy
    for file in needed.rows:
        size = (folder / file.name).stat().st_size
        if size != file.size:
            raise StorageError(f"{source / file.name} has {size:,} bytes, but its table gives it {file.size:,}",
                               path=str(source / file.name))  # fmt: skip

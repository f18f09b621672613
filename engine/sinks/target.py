"""Where a sink's table is: a folder or the URL of an object store, apart from the warehouse and from other sinks."""

from __future__ import annotations

from collections.abc import Container, Iterable
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from halfjoin.catalog.models import Sink
from halfjoin.engine.storage.place import LOG, LocalPlace, ObjectPlace, Place
from halfjoin.sql.errors import Conflict, StorageError, UnsupportedSQL

SINK = "halfjoin.sink"  # in each commit of a sink's table: the sink's id
FOLDER = "sinks"  # of a warehouse: what relative paths are relative to


def place_of(target: str, home: Place | None) -> Place:
    """The place that a path or URL which was checked means, for an engine whose warehouse is at `home`."""
    if _is_url(target):
        return ObjectPlace(target)
    path = Path(target.removeprefix("file://"))
    if home is None or path.is_absolute():
        return LocalPlace(path)
    place = home / FOLDER
    for part in path.parts:
        place = place / part
    return place


def check(target: str, home: Place | None, others: Iterable[Sink], former: Container[str]) -> None:
    """Whether a new sink may write there. It takes over what one of the `former` sinks (by their ids) has left.

    Raises:
        UnsupportedSQL: the path is not one, or is that of the warehouse or of another sink, around it or in it.
        Conflict: something is there already.
        StorageError: it cannot be looked at.
    """
    if ".." in target.replace("\\", "/").split("/") or "\0" in target:
        raise UnsupportedSQL(f"{target!r} is no path for a sink", instead="write it without .., as it is from the root")
    if home is None and not _is_url(target) and not Path(target.removeprefix("file://")).is_absolute():
        raise UnsupportedSQL(f"the path {target!r} is relative to the warehouse, and this engine has none",
                             instead="write an absolute path or a URL, or open Engine('folder')")
    parts = _parts(target, home)
    if home is not None:
        warehouse = _folder(home)
        allowed = parts[: len(warehouse) + 1] == (*warehouse, FOLDER) and len(parts) > len(warehouse) + 1
        if _touch(parts, warehouse) and not allowed:
            raise UnsupportedSQL(f"{target!r} would mix the sink's files with those of the warehouse {home}",
                                 instead=f"a path without / at its beginning is a folder in {home / FOLDER}")
    for sink in others:
        if _touch(parts, _parts(sink.target, home)):
            raise UnsupportedSQL(f"{target!r} overlaps with the table of the sink {sink.name}, {sink.target!r}",
                                 instead="choose a folder that is in no other sink's, nor around it")
    _check_empty(target, home, former)


def _check_empty(target: str, home: Place | None, former: Container[str]) -> None:
    try:
        place = place_of(target, home)
        if isinstance(place, LocalPlace) and place.path.is_file():
            there = "is a file"
        elif DeltaTable.is_deltatable(place.uri):
            ours = DeltaTable(place.uri).history(1)[0].get(SINK) in former
            there = "" if ours else "holds a Delta table already"
        else:
            there = "holds files already" if any(place.folders()) else ""
    except (DeltaError, OSError, ValueError) as problem:
        raise StorageError(f"the place for the sink cannot be reached: {target}: {problem}") from problem
    if there:
        raise Conflict(f"{place} {there}, which a sink does not replace; choose another path, or remove what is there")


def _parts(target: str, home: Place | None) -> tuple[str, ...]:
    """The path from the root of its file system or store, without a look at it."""
    if _is_url(target):
        scheme, _, rest = target.partition("://")
        return ("s3" if scheme == "s3a" else scheme, *filter(None, rest.split("/")))
    path = Path(target.removeprefix("file://"))
    if home is None or path.is_absolute():
        return ("file", *path.resolve().parts)
    return (*_folder(home), FOLDER, *path.parts)


def _folder(place: Place) -> tuple[str, ...]:
    return _parts(str(place.path if isinstance(place, LocalPlace) else place.uri), None)


def _is_url(target: str) -> bool:
    return "://" in target and not target.startswith("file://")


def _touch(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether they are the same folder, or one is in the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def commit_file(version: int) -> str:
    """The log's entry of a version, as a name in the table's place."""
    return f"{LOG}/{version:020}.json"

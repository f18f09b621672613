"""Where a sink's table is: a folder or the URL of an object store, apart from the warehouse and from other sinks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from halfjoin.catalog.models import Sink
from halfjoin.engine.storage.place import LOG, LocalPlace, ObjectPlace, Place
from halfjoin.sql.errors import Conflict, StorageError, UnsupportedSQL

FOLDER = "sinks"  # of a warehouse: what relative paths are relative to


def place_of(target: str, home: Place | None) -> Place:
    """The place that a path or URL means, for an engine whose warehouse is at `home`.

    Raises:
        UnsupportedSQL: it is relative, and there is no warehouse.
    """
    if "://" in target and not target.startswith("file://"):
        return ObjectPlace(target)
    path = Path(target.removeprefix("file://"))
    if path.is_absolute():
        return LocalPlace(path)
    if home is None:
        raise UnsupportedSQL(f"the path {target!r} is relative to the warehouse, and this engine has none",
                             instead="write an absolute path or a URL, or open Engine('folder')")
    place = home / FOLDER
    for part in path.parts:
        place = place / part
    return place


def check(target: str, home: Place | None, others: Iterable[Sink]) -> None:
    """Whether a new sink may write there.

    Raises:
        UnsupportedSQL: the path is not one, or is that of the warehouse or of another sink, around it or in it.
        Conflict: something is there already.
        StorageError: it cannot be looked at.
    """
    if ".." in target.replace("\\", "/").split("/") or "\0" in target:
        raise UnsupportedSQL(f"{target!r} is no path for a sink", instead="write it without .., as it is from the root")
    place = place_of(target, home)
    parts = _parts(place)
    if home is not None:
        warehouse, inside = _parts(home), _parts(home / FOLDER)
        allowed = parts[: len(inside)] == inside and len(parts) > len(inside)
        if _touch(parts, warehouse) and not allowed:
            raise UnsupportedSQL(f"{place} would mix the sink's files with those of the warehouse {home}",
                                 instead=f"a path without / at its beginning is a folder in {home / FOLDER}")
    for sink in others:
        if _touch(parts, _parts(place_of(sink.target, home))):
            raise UnsupportedSQL(f"{place} overlaps with the table of the sink {sink.name}, {sink.target!r}",
                                 instead="choose a folder that is in no other sink's, nor around it")
    _check_empty(place)


def _check_empty(place: Place) -> None:
    try:
        if isinstance(place, LocalPlace) and place.path.is_file():
            there = "is a file"
        elif DeltaTable.is_deltatable(place.uri):
            there = "holds a Delta table already"
        else:
            there = "holds files already" if any(place.folders()) else ""
    except (DeltaError, OSError) as problem:
        raise StorageError(f"the place for the sink cannot be reached: {place}: {problem}") from problem
    if there:
        raise Conflict(f"{place} {there}, which a sink does not replace; choose another path, or remove what is there")


def _parts(place: Place) -> tuple[str, ...]:
    if isinstance(place, LocalPlace):
        return ("file", *place.path.resolve().parts)
    scheme, _, rest = place.uri.partition("://")
    return (scheme.removesuffix("a") if scheme == "s3a" else scheme, *filter(None, rest.split("/")))


def _touch(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether they are the same folder, or one is in the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def commit_file(version: int) -> str:
    """The log's entry of a version, as a name in the table's place."""
    return f"{LOG}/{version:020}.json"

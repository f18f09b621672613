"""Where a sink's table is: a folder or the URL of an object store, outside the warehouse and other sinks."""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import reduce
from operator import truediv
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from halfjoin.catalog.models import Sink
from halfjoin.engine.storage.paths import check_name, check_url, is_relative, is_url, local_path
from halfjoin.engine.storage.place import LocalPlace, ObjectPlace, Place
from halfjoin.engine.system.panics import panics_caught
from halfjoin.errors import Conflict, StorageError, UnsupportedSQL

SINK = "halfjoin.sink"  # in each commit of a sink's table: the sink's id
FOLDER = "sinks"  # the folder of a warehouse that relative paths start from


def normalized(target: str) -> str:
    """The path or URL of a new sink as the catalog keeps it: every reader finds the same place, from anywhere.

    Raises:
        UnsupportedSQL: the text is not a path or URL for a sink.
    """
    if ".." in target.replace("\\", "/").split("/"):
        raise UnsupportedSQL(f"{target!r} is not a path for a sink",
                             remedy="write the path from the root, without ..")
    try:
        if is_url(target):
            check_url(target)
            return target
        if is_relative(target):
            check_name(target)
            return target
        return str(local_path(target))
    except StorageError as problem:
        raise UnsupportedSQL(f"{target!r} is not a path for a sink: {problem.reason}",
                             remedy=problem.remedy) from problem


def target_place(target: str, home: Place | None) -> Place:
    """The place that a normalized path or URL means, for an engine whose warehouse is at `home`.

    Raises:
            StorageError: a link leads out of the folder for relative paths.
    """
    if is_url(target):
        return ObjectPlace(target)
    if home is None or not is_relative(target):
        return LocalPlace(Path(target))
    if not isinstance(home, LocalPlace):
        return reduce(truediv, Path(target).parts, home / FOLDER)
    root = home.path / FOLDER
    path = (root / target).resolve()
    if root not in (path, *path.parents):
        raise StorageError(f"{root / target} leads out of {root}, to {path}",
                           remedy="write where the table is to be as an "
                           "absolute path, or remove the link", path=str(path))  # fmt: skip
    return LocalPlace(path)


def check(target: str, home: Place | None, others: Iterable[Sink], former: Container[str]) -> None:
    """Check that a new sink may write to a normalized path. It may take over the table of a `former` sink (sinks' ids).

    Raises:
        UnsupportedSQL: the path overlaps with the warehouse or with another sink.
        Conflict: something else is there already.
        StorageError: the place cannot be reached.
    """
    if home is None and is_relative(target):
        raise UnsupportedSQL(f"the path {target!r} is relative to the warehouse, and this engine has none",
                             remedy="write an absolute path or a URL, or open Engine('folder')")
    try:
        parts = _parts(target, home)
    except StorageError as problem:
        raise UnsupportedSQL(problem.reason, remedy=problem.remedy) from problem
    if home is not None:
        warehouse = _parts(str(home), None)
        allowed = parts[: len(warehouse) + 1] == (*warehouse, FOLDER) and len(parts) > len(warehouse) + 1
        if _touch(parts, warehouse) and not allowed:
            raise UnsupportedSQL(f"{target!r} would mix the sink's files with those of the warehouse {home}",
                                 remedy=f"a path that does not begin with / is a folder in {home / FOLDER}")
    for sink in others:
        if _touch(parts, _sink_parts(sink, home)):
            raise UnsupportedSQL(f"{target!r} overlaps with the table of the sink {sink.name}, {sink.target!r}",
                                 remedy="choose a folder that is not inside or around another sink's")
    _check_empty(target, home, former)


def _check_empty(target: str, home: Place | None, former: Container[str]) -> None:
    try:
        with panics_caught():
            place = target_place(target, home)
            if isinstance(place, LocalPlace) and place.path.exists() and not place.path.is_dir():
                there = "is a file"
            elif DeltaTable.is_deltatable(place.uri):
                ours = DeltaTable(place.uri).history(1)[0].get(SINK) in former
                there = "" if ours else "holds a Delta table already"
            else:
                there = "holds files already" if any(place.names()) else ""
    except (DeltaError, OSError, ValueError) as problem:
        raise StorageError(f"the place for the sink cannot be reached: {target}: {problem}",
                           path=str(target)) from problem
    if there:
        raise Conflict(f"{place} {there}, which a sink does not replace",
                       remedy="choose another path, or remove what is there")


def _sink_parts(sink: Sink, home: Place | None) -> tuple[str, ...]:
    """The parts of a sink's path; none if its path leads out of its folder by now."""
    try:
        return _parts(sink.target, home)
    except StorageError:
        return ()


def _parts(target: str, home: Place | None) -> tuple[str, ...]:
    """The parts of a path from the root of its file system or store. It does not access the store."""
    if isinstance(home, LocalPlace) or not is_relative(target):
        target = str(target_place(target, home)) if not is_url(target) else target
    else:
        target = f"{home}/{FOLDER}/{target}"
    if not is_url(target):
        return ("file", *Path(target).resolve().parts)
    scheme, _, rest = target.partition("://")
    return ("s3" if scheme == "s3a" else scheme, *filter(None, rest.split("/")))


def _touch(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two folders are the same, or one is inside the other."""
    shorter = min(len(one), len(other))
    return bool(shorter) and one[:shorter] == other[:shorter]

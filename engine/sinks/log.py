"""The log of a sink's table: which files a version has, what takes one out, and what is not of this sink."""

from __future__ import annotations

import time as clock

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.transaction import RemoveAction

from halfjoin.engine.storage.commits import Torn, commit
from halfjoin.engine.storage.place import LOG, LocalPlace, Place


def files_of(table: DeltaTable) -> pa.Table:
    """The files that are in a version, with their statistics."""
    return pa.table(table.get_add_actions(flatten=True))


def removed_file(files: pa.Table, number: int, changes: bool) -> RemoveAction:
    """What takes one of these files out of the table; whether that `changes` its rows."""
    now = int(clock.time() * 1000)
    return RemoveAction(files["path"][number].as_py(), changes, now, files["size_bytes"][number].as_py())


def mend(place: Place) -> None:
    """Take the last commit away where a power failure left a part: it never was one; its batch comes again."""
    if not isinstance(place, LocalPlace):
        return
    entries = [name for name in (place / LOG).names() if name.endswith(".json")]
    last = max((int(name.removesuffix(".json")) for name in entries if name[:20].isdigit()), default=0)
    try:
        commit(place, last)
    except Torn:
        place.cut(last - 1)


def strange(place: Place, version: int) -> str:
    """What to say of a version that somebody else made."""
    last = commit(place, version)
    operation = "?" if last is None else last.operation
    return (
        f"somebody else wrote the table {place}: version {version} ({operation}) is not this sink's, which therefore "
        "leaves the table alone; DROP SINK, and create it again with another path"
    )

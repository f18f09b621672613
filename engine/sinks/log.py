"""Read and mend the log of a sink's table: the files of a version, the removal of a file, commits of others."""

from __future__ import annotations

import time as clock

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import RemoveAction

from halfjoin.engine.storage.commits import Torn, commit, drop_checkpoints
from halfjoin.engine.storage.place import LOG, LocalPlace, Place


def files_of(table: DeltaTable) -> pa.Table:
    """The files of a version, with their statistics."""
    return pa.table(table.get_add_actions(flatten=True))


def removed_file(files: pa.Table, number: int, changes: bool) -> RemoveAction:
    """The action that removes one of these files from the table. `changes`: whether that changes the table's rows."""
    now = int(clock.time() * 1000)
    return RemoveAction(files["path"][number].as_py(), changes, now, files["size_bytes"][number].as_py())


def mend(place: Place) -> None:
    """Remove the last commit if a power failure left only a part of it. It never counted, and its batch comes again."""
    if not isinstance(place, LocalPlace):
        return
    entries = [name for name in (place / LOG).names() if name.endswith(".json")]
    last = max((int(name.removesuffix(".json")) for name in entries if name[:20].isdigit()), default=0)
    try:
        commit(place, last)
    except Torn:
        place.cut(last - 1)


def opened(place: Place) -> DeltaTable | None:
    """The table at its newest version. None: there is none. If it cannot be read, without its newest checkpoint."""
    try:
        return DeltaTable(place.uri)
    except TableNotFoundError:
        return None
    except DeltaError:
        if not isinstance(place, LocalPlace):
            raise
        drop_checkpoints(place)
        return DeltaTable(place.uri)


def strange(place: Place, version: int) -> str:
    """The message about a version that somebody else made."""
    last = commit(place, version)
    operation = "?" if last is None else last.operation
    return (
        f"somebody else wrote the table {place}: version {version} ({operation}) is not this sink's. The sink leaves "
        "the table alone; DROP SINK, and create it again with another path"
    )

"""A table that follows a Delta table: a snapshot of its rows first, then the changes of each version, exactly once.

How far the table has followed is the newest of its batch ids, which the store keeps in one transaction with the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from halfjoin.engine.feeds.delta_source import RESTART, DeltaSource
from halfjoin.engine.feeds.ids import Place, follow_id
from halfjoin.engine.rows import Rows
from halfjoin.sql.errors import Conflict


def batches(table: str, source: DeltaSource, last: Place | None, *, restart: bool) -> Iterator[tuple[Any, str]]:
    """The batches that are due, each with its id.

    Raises:
        Conflict: the source is another table than before, or older. What `DeltaSource` raises.
    """
    if last is None or restart:
        start = Place(0 if last is None else last.start + 1, source.id, source.version)
        rows = source.snapshot()
        yield Rows(rows, "contents") if restart else rows, follow_id(table, start)
        return
    if last.source != source.id:
        raise Conflict(
            f"{table} has followed the Delta table {last.source} up to version {last.version}, and {source} is "
            f"{source.id}: it was made anew, or is another one. A table follows one source; {RESTART}"
        )
    if source.version < last.version:
        raise Conflict(f"{source} is at version {source.version}, and {table} has followed it up to {last.version}: it "
                       f"was put back to an older state; {RESTART}")  # fmt: skip
    for version in range(last.version + 1, source.version + 1):
        yield source.changes(version), follow_id(table, Place(last.start, source.id, version))

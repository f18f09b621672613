"""A table that follows a Delta table: its rows at a version first, then the changes of each version, exactly once.

How far the table has followed is the newest of its batch ids, which the store keeps in one transaction with the rows.
The rows to begin with may be many, so they come in pieces; times stay open until the last of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from halfjoin.engine.feeds.delta_source import RESTART, DeltaSource
from halfjoin.engine.feeds.ids import WHOLE, Place, follow_id
from halfjoin.engine.rows import Rows
from halfjoin.sql.errors import Conflict


@dataclass(frozen=True, slots=True)
class Due:
    """A batch to be applied: its rows, its id, and whether its times are closed."""

    rows: Any
    batch_id: str
    close: bool = True


def batches(table: str, source: DeltaSource, last: Place | None, *, restart: bool) -> Iterator[Due]:
    """The batches that are due.

    Raises:
        Conflict: the source is another table than before, or older. What `DeltaSource` raises.
    """
    if last is None:
        yield from _pieces(table, source, Place(0, source.id, source.version, -1))
        return
    if restart:
        start = Place(last.start + 1, source.id, source.version)
        yield Due(Rows(source.snapshot(), "contents"), follow_id(table, start))
        return
    if last.source != source.id:
        raise Conflict(
            f"{table} has followed the Delta table {last.source} up to version {last.version}, and {source} is "
            f"{source.id}: it was made anew, or is another one. A table follows one source; {RESTART}"
        )
    if source.version < last.version:
        raise Conflict(f"{source} is at version {source.version}, and {table} has followed it up to {last.version}: it "
                       f"was put back to an older state; {RESTART}")  # fmt: skip
    if last.piece != WHOLE:
        yield from _pieces(table, source, last)
    for version in range(last.version + 1, source.version + 1):
        yield Due(source.changes(version), follow_id(table, Place(last.start, source.id, version)))


def _pieces(table: str, source: DeltaSource, last: Place) -> Iterator[Due]:
    """The pieces of a version after the last one that the table has."""
    for number, (rows, final) in enumerate(source.pieces(last.version)):
        if number > last.piece:
            place = last._replace(piece=WHOLE if final else number)
            yield Due(rows, follow_id(table, place), close=final)

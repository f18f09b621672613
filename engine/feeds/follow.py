"""A table that follows a Delta table: its rows at a version first, then the changes of each version, exactly once.

How far the table has followed is the newest of its batch ids, which the store keeps in one transaction with the rows.
A version may have many rows, so it comes in pieces. They are at one time, which stays open until the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from halfjoin.catalog.models import Table
from halfjoin.engine.batch.ids import CHANGES, ROWS, WHOLE, Position, follow_id
from halfjoin.engine.feeds.delta_source import RESTART, DeltaSource, Piece
from halfjoin.engine.intake.rows import Rows, submitted
from halfjoin.errors import Conflict


@dataclass(frozen=True, slots=True)
class Due:
    """A batch to be applied: its rows, its id, the version that it is of, and whether its times are closed."""

    rows: Callable[[], Any]
    batch_id: str
    version: int
    close: bool = True


def versions(table: Table, source: DeltaSource, last: Position | None, *, restart: bool) -> Iterator[list[Due]]:
    """The batches that are due, version by version.

    Raises:
        Conflict: the source is another table than before, or older. What `DeltaSource` raises.
        InvalidRow: before the first of several pieces of changes, if a later one has a value that the table does not
            take.
    """
    if last is None:
        yield _due(table, Position(0, source.id, source.version), source.rows(source.version), ROWS)
        return
    if restart:
        start = Position(last.start + 1, source.id, source.version)
        yield [Due(lambda: Rows(source.snapshot(), "contents"), follow_id(table.name, start), source.version)]
        return
    if last.source != source.id:
        raise Conflict(
            f"{table.name} has followed the Delta table {last.source} up to version {last.version}, and {source} is "
            f"{source.id}: it was made anew, or is another one. A table follows one source", remedy=RESTART,
            name=table.name, holder=str(last.source),
        )
    if source.version < last.version:
        raise Conflict(f"{source} is at version {source.version}, and {table.name} has followed it up to "
                       f"{last.version}: it was put back to an older state", remedy=RESTART,
                       name=table.name, holder=str(last.source))  # fmt: skip
    if last.piece < CHANGES:
        yield _due(table, last, source.rows(last.version), ROWS)[last.piece - ROWS + 1 :]
    elif last.piece < WHOLE:
        yield _due(table, last, source.changes(last.version), CHANGES)[last.piece - CHANGES + 1 :]
    for version in range(last.version + 1, source.version + 1):
        pieces = source.changes(version)
        if len(pieces) > 1:
            for piece in pieces:  # once one of them is in the table, the others should follow
                submitted(table, piece())
        yield _due(table, Position(last.start, source.id, version), pieces, CHANGES)


def _due(table: Table, place: Position, pieces: Sequence[Piece], first: int) -> list[Due]:
    """A batch for each piece of a version."""
    final = len(pieces) - 1
    numbers = [WHOLE if i == final else first + i for i in range(len(pieces))]
    return [
        Due(piece, follow_id(table.name, place._replace(piece=number)), place.version, close=number == WHOLE)
        for piece, number in zip(pieces, numbers, strict=True)
    ]

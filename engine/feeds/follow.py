"""A table that follows a Delta table: its rows at a version first, then the changes of each version, exactly once.

How far the table has followed is the newest of its batch ids, which the store keeps in one transaction with the rows.
A version may have many rows, so it comes in pieces. They are at one time, which stays open until the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from halfjoin.catalog.models import Table
from halfjoin.engine.batch.applied import Applied
from halfjoin.engine.batch.ids import CHANGES, ROWS, WHOLE, Position, follow_id, follow_prefix, position_of
from halfjoin.engine.batch.writer import Writer
from halfjoin.engine.feeds.delta_source import RESTART, DeltaSource, Piece
from halfjoin.engine.intake.rows import GivenRows, submitted
from halfjoin.engine.intake.times import Time, to_time
from halfjoin.engine.system.turns import Turns
from halfjoin.errors import Conflict


@dataclass(frozen=True, slots=True)
class Due:
    """A batch to be applied: its rows, its id, the version that it is of, and whether its times are closed."""

    rows: Callable[[], Any]
    batch_id: str
    version: int
    close: bool = True


@dataclass(frozen=True, slots=True)
class Follower:
    """A table, and how far it has followed its source: to `last`, at `time` if more pieces of that version are to come.

    `writer` is the engine's, `apply` its method for one batch, `turns` those of its threads.
    """

    table: Table
    last: Position | None
    time: int | None
    writer: Writer
    apply: Callable[..., Applied]
    turns: Turns

    def follow(
        self, source: DeltaSource, time: Callable[[int], Time] | None, *, restart: bool
    ) -> list[Applied]:
        """Apply what is due; see `Engine.follow`. The caller holds `turns.following`, and no lock."""
        done: list[Applied] = []
        at = self.time
        for pieces in versions(self.table, source, self.last, restart=restart):
            with self.turns.alone(len(pieces) > 1):
                for one in pieces:
                    if time is not None:
                        at = to_time(time(one.version))
                    elif at is not None and at < self.writer.state.upper:
                        at = None
                    done.append(self.apply({self.table.name: one.rows()}, at, one.batch_id, close=one.close))
                    at = None if one.close else done[-1].time
        return done


def follower(writer: Writer, name: str, apply: Callable[..., Applied], turns: Turns) -> Follower:
    """A table as it is now; the lock is held.

    Raises:
        UnknownName: there is none of that name.
    """
    table = writer.state.catalog.table(name)
    newest = writer.store.newest(follow_prefix(name))
    last, at = position_of(newest), None
    if newest is not None and last is not None and last.piece != WHOLE:
        known = writer.store.answered(writer.state, newest)
        at = None if known is None else known[1].time
    return Follower(table, last, at, writer, apply, turns)


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
        yield [Due(lambda: GivenRows(source.snapshot(), "contents"), follow_id(table.name, start), source.version)]
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

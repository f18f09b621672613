"""Make a table follow a Delta table: first the rows of a version, then the changes of each version, exactly once.

The newest of the table's batch ids says how far it has followed. The store keeps the id in one transaction with the
rows. A version may have many rows, so it comes in pieces. All have one time, which stays open until the last piece.
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
    """A batch to apply: its rows, its id, its version of the source, and whether it closes its time."""

    rows: Callable[[], Any]
    batch_id: str
    version: int
    close: bool = True


@dataclass(frozen=True, slots=True)
class Follower:
    """A table that has followed its source up to `last`. `time` is the time of the version if pieces of it are missing.

    `writer` is the engine's writer, `apply` its method for one batch, `turns` the turns of its threads.
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
        """Apply the batches that are due; see `Engine.follow`. The caller holds `turns.following`, and not the lock."""
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
    """The follower of a table, with its state of now. The caller holds the lock.

    Raises:
        UnknownName: there is no table of that name.
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
        Conflict: the source is another table than before, or at an older version. Also the errors of `DeltaSource`.
        InvalidRow: the table does not accept a value. Several pieces of changes are all checked before the first one.
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
            f"{table.name} has followed the Delta table {last.source} up to version {last.version}, but {source} is "
            f"{source.id}: it was made anew, or is another one. A table follows one source", remedy=RESTART,
            name=table.name, holder=str(last.source),
        )
    if source.version < last.version:
        raise Conflict(f"{source} is at version {source.version}, but {table.name} has followed it up to "
                       f"{last.version}: it was put back to an older state", remedy=RESTART,
                       name=table.name, holder=str(last.source))  # fmt: skip
    if last.piece < CHANGES:
        yield _due(table, last, source.rows(last.version), ROWS)[last.piece - ROWS + 1 :]
    elif last.piece < WHOLE:
        yield _due(table, last, source.changes(last.version), CHANGES)[last.piece - CHANGES + 1 :]
    for version in range(last.version + 1, source.version + 1):
        pieces = source.changes(version)
        if len(pieces) > 1:
            for piece in pieces:  # check all before the first is applied: the others must be able to follow it
                submitted(table, piece())
        yield _due(table, Position(last.start, source.id, version), pieces, CHANGES)


def _due(table: Table, place: Position, pieces: Sequence[Piece], first: int) -> list[Due]:
    """One batch per piece of a version."""
    final = len(pieces) - 1
    numbers = [WHOLE if i == final else first + i for i in range(len(pieces))]
    return [
        Due(piece, follow_id(table.name, place._replace(piece=number)), place.version, close=number == WHOLE)
        for piece, number in zip(pieces, numbers, strict=True)
    ]

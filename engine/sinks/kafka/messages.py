"""What a delivery changes, as rows in the format of a topic: at most one change for each key.

With a key, a change says the row of the key from now on. The rows of a key in one delivery are at most one that goes
and one that comes, as the key tells rows apart. Without a key (envelope `debezium` only), each copy of a row is a
change of its own, and the whole row is the message's key, so that all about one row is in one partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.cells import cell
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes
from halfjoin.engine.updates.consolidate import consolidate, groups
from halfjoin.engine.updates.updates import Ints, Updates, concat
from halfjoin.errors import DataError
from halfjoin.sql.types import SqlType

_SLICE = 1 << 16  # rows that are written at a time


@dataclass(frozen=True, slots=True)
class Shape:
    """What messages show: a collection's columns, the key's columns (those of `required` are never NULL), and whether
    the envelope is Debezium's."""

    collection: str
    columns: Mapping[str, SqlType]
    key: Sequence[str]
    debezium: bool
    required: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """Changes of rows: their keys, the row before and the row after, as the format writes them; NULL where there is
    none."""

    key: pa.Array
    before: pa.Array
    after: pa.Array


class Format(Protocol):
    """How a topic's messages are written. Rows and keys are arrays of bytes or texts, equal if and only if the format
    writes equal ones."""

    @property
    def shape(self) -> Shape:
        """What the messages show."""

    def key(self, rows: Updates) -> pa.Array:
        """The keys of rows."""

    def row(self, rows: Updates) -> pa.Array:
        """Rows, with all columns."""

    def row_as_key(self, rows: pa.Array) -> pa.Array:
        """The keys of written rows that are their own keys."""

    def envelope(self, some: Change, op: pa.Array, upper: int) -> pa.Array:
        """The values of messages in Debezium's envelope, with an operation for each change."""

    def read(self, key: bytes, value: bytes) -> tuple[str | bytes, str | bytes | None, str | bytes | None]:
        """The key of a message that a sink wrote, the row before and the row after.

        Raises:
            ValueError: the message is in another format.
        """


def changes(format: Format, pieces: Iterable[Updates]) -> Iterator[Change]:
    """What the pieces change, added up. They are read several times if they are many.

    Raises:
        DataError: two rows have one key, or a row would be there fewer than no times.
    """
    shape = format.shape
    total = sum(map(len, pieces))
    parts = max(1, -(-total // limits.PIECE_ROWS))
    for part in range(parts):
        some = [piece if parts == 1 else _part(shape, piece, part, parts) for piece in pieces]
        if some:
            net = consolidate(concat(some), by_time=False)
            yield from (_keyed(format, net) if shape.key else _plain(format, net))


def _part(shape: Shape, piece: Updates, part: int, parts: int) -> Updates:
    """The updates of one part of the keys, so that what belongs together comes together."""
    columns = [piece.columns[name] for name in shape.key or shape.columns]
    return piece.filter(codes(columns, len(piece)).view(np.uint64) % np.uint64(parts) == part)


def _keyed(format: Format, net: Updates) -> Iterator[Change]:
    shape = format.shape
    _, which = np.unique(groups([net.columns[name] for name in shape.key], len(net)), return_inverse=True)
    goes, comes = (_places(shape, net, which, np.flatnonzero(net.diff == sign)) for sign in (-1, 1))
    if len(wrong := np.flatnonzero(np.abs(net.diff) > 1)):
        raise _doubled(shape, net, int(wrong[0]))
    for start in range(0, len(goes), _SLICE):
        gone, come = goes[start : start + _SLICE], comes[start : start + _SLICE]
        some = np.where(come < 0, gone, come)
        yield Change(format.key(net.take(some)), _rows(format, net, gone), _rows(format, net, come))


def _places(shape: Shape, net: Updates, which: Ints, rows: Ints) -> Ints:
    """For each key, the row of it among `rows`, -1 if there is none."""
    places = np.full(int(which.max(initial=-1)) + 1, -1, np.int64)
    places[which[rows]] = rows
    if len(again := np.flatnonzero(places[which[rows]] != rows)):
        raise _doubled(shape, net, int(rows[again[0]]))
    return places


def _doubled(shape: Shape, net: Updates, row: int) -> DataError:
    key = {name: cell(net.columns[name], row) for name in shape.key}
    return DataError(f"two rows of {shape.collection} have the key {key}, and a topic has one for each key")


def _plain(format: Format, net: Updates) -> Iterator[Change]:
    order = np.argsort(np.where(net.diff < 0, 0, 1), kind="stable")
    rows = np.repeat(order, np.abs(net.diff[order]))
    for start in range(0, len(rows), _SLICE):
        some = net.take(rows[start : start + _SLICE])
        written = format.row(some)
        goes = pa.array(some.diff < 0)
        yield Change(format.row_as_key(written), pc.if_else(goes, written, None), pc.if_else(goes, None, written))


def _rows(format: Format, net: Updates, places: Ints) -> pa.Array:
    """The rows at some places, NULL where the place is -1."""
    found = np.flatnonzero(places >= 0)
    at = np.full(len(places), -1, np.int64)
    at[found] = np.arange(len(found))
    return format.row(net.take(places[found])).take(pa.array(at, mask=at < 0))


def messages(format: Format, some: Change, upper: int, *, snapshot: bool) -> tuple[pa.Array, pa.Array]:
    """The keys and the values of messages. A row that goes has a message without a value as well, if it has a key: it
    lets a topic forget the key.

    `snapshot`: the rows are those that a new topic starts with.
    """
    if not format.shape.debezium:
        return some.key, some.after
    before, after = some.before, some.after
    op = pc.if_else(after.is_null(), "d", pc.if_else(before.is_null(), "r" if snapshot else "c", "u"))
    value = format.envelope(some, op, upper)
    gone = np.flatnonzero(after.is_null().to_numpy(zero_copy_only=False))
    if not format.shape.key or not len(gone):
        return some.key, value
    order = np.sort(np.concatenate([2 * np.arange(len(value)), 2 * gone + 1]))
    rows, empty = pa.array(order // 2), pa.array(order % 2 == 1)
    return some.key.take(rows), pc.if_else(empty, None, value.take(rows))

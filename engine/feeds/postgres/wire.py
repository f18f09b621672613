"""Reads the messages of pgoutput, PostgreSQL's plugin of logical decoding: whole columns at a time, without a row loop.

A message is a letter and its fields; numbers are big-endian. The formats are those of PostgreSQL's manual, "Logical
Replication Message Formats", protocol version 1. Many messages lie one after the other in one array of bytes. A field
is read for all messages at once: the places of the next field follow from the sizes of this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from halfjoin.engine.updates.updates import Ints, Mask
from halfjoin.errors import StorageError

Bytes: TypeAlias = npt.NDArray[np.uint8]

BEGIN, COMMIT, RELATION, INSERT, UPDATE, DELETE, TRUNCATE = (ord(letter) for letter in "BCRIUDT")
CHANGES = (INSERT, UPDATE, DELETE, TRUNCATE)
NEW, OLD, KEY = ord("N"), ord("O"), ord("K")  # which row a tuple is: after the change, before it, its key before it
_NULL, _UNCHANGED, _TEXT = ord("n"), ord("u"), ord("t")


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages in `data`. `starts` has their places, and at last the end."""

    data: Bytes
    starts: Ints

    @property
    def kinds(self) -> Bytes:
        """The letter of each message."""
        return self.data[self.starts[:-1]]

    def number(self, which: Ints, at: int, width: int) -> Ints:
        """The number of `width` bytes at a place of some messages, counted from their letter."""
        return numbers(self.data, self.starts[which] + at, width)

    def one(self, which: int) -> bytes:
        """The bytes of a message."""
        return self.data[self.starts[which] : self.starts[which + 1]].tobytes()


def messages(given: Sequence[bytes]) -> Messages:
    """Messages one after the other."""
    sizes = np.fromiter(map(len, given), np.int64, len(given))
    return Messages(np.frombuffer(b"".join(given), np.uint8), np.concatenate([[0], np.cumsum(sizes)]))


def numbers(data: Bytes, at: Ints, width: int) -> Ints:
    """The big-endian numbers of `width` bytes at some places, without a sign unless they have eight."""
    found = np.zeros(len(at), np.int64)
    for byte in range(width):
        found = (found << 8) | data[at + byte]
    return found


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column as pgoutput describes it: the `type` is an oid, `modifier` its length or digits; `key`: it identifies a
    row in the log."""

    name: str
    type: int
    modifier: int
    key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as the messages after this one have it. `identity` is its REPLICA IDENTITY: d, n, f or i."""

    number: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


def relation(message: bytes) -> Relation:
    """What a Relation message says."""
    schema, name, rest = message[5:].split(b"\0", 2)
    count, at, columns = int.from_bytes(rest[1:3], "big"), 3, []
    for _ in range(count):
        end = rest.index(b"\0", at + 1)
        kind, modifier = rest[end + 1 : end + 5], rest[end + 5 : end + 9]
        columns.append(RelationColumn(rest[at + 1 : end].decode(), int.from_bytes(kind, "big"),
                                      int.from_bytes(modifier, "big", signed=True), bool(rest[at] & 1)))  # fmt: skip
        at = end + 9
    return Relation(int.from_bytes(message[1:5], "big"), schema.decode(), name.decode(), chr(rest[0]), tuple(columns))


def truncated(message: bytes) -> Iterable[int]:
    """The numbers of the relations that a Truncate message empties."""
    count = int.from_bytes(message[1:5], "big")
    return [int.from_bytes(message[6 + 4 * i : 10 + 4 * i], "big") for i in range(count)]


@dataclass(frozen=True, slots=True)
class Tuples:
    """Rows of one relation in `data`: for each column the kind of the values, their places and their sizes in bytes.

    `stop` is the place after each row.
    """

    data: Bytes
    kinds: tuple[Bytes, ...]
    places: tuple[Ints, ...]
    sizes: tuple[Ints, ...]
    stop: Ints

    def unchanged(self, column: int) -> Mask:
        """Where a value was not sent, because it is stored out of line and the change left it as it was."""
        mask: Mask = self.kinds[column] == _UNCHANGED
        return mask

    def texts(self, column: int) -> pa.StringArray:
        """The values of a column as the server writes them; NULL also where a value was not sent."""
        sizes, places = self.sizes[column], self.places[column]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        within = np.arange(ends[-1]) + np.repeat(places - ends[:-1], sizes)
        valid = pa.array(self.kinds[column] == _TEXT)
        return pa.StringArray.from_buffers(
            len(sizes), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(self.data[within]), valid.buffers()[1],
        )  # fmt: skip


def tuples(data: Bytes, at: Ints, columns: int) -> Tuples:
    """The rows at some places.

    Raises:
        StorageError: the server sent something else.
    """
    if (numbers(data, at, 2) != columns).any():
        raise StorageError("the server sent a row with another number of columns than its table")
    kinds, places, sizes, at = [], [], [], at + 2
    for _ in range(columns):
        kind = data[at]
        sent = kind == _TEXT
        if not (sent | (kind == _NULL) | (kind == _UNCHANGED)).all():
            raise StorageError("the server sent a value that is neither text, NULL nor unchanged")
        size = np.zeros(len(at), np.int64)
        size[sent] = numbers(data, at[sent] + 1, 4)
        kinds.append(kind)
        places.append(at + 5)
        sizes.append(size)
        at = at + 1 + np.where(sent, 4 + size, 0)
    return Tuples(data, tuple(kinds), tuple(places), tuple(sizes), at)

"""The lines of a journal's entries: their numbers, what they hold, and the SQL that tells which of them are needed.

An entry is some lines, which the table `line` has one after the other: a line for each piece of a collection's updates,
and a last one, of no collection, with the times that the entry closes. So a batch appends to the end of one table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple
from typing import TypeAlias

from halfjoin.engine.batch.clock import Closing
from halfjoin.engine.storage.encoding import Piece
from halfjoin.engine.storage.parquet import StoredFile

Value: TypeAlias = str | int | float | bytes | None

LINES = 1 << 20  # the lines of an entry have numbers from its own times this; that of the last one is the highest
NOBODY = 0  # the collection of last lines
LINE_BYTES = 64  # about what a line takes besides its updates
INSERT = "INSERT INTO line VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

_WAITS = f"c.id = line.collection AND c.flushed < line.id / {LINES}"
WAITING = f"FROM line CROSS JOIN collection AS c ON {_WAITS}"  # the lines with updates that no Delta table has yet
# The lines after a number and up to another that nobody needs: last lines below a third number, flushed updates.
DONE = f"""FROM line WHERE id > ? AND id <= ? AND
    CASE collection WHEN {NOBODY} THEN id < ? ELSE NOT EXISTS (SELECT 1 FROM collection AS c WHERE {_WAITS}) END"""
DROPPED = f"FROM line WHERE collection <> {NOBODY} AND collection NOT IN (SELECT id FROM collection)"


def first(entry: int) -> int:
    """The number of an entry's first line."""
    return entry * LINES


def lines(
    entry: int, pieces: Mapping[int, Iterable[Piece | StoredFile]], upper: int, closing: Closing | None = None
) -> Iterator[tuple[Value, ...]]:
    """The lines of an entry: updates by collection, and what it closes. `upper` is the one after it."""
    found = ((collection, piece) for collection, parts in pieces.items() for piece in parts)
    for number, (collection, piece) in enumerate(found, first(entry)):
        data, file = (piece.data, None) if isinstance(piece, Piece) else (b"", json.dumps(astuple(piece)))
        yield number, collection, piece.rows, piece.latest, piece.size, data, file, None, None, None, None
    low, submitted, batch = (upper, None, None) if closing is None else (closing.low, closing.submitted, closing.batch)
    yield first(entry + 1) - 1, NOBODY, None, None, None, None, None, low, upper, submitted, batch

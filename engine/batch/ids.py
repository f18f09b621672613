"""Batch ids of feeds, made from the table, the feed and the place in it: what is replayed has the id that it had.

Dropping a table forgets its feeds' ids, so that a new table of the same name is fed from the start.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

_ROOT = "halfjoin/"  # how the ids of feeds begin; users' own should not


def prefix_of(table: str) -> str:
    """How the ids of all feeds of a table begin."""
    return f"{_ROOT}{quote(table, safe='')}/"


def table_of(batch_id: str) -> str | None:
    """The table that a feed's batch was for, None where the id is a user's own."""
    return unquote(batch_id.split("/")[1]) if batch_id.startswith(_ROOT) else None


def sink_id(table: str, sink: str, epoch: int) -> str:
    """Of an epoch of the streaming query that writes through a sink."""
    return f"{prefix_of(table)}sink/{quote(sink, safe='')}/{epoch}"


ROWS = 0  # the number of the first piece of a version's rows
CHANGES = 500_000_000  # the number of the first piece of what a version changed
WHOLE = 999_999_999  # in place of the number of a piece: the version is complete


class Position(NamedTuple):
    """How far a table has followed a Delta table: which, to which version, and how often it has started anew.

    A version comes in pieces, of which `piece` was the last so far.
    """

    start: int
    source: str
    version: int
    piece: int = WHOLE


def follow_prefix(table: str) -> str:
    """How the ids of the versions that a table has followed begin; the greatest is the newest."""
    return f"{prefix_of(table)}follow/"


def follow_id(table: str, place: Position) -> str:
    """Of a version of the Delta table that a table follows."""
    source = quote(place.source, safe="")
    return f"{follow_prefix(table)}{place.start:09}/{source}/{place.version:020}/{place.piece:09}"


def position_of(batch_id: str | None) -> Position | None:
    """What a `follow_id` was made from."""
    if batch_id is None:
        return None
    start, source, version, piece = batch_id.split("/")[-4:]
    return Position(int(start), unquote(source), int(version), int(piece))


def reused(batch_id: str) -> str:
    """What to say where the id of a batch came with other content before."""
    found = re.fullmatch(f"{_ROOT}([^/]*)/sink/([^/]*)/([^/]*)", batch_id)
    if found is None:
        return f"batch id {batch_id!r} was used for another batch; a new batch needs a new id"
    table, sink, epoch = map(unquote, found.groups())
    return (
        f"the sink {sink!r} of {table} has taken epoch {epoch} before, with other rows. Two queries into one table "
        "need two names: engine.sink(..., name=...). A query whose checkpoint was removed counts from 0 again: give "
        "its sink a new name, and start the query behind the rows that the table has, or submit upserts. A replayed "
        "epoch must have the same rows, so columns of rand() or uuid() must not be among them"
    )

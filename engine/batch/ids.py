"""Batch ids of feeds, made from the table, the feed and the position in it, so a replayed batch has the same id. So are
those of files that are loaded, from the table and the content.

Dropping a table forgets these ids, so that a new table of the same name is fed from the start, and takes its files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote, unquote

_ROOT = "halfjoin/"  # ids of feeds begin with it; ids of users should not


def prefix_of(table: str) -> str:
    """The prefix of the ids of all feeds of a table."""
    return f"{_ROOT}{quote(table, safe='')}/"


def load_id(table: str, file: str, content: str) -> str:
    """The id of a file that is loaded: its table and its content. So the same content is not loaded twice."""
    return f"load {table} {file} {content}"


def loads_of(table: str, tables: Iterable[str]) -> list[str]:
    """The prefixes of the ids of all files that were loaded into a table; none if those of another of the `tables` may
    have it, too, as a table's name may have blanks."""
    prefix = f"load {table} "
    return [] if any(f"load {one} ".startswith(prefix) for one in tables if one != table) else [prefix]


def table_of(batch_id: str) -> str | None:
    """The table of a feed's batch id; None for an id of a user."""
    return unquote(batch_id.split("/")[1]) if batch_id.startswith(_ROOT) else None


def sink_id(table: str, sink: str, epoch: int) -> str:
    """The id of an epoch of the streaming query that writes through a sink."""
    return f"{prefix_of(table)}sink/{quote(sink, safe='')}/{epoch}"


ROWS = 0  # the number of the first piece of a version's rows
CHANGES = 500_000_000  # the number of the first piece of a version's changes
WHOLE = 999_999_999  # instead of a piece's number: the version is complete


class Position(NamedTuple):
    """How far a table has followed a Delta table: which table, to which version, and how often it has restarted.

    A version comes in pieces; `piece` is the last so far.
    """

    start: int
    source: str
    version: int
    piece: int = WHOLE


def follow_prefix(table: str) -> str:
    """The prefix of the ids of the versions that a table has followed; the greatest id is the newest."""
    return f"{prefix_of(table)}follow/"


def follow_id(table: str, place: Position) -> str:
    """The id of a version of the Delta table that a table follows."""
    source = quote(place.source, safe="")
    return f"{follow_prefix(table)}{place.start:09}/{source}/{place.version:020}/{place.piece:09}"


def position_of(batch_id: str | None) -> Position | None:
    """The position that a `follow_id` was made from."""
    if batch_id is None:
        return None
    start, source, version, piece = batch_id.split("/")[-4:]
    return Position(int(start), unquote(source), int(version), int(piece))


def reused(batch_id: str, *, anew: bool = False) -> str:
    """The error text for a batch id that was used with other content. `anew`: with the same rows, but a table of the
    batch was dropped and made anew since."""
    if anew:
        return (f"batch id {batch_id!r} was used for these rows before a table of them was dropped and made anew, "
                "which does not have them; the new table needs a new id")  # fmt: skip
    found = re.fullmatch(f"{_ROOT}([^/]*)/sink/([^/]*)/([^/]*)", batch_id)
    if found is None:
        return f"batch id {batch_id!r} was used for another batch; a new batch needs a new id"
    table, sink, epoch = map(unquote, found.groups())
    return (
        f"the sink {sink!r} of {table} has taken epoch {epoch} before, with other rows. Two queries into one table "
        "need two names: engine.sink(..., name=...). A query whose checkpoint was removed counts from 0 again: give "
        "its sink a new name, and start the query behind the rows that the table has, or submit upserts. A replayed "
        "epoch must have the same rows, so it must not have columns of rand() or uuid()"
    )

"""The rows that the server's tables have at one moment, some at a time, and which changes they contain already.

The slot is made first, then one REPEATABLE READ transaction reads all tables. A transaction that commits between the
two is in the rows and in the log: its number says so (`Seen`), and its changes are left out. None is in neither. For
that, the transactions that were open when the slot was there must have ended before the rows are read (`ended`). One
of them can have written its commit before the place where the slot begins, and yet not be visible, as when it waits for
a synchronous standby.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.postgres.server import Server, number
from halfjoin.engine.feeds.postgres.shapes import Shape, quoted
from halfjoin.engine.feeds.postgres.typed import typed
from halfjoin.engine.feeds.source import needed
from halfjoin.engine.intake.rows import GivenRows, Submitted
from halfjoin.engine.updates.updates import Ints, Mask

_CYCLE = 1 << 32  # the log has the last 32 bits of a transaction's number
_FIRST_FETCH = 100  # rows; later fetches follow from their size
_MOST_FETCH = 10_000


class Seen(BaseModel):
    """The transactions that a snapshot contains: those below `xmin`, and those below `xmax` that are not in `xip`.

    All of them committed before the place `until` of the log.
    """

    model_config = ConfigDict(frozen=True)

    xmin: int
    xmax: int
    xip: tuple[int, ...]
    until: int

    def contains(self, transactions: Ints, commits: Ints) -> Mask:
        """Which transactions the snapshot contains, by their numbers in the log and the places of their commits."""
        apart = (transactions - self.xmax) % _CYCLE
        whole = self.xmax + np.where(apart < _CYCLE // 2, apart, apart - _CYCLE)
        visible: Mask = (commits < self.until) & (whole < self.xmax)
        return visible & ((whole < self.xmin) | ~np.isin(whole, np.array(self.xip, np.int64)))


def newest(server: Server) -> int:
    """The number of a new transaction: those that are open and write have lesser ones. (A snapshot does not list them
    all: its `xmax` is next to the newest that has ended, and some above may be open.)"""
    return int(server.one("SELECT pg_current_xact_id()::text"))


def ended(server: Server, transaction: int) -> bool:
    """Whether a transaction and all with lesser numbers have ended."""
    return int(server.one("SELECT pg_snapshot_xmin(pg_current_snapshot())::text")) > transaction


@dataclass(frozen=True, slots=True)
class Texts(GivenRows):
    """Rows of a table as the server writes them: `data` has an array of texts for each column. The meaning is
    `contents` for a table's first rows, which replace all that it has, and `inserts` for the others."""

    def __len__(self) -> int:
        return len(next(iter(self.data.values()), ()))

    def checked(self, table: Table) -> Submitted:
        """The rows. Raises InvalidRow if a column does not take a value."""
        return Submitted(typed(table, self.data, {}), len(self), None, None, whole=self.meaning == "contents")


class Snapshot:
    """All rows of some tables at one moment, in a transaction that stays open until `close`.

    `found` are the server's tables by the engine's names, `seen` what the moment contains.
    """

    def __init__(self, server: Server, most_rows: int, most_bytes: int) -> None:
        self._server, self._rows, self._bytes = server, most_rows, most_bytes
        server.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        snapshot, until = server.rows("SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text")[0]
        low, high, between = snapshot.split(":")
        inside = tuple(map(int, between.split(","))) if between else ()
        self.seen = Seen(xmin=int(low), xmax=int(high), xip=inside, until=number(until))
        self._parts: Iterator[tuple[str, Texts]] = iter(())
        self._next: tuple[str, Texts] | None = None

    def begin(self, found: Mapping[str, Shape]) -> None:
        """Read these tables, by the engine's names, in their order."""
        self._parts = (part for name, shape in found.items() for part in self._table(name, shape))
        self._next = next(self._parts, None)

    def piece(self) -> tuple[dict[str, Texts], bool]:
        """The next rows, and whether they are the last."""
        piece: dict[str, Texts] = {}
        rows = size = 0
        while self._next is not None and self._next[0] not in piece:
            name, part = self._next
            piece[name] = part
            rows += len(part)
            size += sum(column.nbytes for column in part.data.values())
            self._next = next(self._parts, None)
            if rows >= self._rows or size >= self._bytes:
                break
        return piece, self._next is None

    def close(self) -> None:
        """End the transaction."""
        self._server.run("ROLLBACK")

    def _table(self, name: str, shape: Shape) -> Iterator[tuple[str, Texts]]:
        """The rows of a table in parts; the first replaces what the engine's table has."""
        source = f"{quoted(shape.schema)}.{quoted(shape.name)}"
        chosen = ", ".join(quoted(column.name) for column in shape.columns)
        query = f"SELECT {chosen} FROM {'' if shape.parted else 'ONLY '}{source}"
        meaning: Literal["contents", "inserts"] = "contents"
        for arrays in self._fetched(query + (f" WHERE {shape.where}" if shape.where else ""), shape):
            yield name, Texts(dict(zip((column.name for column in shape.columns), arrays, strict=True)), meaning)
            meaning = "inserts"

    def _fetched(self, query: str, shape: Shape) -> Iterator[list[pa.StringArray]]:
        """The columns of a query's rows, as the server writes them, in parts of bounded size. There is at least one."""
        loader = needed("psycopg.types.string", "POSTGRES", "postgres").TextLoader
        with self._server.speaking(), self._server.connection.cursor() as cursor:
            for column in shape.columns:
                cursor.adapters.register_loader(column.type, loader)
            cursor.execute(f"DECLARE halfjoin_rows NO SCROLL CURSOR FOR {query}")
            parts: list[list[pa.StringArray]] = []
            rows, size, step, yielded = 0, 0, min(_FIRST_FETCH, self._rows), False
            while True:
                some = cursor.execute(f"FETCH {step} FROM halfjoin_rows").fetchall()
                values = zip(*some, strict=True) if some else ([] for _ in shape.columns)
                parts.append([pa.array(one, pa.string()) for one in values])
                held = sum(column.nbytes for column in parts[-1])
                rows, size, ends = rows + len(some), size + held, len(some) < step
                if rows >= self._rows or size >= self._bytes or (ends and (rows or not yielded)):
                    yield [pa.concat_arrays(list(column)) for column in zip(*parts, strict=True)]
                    parts, rows, size, yielded = [], 0, 0, True
                if ends:
                    break
                step = max(1, min(_MOST_FETCH, self._rows, self._bytes // 4 // max(1, held // len(some))))
            cursor.execute("CLOSE halfjoin_rows")

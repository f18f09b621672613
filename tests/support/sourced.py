"""A source FROM POSTGRES without the engine's threads: a test polls it, applies what it gives, and may kill it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import halfjoin as hj
from halfjoin.engine.feeds.postgres.reader import PostgresReader, definitions
from halfjoin.engine.feeds.postgres.server import PostgresOptions
from halfjoin.engine.feeds.source import POLL_BYTES, POLL_ROWS, Opening, Polled


class Followed:
    """An engine whose tables follow a server's. `killed` forgets all that is not with the rows."""

    def __init__(self, connection: Any, tables: str = "", *, slot: str = "halfjoin", engine: hj.Engine | None = None,
                 rows: int = POLL_ROWS, bytes: int = POLL_BYTES, into: Sequence[str] = ()) -> None:  # fmt: skip
        self.options = PostgresOptions(dsn=dsn_of(connection), publication="p", slot=slot, tables=tables)
        self.bounds = rows, bytes
        self.engine = hj.Engine() if engine is None else engine
        made, self.names, _ = definitions(self.options, into)
        known = {row["name"] for row in self.engine.execute("SHOW TABLES").to_pylist()}
        for one in made:
            if one.name not in known:
                if one.problem is not None:
                    raise one.problem
                self.engine.execute(one.text)
        self.position: str | None = None
        self.time: int | None = None  # of a transaction of which pieces are missing
        self.reader: PostgresReader | None = None

    def poll(self, *, acknowledge: bool = True) -> Polled | None:
        """What one poll gives, applied."""
        if self.reader is None:
            catalog = self.engine._writer.state.catalog
            opening = Opening("s", "1", self.options, [catalog.table(name) for name in self.names])
            self.reader = PostgresReader(opening, *self.bounds)
        found = self.reader.poll(self.position, 0)
        if found is not None:
            applied = self.engine.apply(dict(found.batches), self.time, close=found.last)
            self.time = None if found.last else applied.time
            self.position = found.position
            if acknowledge:
                self.reader.acknowledge(found.position)
        return found

    def catch_up(self) -> int:
        """Poll until there is nothing more; how many batches there were."""
        count = 0
        while self.poll() is not None:
            count += 1
        return count

    def killed(self) -> None:
        """Lose the reader and its connection, as when the process ends."""
        if self.reader is not None:
            self.reader.close()
            self.reader = None

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query in the engine, in order."""
        return ordered(tuple(row.values()) for row in self.engine.query(query).to_pylist())


def ordered(rows: Any) -> list[tuple[Any, ...]]:
    """Rows in an order of their own."""
    return sorted((tuple(row) for row in rows), key=repr)


def dsn_of(connection: Any) -> str:
    """The dsn of the database of a connection."""
    info = connection.info
    return f"host={info.host} port={info.port} user={info.user} dbname={info.dbname}"

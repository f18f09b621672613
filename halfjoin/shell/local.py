"""An engine in this process as the shell's target."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from halfjoin.engine.engine import Engine
from halfjoin.engine.intake.times import Time
from halfjoin.engine.statements.copying import joined
from halfjoin.errors import Conflict, HalfjoinError
from halfjoin.server.tags import tag_of
from halfjoin.shell.cells import cells
from halfjoin.shell.splitting import bare
from halfjoin.shell.targets import Answer, ShellError
from halfjoin.sql.parse.prepared import prepared

_POLL = 0.5  # seconds between two looks at a warehouse that another process writes


class Local:
    """An engine in this process. If another process writes the warehouse, it only reads.

    `options`: those of `Engine` for an engine that writes.
    """

    def __init__(
        self, warehouse: str | None, notice: Callable[[str], None], options: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        self.name = warehouse.rstrip("/").rpartition("/")[2] if warehouse else "memory"
        self.read_only = False
        try:
            self.engine = Engine(warehouse, **options)
        except Conflict as held:
            self.engine, self.read_only = Engine(warehouse, read_only=True), True
            notice(f"{held.reason}: this shell only reads")
        self._connection = self.engine.connect()

    def run(self, statement: str) -> Answer:
        """Run one statement."""
        with _refusals():
            made = self._connection.run(prepared(statement))
        return answer(made.rows, made.tag or tag_of(bare(statement).upper().split()))

    def subscribe(self, view: str) -> Iterator[Answer]:
        """The contents of a view, then its changes. No one else writes what this process writes, so it then ends."""
        with _refusals():
            yield from map(answer, changes(self.engine, view, None, True, self.read_only))

    def copy_in(self, statement: str, data: bytes) -> str:
        """Run COPY ... FROM STDIN."""
        with _refusals():
            return self._connection.copy_in(statement, data)

    def copy_out(self, statement: str) -> bytes:
        """Run COPY ... TO STDOUT."""
        with _refusals():
            return joined(self._connection.copy_out(statement))

    def in_transaction(self) -> str:
        """The mark of an open transaction."""
        return {"open": "*", "failed": "!"}.get(self._connection.transaction, "")

    def close(self) -> None:
        """Close the engine."""
        self.engine.close()


def changes(
    engine: Engine, view: str, as_of: Time | None, snapshot: bool, follow: bool
) -> Iterator[pa.Table]:
    """A view's contents as of a time, unless `snapshot` is False, and its changes after it. With `follow`, go on with
    those of the process that writes the warehouse, as they come.

    Raises:
        HalfjoinError: see `Engine.subscribe`.
    """
    while True:
        upper = engine.stats().upper
        found = engine.subscribe(view, as_of=as_of, snapshot=snapshot)
        found.close()
        last = upper - 1
        for rows in found:
            last = max(last, rows["__time"].to_pylist()[-1] if rows.num_rows else last)
            yield rows
        if not follow:
            return
        as_of, snapshot = last, False
        while engine.stats().upper <= last + 1:
            time.sleep(_POLL)


def answer(rows: pa.Table | None, tag: str = "") -> Answer:
    """The answer for a table of the engine's."""
    if rows is None:
        return Answer(tag=tag)
    return Answer(tuple(rows.column_names), tuple(map(_kind, rows.schema.types)), cells(rows), tag)


def _kind(type: pa.DataType) -> str:
    if pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type):
        return "number"
    return "boolean" if pa.types.is_boolean(type) else "text"


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except HalfjoinError as error:
        raise ShellError(f"{type(error).__name__}: {error}") from error

"""COPY over a connection: rows from a client as one batch, rows to a client, changes of a SUBSCRIBE as they come."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from itertools import chain

import pyarrow as pa

from halfjoin.engine.statements.connection import Connection
from halfjoin.engine.statements.copying import copied_lines
from halfjoin.errors import UnsupportedSQL
from halfjoin.server import messages as m
from halfjoin.server.binary_rows import read_rows
from halfjoin.server.changes import Changes
from halfjoin.server.commands import Commands
from halfjoin.server.limits import Limits
from halfjoin.server.rows import copy_data, copy_lines
from halfjoin.server.splitting import Piece
from halfjoin.server.wire import Gone, Wire
from halfjoin.server.working import Worker
from halfjoin.sql.parse.parse import parse
from halfjoin.sql.parse.prepared import prepared
from halfjoin.sql.statements import Copy

_BEGIN = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # of the binary format: its signature, no flags, no extension
_END = m.message(b"d", b"\xff\xff")
_NOTHING = m.message(b"d", _BEGIN + b"\xff\xff")


class Copying:
    """COPY on one connection."""

    def __init__(self, wire: Wire, connection: Connection, commands: Commands, worker: Worker, limits: Limits) -> None:
        self._wire, self._connection, self._commands = wire, connection, commands
        self._worker, self._limits = worker, limits

    async def run(self, piece: Piece) -> None:
        """Carry COPY out, with all of its messages."""
        changes, text = _subscription(piece)
        (statement,) = parse(text)
        assert isinstance(statement, Copy)
        if changes is not None:
            await self._changes(changes, statement)
        elif statement.incoming:
            await self._in(piece.text, statement)
        else:
            await self._out(piece.text, statement)

    async def _in(self, sql: str, statement: Copy) -> None:
        columns = await self._commands.call(partial(self._connection.copied, sql))
        self._wire.put(m.copy_response(b"G", len(columns), binary=statement.binary))
        await self._wire.flush()
        data = await self._received()
        rows: bytes | pa.Table = data
        if statement.binary:
            rows = await self._commands.call(partial(read_rows, data, [column.type for column in columns]))
        tag = await self._commands.call(partial(self._connection.copy_in, sql, rows))
        self._wire.put(m.complete(tag))

    async def _received(self) -> bytes:
        """What the client sends up to CopyDone.

        Raises:
            UnsupportedSQL: it says that it fails, or sends too much.
        """
        parts, size = list[bytes](), 0
        while True:
            message = await self._wire.take(self._limits.idle_in_transaction)
            match message.letter:
                case "d":
                    size += len(message.body)
                    if size > self._limits.copied:
                        raise UnsupportedSQL(f"COPY takes at most {self._limits.copied:,} bytes at a time",
                                             remedy="send the rows in several COPYs", code="54000")
                    parts.append(message.body)
                case "c":
                    return b"".join(parts)
                case "f":
                    why = m.Fields(message.body).text()
                    raise UnsupportedSQL(f"COPY from stdin failed: {why}", code="57014")
                case "H" | "S":
                    pass  # they mean nothing while rows come
                case "X":
                    raise Gone
                case _:
                    raise m.BadMessage(f"unexpected message type {message.letter} during COPY from stdin")

    async def _out(self, sql: str, statement: Copy) -> None:
        pieces: Iterator[bytes | memoryview]
        if statement.binary:
            answer = await self._commands.call(partial(self._connection.copy_rows, sql))
            assert answer.rows is not None and answer.columns is not None
            types = [column.type for column in answer.columns]
            count, width = answer.rows.num_rows, len(types)
            pieces = chain(copy_data(answer.rows, types, _BEGIN), [_END if count else _NOTHING])
        else:
            width = len(await self._commands.call(partial(self._connection.copied, sql)))
            lines = await self._commands.call(partial(self._connection.copy_out, sql))
            count, pieces = len(lines) - statement.header, copy_lines(lines)
        self._wire.put(m.copy_response(b"H", width, binary=statement.binary))
        while (piece := await self._commands.call(lambda: next(pieces, None))) is not None:
            await self._wire.give(piece)
        self._wire.put(m.COPY_DONE, m.complete(f"COPY {count}"))

    async def _changes(self, subscription: str, statement: Copy) -> None:
        """Send changes until the subscription ends, the client cancels, or it leaves."""
        begun = await self._commands.call(partial(self._connection.subscribe, prepared(subscription)))
        changes = Changes(*begun)
        types, count = [column.type for column in changes.columns], 0
        self._wire.put(m.copy_response(b"H", len(types), binary=statement.binary))
        head = _BEGIN
        try:
            while (rows := await self._worker.wait(self._next(changes))) is not None:
                if statement.binary:
                    pieces, head = copy_data(rows, types, head), b"" if rows.num_rows else head
                else:
                    pieces = copy_lines(await self._commands.call(
                        partial(copied_lines, statement, rows, changes.columns)))  # fmt: skip
                for piece in pieces:
                    self._wire.put(piece)
                await self._wire.flush()
                count += rows.num_rows
        finally:
            changes.close()
        if statement.binary:
            self._wire.put(_NOTHING if head else _END)
        self._wire.put(m.COPY_DONE, m.complete(f"COPY {count}"))

    async def _next(self, changes: Changes) -> pa.Table | None:
        """The next changes; it ends when the client leaves."""
        await self._wire.flush()
        coming = asyncio.ensure_future(changes.next())
        leaving = self._wire.peek()
        try:
            await asyncio.wait([coming, leaving], return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                return coming.result()
            if leaving.exception() is not None or leaving.result().letter == "X":
                raise Gone
            return await coming  # another message waits for its turn
        finally:
            coming.cancel()


def _subscription(piece: Piece) -> tuple[str | None, str]:
    """The SUBSCRIBE in COPY (SUBSCRIBE ...) TO STDOUT, if that is what it is; and a COPY with the same options."""
    words = piece.words
    if words[1:3] != ("(", "SUBSCRIBE"):
        return None, piece.text
    depth, end = 0, len(words)
    for place, word in enumerate(words):
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == ")" and depth == 0:
            end = place
            break
    if end == len(words):
        raise UnsupportedSQL("syntax error", remedy="write COPY (SUBSCRIBE view) TO STDOUT", code="42601")
    rest = piece.between(end + 1, len(words)) if end + 1 < len(words) else ""
    return piece.between(2, end), f"COPY (SELECT 1) {rest}"

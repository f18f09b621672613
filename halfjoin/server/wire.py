"""The two directions of a connection: messages that come, one ahead of what is carried out, and bytes that go."""

from __future__ import annotations

import asyncio
import struct
from typing import NamedTuple

from halfjoin.server.limits import Limits
from halfjoin.server.messages import BadMessage

_LETTERS = frozenset(b"BCDEFHPQSXcdfp")
_BUFFER = 1 << 16  # bytes to collect before they are sent


class Message(NamedTuple):
    """A message of a client: its letter and what follows its length."""

    letter: str
    body: bytes


class Gone(Exception):
    """The client has gone, or does not read what it is sent."""


class Wire:
    """A connection's bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limits: Limits) -> None:
        self.reader, self.writer, self._limits = reader, writer, limits
        self._next: asyncio.Task[Message] | None = None
        self._held: list[bytes | memoryview] = []
        self._size = 0
        self.known = False  # whether the client has logged in

    def peek(self) -> asyncio.Task[Message]:
        """The next message, which stays the next one."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._read())
        return self._next

    async def take(self, timeout: float | None = None) -> Message:
        """The next message.

        Raises:
            Gone: there is none any more. TimeoutError: none came in time. BadMessage: it is none.
        """
        task = self.peek()
        done, _ = await asyncio.wait([task], timeout=timeout)
        if not done:
            raise TimeoutError
        self._next = None
        return task.result()

    async def _read(self) -> Message:
        try:
            head = await self.reader.readexactly(5)
            letter, length = head[:1], struct.unpack(">i", head[1:])[0] - 4
            most = self._limits.message if self.known else self._limits.first
            if head[0] not in _LETTERS:
                raise BadMessage(f"invalid frontend message type {head[0]}")
            if not 0 <= length <= most:
                raise BadMessage(f"invalid message length {length + 4}: a message can have {most:,} bytes")
            return Message(letter.decode(), await self.reader.readexactly(length))
        except (asyncio.IncompleteReadError, OSError):
            raise Gone from None

    def put(self, *parts: bytes | memoryview) -> None:
        """Add bytes to what `flush` sends."""
        for part in parts:
            self._held.append(part)
            self._size += len(part)

    async def give(self, part: bytes | memoryview) -> None:
        """Add bytes, and send all when there are many."""
        self.put(part)
        if self._size >= _BUFFER:
            await self.flush()

    async def flush(self) -> None:
        """Send what was added.

        Raises:
            Gone: the client does not take it.
        """
        held, self._held, self._size = self._held, [], 0
        try:
            if held:
                self.writer.writelines(held)
            async with asyncio.timeout(self._limits.write):
                await self.writer.drain()
        except (OSError, TimeoutError, RuntimeError):
            raise Gone from None

    def forget(self) -> None:
        """Read no more."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

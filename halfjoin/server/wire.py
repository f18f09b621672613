"""The two directions of a connection: messages that come, one ahead of what is carried out, and bytes that go."""

from __future__ import annotations

import asyncio
import struct
from typing import NamedTuple

from halfjoin.server.limits import Limits
from halfjoin.server.messages import BadMessage

_LETTERS = frozenset(b"BCDEFHPQSXcdfp")
_BUFFER = 1 << 16  # bytes to collect before they are sent
_TURN = 32  # messages of one connection without a look at the others


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
        self._come = bytearray()  # what has come and was not taken
        self._at_once = 0  # messages that were taken without waiting
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
        if self._next is None and (whole := self._whole()) is not None:  # a driver sends several messages at once
            self._at_once += 1
            if self._at_once % _TURN == 0:
                await asyncio.sleep(0)  # let other connections have their turn
            return whole
        task = self.peek()
        done, _ = await asyncio.wait([task], timeout=timeout)
        if not done:
            raise TimeoutError
        self._next = None
        return task.result()

    async def _read(self) -> Message:
        while (whole := self._whole()) is None:
            try:
                more = await self.reader.read(_BUFFER)
            except OSError:
                raise Gone from None
            if not more:
                raise Gone
            self._come += more
        return whole

    def _whole(self) -> Message | None:
        """The next message, if all of it has come.

        Raises:
            BadMessage: it is none.
        """
        come = self._come
        if come and come[0] not in _LETTERS:
            raise BadMessage(f"invalid frontend message type {come[0]}")
        if len(come) < 5:
            return None
        end = 1 + struct.unpack_from(">i", come, 1)[0]
        most = self._limits.message if self.known else self._limits.first
        if not 5 <= end <= most + 5:
            raise BadMessage(f"invalid message length {end - 1}: a message can have {most:,} bytes")
        if len(come) < end:
            return None
        found = Message(chr(come[0]), bytes(memoryview(come)[5:end]))
        del come[:end]
        return found

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
            transport = self.writer.transport
            if not transport.get_write_buffer_size() and not transport.is_closing():
                return  # the system has taken all of it: there is nothing to wait for
            async with asyncio.timeout(self._limits.write):
                await self.writer.drain()
        except (OSError, TimeoutError, RuntimeError):
            raise Gone from None

    def forget(self) -> None:
        """Read no more."""
        if self._next is not None:
            self._next.cancel()
            self._next = None

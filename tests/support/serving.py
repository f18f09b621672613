"""A server for tests, in a thread of this process, and connections to it that speak the protocol byte by byte."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.server.access import Access
from halfjoin.server.limits import Limits
from halfjoin.server.server import Server

USER = "halfjoin"


@dataclass(frozen=True)
class Served:
    """A running server."""

    engine: hj.Engine
    server: Server
    port: int
    loop: Any = field(repr=False)

    @property
    def address(self) -> dict[str, Any]:
        """How psycopg connects."""
        return {"host": "127.0.0.1", "port": self.port, "user": USER, "dbname": "halfjoin"}

    def psycopg(self, **options: Any) -> Any:
        """A connection of psycopg 3, in autocommit."""
        psycopg = pytest.importorskip("psycopg")
        return psycopg.connect(**{**self.address, "autocommit": True, **options})


@contextmanager
def serving(
    engine: hj.Engine | None = None, access: Access | None = None, limits: Limits | None = None
) -> Iterator[Served]:
    """A server over an engine, in memory by default."""
    engine = engine or hj.Engine()
    loop = asyncio.new_event_loop()
    server = Server(engine, access, limits)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    _, port = asyncio.run_coroutine_threadsafe(server.start(port=0), loop).result(30)
    try:
        yield Served(engine, server, port, loop)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
        engine.close()


@pytest.fixture
def served() -> Iterator[Served]:
    """A server over an empty engine."""
    with serving() as found:
        yield found


class Raw:
    """A connection that sends and receives messages as they are."""

    def __init__(self, port: int, *, password: bool = False, settings: bytes = b"") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.start(struct.pack(">i", 3 << 16) + b"user\0" + USER.encode() + b"\0" + settings + b"\0")
        if not password:
            self.until("Z")

    def start(self, body: bytes) -> None:
        """Send a message without a letter."""
        self.socket.sendall(struct.pack(">i", len(body) + 4) + body)

    def send(self, *messages: tuple[str, bytes]) -> None:
        """Send messages, all at once."""
        self.socket.sendall(b"".join(letter.encode() + struct.pack(">i", len(body) + 4) + body
                                     for letter, body in messages))

    def receive(self) -> tuple[str, bytes]:
        """The next message."""
        letter = self._exactly(1).decode()
        return letter, self._exactly(struct.unpack(">i", self._exactly(4))[0] - 4)

    def until(self, letter: str) -> list[tuple[str, bytes]]:
        """The messages up to the first one with a letter."""
        found = [self.receive()]
        while found[-1][0] != letter:
            found.append(self.receive())
        return found

    def query(self, sql: str) -> list[tuple[str, bytes]]:
        """The answer to a simple query."""
        self.send(("Q", sql.encode() + b"\0"))
        return self.until("Z")

    def rows(self, sql: str, format: int) -> list[bytes]:
        """The RowDescription and the DataRows of a query, through the extended protocol."""
        self.send(("P", b"\0" + sql.encode() + b"\0\0\0"), ("B", b"\0\0\0\0\0\0" + struct.pack(">hh", 1, format)),
                  ("D", b"P\0"), ("E", b"\0\0\0\0\0"), ("S", b""))
        found = self.until("Z")
        assert not [body for letter, body in found if letter == "E"], found
        return [body for letter, body in found if letter in "TD"]

    def closed(self) -> bool:
        """Whether the server has closed the connection, after the messages that it still sends."""
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Leave without a word."""
        self.socket.close()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError("the server has closed the connection")
            data += part
        return data


def fields(body: bytes) -> dict[str, str]:
    """The fields of an error."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}

"""A console for tests, in a thread of this process, and what a program asks of it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import halfjoin as hj
from halfjoin.console.app import console
from halfjoin.console.serving import HttpServer
from halfjoin.server.access import Access


@dataclass(frozen=True)
class Reply:
    """What the console replied."""

    status: int
    text: str
    headers: Any

    def json(self) -> Any:
        """The text as JSON."""
        return json.loads(self.text)


@dataclass(frozen=True)
class Page:
    """A console at an address."""

    address: str

    def get(self, path: str, **headers: str) -> Reply:
        """Ask for a path."""
        return self._reply(Request(self.address + path, headers=headers))

    def post(self, path: str, body: bytes, kind: str = "application/json", **headers: str) -> Reply:
        """Send a body."""
        return self._reply(Request(self.address + path, body, {"Content-Type": kind, **headers}))

    def events(self, path: str) -> Iterator[Any]:
        """What a stream of events pushes."""
        with urlopen(self.address + path, timeout=60) as stream:
            for line in stream:
                if line.startswith(b"data: "):
                    yield json.loads(line.removeprefix(b"data: "))

    def _reply(self, request: Request) -> Reply:
        try:
            with urlopen(request, timeout=60) as found:
                return Reply(found.status, found.read().decode(), found.headers)
        except HTTPError as error:
            return Reply(error.code, error.read().decode(), error.headers)


@contextmanager
def paging(engine: hj.Engine, access: Access | None = None) -> Iterator[Page]:
    """A console over an engine."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = HttpServer(console(engine, access), "127.0.0.1", 0)
    try:
        yield Page(asyncio.run_coroutine_threadsafe(server.start(), loop).result(60))
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()

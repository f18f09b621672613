"""Serves the console over HTTP on the running event loop, beside whatever else it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from halfjoin.errors import HalfjoinError

_STOPPING = 2  # seconds that requests have which are being answered when it stops
_STREAM = b"text/event-stream; charset=utf-8"


class _Server(uvicorn.Server):
    """uvicorn without signal handlers of its own: the process has them."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpServer:
    """An application, served.

    Args:
        app: the ASGI application.
        host, port: where to listen; port 0 is any free one.
        cert, key: files for TLS; None: plain HTTP.
    """

    def __init__(self, app: Any, host: str, port: int, cert: Path | None = None, key: Path | None = None) -> None:
        self._app, self._host, self._port = app, host, port
        self._requests: dict[asyncio.Task[Any], bool] = {}  # and whether it is a stream, which does not end by itself
        self._server = _Server(uvicorn.Config(
            self._answer, host=host, port=port, log_level="warning", ssl_certfile=cert, ssl_keyfile=key,
            server_header=False, timeout_graceful_shutdown=2 * _STOPPING, interface="asgi3",
            limit_concurrency=200, ws="none",
        ))  # fmt: skip
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Listen; the answer is the address of the page.

        Raises:
            HalfjoinError: the address is in use, or not this machine's.
        """
        self._task = asyncio.create_task(self._serve())
        while not self._server.started:
            if self._task.done():
                await self._task
                raise self._refusal()
            await asyncio.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._server.config.is_ssl else 'http'}://{host}:{port}"

    async def stop(self) -> None:
        """Close all pages: streams at once, other requests after a while."""
        self._server.should_exit = True
        for request, endless in self._requests.items():
            if endless:
                request.cancel()
        if self._requests:
            await asyncio.wait(self._requests, timeout=_STOPPING)
        for request in self._requests:
            request.cancel()
        if self._task is not None:
            await self._task

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """The application, whose requests `stop` can end."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        task, begun = asyncio.current_task(), False
        assert task is not None
        self._requests[task] = False

        async def sent(message: Any) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                self._requests[task] = (b"content-type", _STREAM) in message["headers"]
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except asyncio.CancelledError:
            if not begun:
                await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        finally:
            del self._requests[task]

    async def _serve(self) -> None:
        try:
            await self._server.serve()
        except SystemExit:  # uvicorn's way to say that it cannot listen; its log has said why
            raise self._refusal() from None

    def _refusal(self) -> HalfjoinError:
        return HalfjoinError(f"cannot listen on {self._host}:{self._port} for HTTP",
                             remedy="choose another port with --http-port")  # fmt: skip

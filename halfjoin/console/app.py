"""The console's web application: the page and what it asks for, `/metrics`, `/healthz`, and `POST /batch`."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from halfjoin.console import batches, details
from halfjoin.console.changes import Changes
from halfjoin.console.metrics import metrics
from halfjoin.console.watch import Watch
from halfjoin.engine.engine import Engine
from halfjoin.errors import Conflict, HalfjoinError
from halfjoin.server.access import Access
from halfjoin.server.scram import meets

_STATIC = Path(__file__).parent / "static"
LOCAL = ("127.0.0.1", "localhost", "[::1]")
_LONGEST = 100_000  # bytes of a query
_LARGEST = 64 << 20  # bytes of a batch
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; "
                               "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache",
}  # fmt: skip

Handler = Callable[[Request], Awaitable[Response]]


def console(engine: Engine, access: Access | None = None, hosts: Sequence[str] = LOCAL) -> Starlette:
    """The application over an engine.

    Args:
        engine: what it shows, and what `POST /batch` writes.
        access: who may see it, by HTTP's Basic authentication; None: everybody. `/healthz` is open to all.
        hosts: the names under which browsers may reach it, so that no other site's name can be bound to it.
    """
    watch = Watch(engine)
    changes = Changes(engine)

    @asynccontextmanager
    async def running(_: Starlette) -> AsyncIterator[None]:
        looking = asyncio.create_task(watch.run())
        yield
        looking.cancel()
        changes.close()
        with suppress(asyncio.CancelledError):
            await looking

    async def health(_: Request) -> Response:
        try:
            stats = await run_in_threadpool(engine.stats)
        except HalfjoinError as error:
            return JSONResponse({"ok": False, "problem": str(error)}, 503)
        return JSONResponse({"ok": True, "upper": stats.upper})

    async def measured(_: Request) -> Response:
        look = await run_in_threadpool(watch.look)
        text = await run_in_threadpool(metrics, look)
        return Response(text, media_type="text/plain; version=0.0.4")

    async def overview(_: Request) -> Response:
        return JSONResponse(watch.overview())

    async def events(_: Request) -> Response:
        return _stream(watch.each())

    async def held(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(details.collections, engine))

    async def view(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(details.view, engine, request.path_params["name"]))

    async def contents(request: Request) -> Response:
        name, as_of = request.path_params["name"], request.query_params.get("as_of")
        time = int(as_of) if as_of and as_of.lstrip("-").isdigit() else None
        return JSONResponse(await run_in_threadpool(details.contents, engine, name, time))

    async def changed(request: Request) -> Response:
        return _stream(changes.each(request.path_params["name"]))

    async def batch(request: Request) -> Response:
        body = await _body(request, _LARGEST)
        if isinstance(body, Response):
            return body
        key = request.headers.get("idempotency-key")
        try:
            return JSONResponse(await run_in_threadpool(batches.apply, engine, body, key))
        except HalfjoinError as error:
            return JSONResponse(batches.refusal(error), 409 if isinstance(error, Conflict) else 400)

    async def query(request: Request) -> Response:
        body = await _body(request, _LONGEST)
        if isinstance(body, Response):
            return body
        try:
            sql = str(json.loads(body)["sql"])
        except (ValueError, KeyError, TypeError):
            return JSONResponse({"error": 'send {"sql": "SELECT ..."}'}, 400)
        answer = await run_in_threadpool(details.answer, engine, sql, None)
        with suppress(HalfjoinError):
            answer["plan"] = await run_in_threadpool(engine.explain, sql)
        return JSONResponse(answer)

    async def page(_: Request) -> Response:
        return FileResponse(_STATIC / "index.html")

    async def failed(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": f"{type(error).__name__}: {error}"}, 404)

    return Starlette(
        routes=[
            Route("/", page), Route("/healthz", health), Route("/metrics", measured), Route("/api/overview", overview),
            Route("/api/events", events), Route("/api/collections", held),
            Route("/api/views/{name:path}/contents", contents), Route("/api/views/{name:path}/changes", changed),
            Route("/api/views/{name:path}", view),
            Route("/api/query", query, methods=["POST"]), Route("/batch", batch, methods=["POST"]),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts)),
                    Middleware(_Guard, access=access or Access())],
        exception_handlers={HalfjoinError: failed}, lifespan=running,
    )  # fmt: skip


async def _body(request: Request, most: int) -> bytes | Response:
    """The JSON that a request sends, of `most` bytes; or the refusal."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return JSONResponse({"error": "send application/json"}, 415)  # so no form of another site reaches it
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > most:
            return JSONResponse({"error": f"more than {most:,} bytes"}, 413)
    return bytes(body)


def _stream(items: AsyncIterator[dict[str, Any]]) -> Response:
    """Server-sent events, one for each item."""

    async def lines() -> AsyncIterator[str]:
        async for item in items:
            yield f"data: {json.dumps(item)}\n\n"

    return StreamingResponse(lines(), media_type="text/event-stream")


class _Guard:
    """Asks for the password, and adds the headers that keep other sites out."""

    def __init__(self, app: Any, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] != "/healthz" and not await asyncio.to_thread(self._knows, dict(scope["headers"])):
            asked = Response("a password is needed", 401, {"WWW-Authenticate": 'Basic realm="halfjoin"'})
            await asked(scope, receive, send)
            return

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] += [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
            await send(message)

        await self._app(scope, receive, sent)

    def _knows(self, headers: dict[bytes, bytes]) -> bool:
        if self._access.users is None:
            return True
        kind, _, text = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        try:
            given = base64.b64decode(text, validate=True).decode() if kind.lower() == "basic" else ""
        except (binascii.Error, UnicodeDecodeError):
            return False
        user, _, password = given.partition(":")
        return meets(password, self._access.verifier(user))

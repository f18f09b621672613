"""`halfjoin serve`: PostgreSQL's protocol over a warehouse, and the console page."""

from __future__ import annotations

import asyncio
import logging
import signal
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from halfjoin.cli.guard import guarded
from halfjoin.console.app import LOCAL, console
from halfjoin.console.serving import HttpServer
from halfjoin.engine.batch.clock import Clock
from halfjoin.engine.engine import Engine
from halfjoin.errors import HalfjoinError
from halfjoin.server.access import Access, access, is_loopback
from halfjoin.server.limits import Limits
from halfjoin.server.server import Server

_DEFAULT = Limits()


def serve(
    warehouse: Annotated[str, typer.Argument(help="the folder or URL of a warehouse; it is created if absent")],
    host: Annotated[str, typer.Option(help="the address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="the port; 0 for any free one")] = 6875,
    http_port: Annotated[int, typer.Option(help="the port of the console, /metrics and /healthz; -1 for none")] = 6876,
    password_file: Annotated[Path | None, typer.Option(help=(
        "lines name:password; without it only this machine can connect"))] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="the certificate of the server, with those above it")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="the certificate's private key")] = None,
    clock: Annotated[Clock | None, typer.Option(help="as for run")] = None,
    memory: Annotated[str | None, typer.Option(help="the most that rows and indexes may take, such as 4GB")] = None,
    max_connections: Annotated[int, typer.Option(min=1)] = _DEFAULT.connections,
    idle_timeout: Annotated[float, typer.Option(help="seconds that a connection may send nothing")] = _DEFAULT.idle,
    statement_timeout: Annotated[float, typer.Option(help="seconds that a statement may run")] = _DEFAULT.statement,
) -> None:
    """Serve a warehouse to clients of PostgreSQL (psql, drivers, BI tools) and to browsers."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    limits = replace(_DEFAULT, connections=max_connections, idle=idle_timeout, statement=statement_timeout)
    allowed = guarded(access, host, password_file, tls_cert, tls_key)
    with guarded(lambda: Engine(warehouse, clock=clock, memory=memory)) as engine:
        page = None
        if http_port >= 0:
            hosts = LOCAL if is_loopback(host) else ["*"]
            page = HttpServer(console(engine, allowed, hosts), host, http_port, tls_cert, tls_key)
        guarded(lambda: asyncio.run(_serve(engine, host, port, allowed, limits, page)))


async def _serve(
    engine: Engine, host: str, port: int, allowed: Access, limits: Limits, page: HttpServer | None
) -> None:
    """Serve until the process is told to stop."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    server = Server(engine, allowed, limits)
    try:
        where, at = await server.start(host, port)
    except OSError as problem:
        raise HalfjoinError(f"cannot listen on {host}:{port}: {problem.strerror or problem}",
                            remedy="choose another with --host and --port") from None  # fmt: skip
    typer.echo(f"listening on {where}:{at}: psql -h {where} -p {at} -U {'USER' if allowed.users else 'halfjoin'}")
    try:
        if page is not None:
            typer.echo(f"the console is at {await page.start()}")
        await stopped.wait()
        typer.echo("stopping")
    finally:
        if page is not None:
            await page.stop()
        await server.stop()

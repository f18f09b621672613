"""`halfjoin serve`: PostgreSQL's protocol over a warehouse, and the console page."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from halfjoin.cli.guard import guarded
from halfjoin.cli.opening import warehouse_of
from halfjoin.cli.settings import Settings, read_settings
from halfjoin.console.app import LOCAL, console
from halfjoin.console.serving import HttpServer
from halfjoin.engine.batch.clock import Clock
from halfjoin.engine.engine import Engine
from halfjoin.errors import HalfjoinError
from halfjoin.server.access import Access, access, is_loopback
from halfjoin.server.limits import Limits
from halfjoin.server.server import Server

_default = Settings()
_log = logging.getLogger("halfjoin.server")
_MORE = 4.0  # seconds for the interrupt of statements that still run, and for closing the warehouse


def _text(name: str) -> str:
    """The default of a setting, for --help."""
    return str(getattr(_default, name))


def serve(
    warehouse: Annotated[str, typer.Argument(help="the folder or URL of a warehouse; it is created if absent")] = "",
    host: Annotated[str | None, typer.Option(help="the address to listen on", show_default=_default.host)] = None,
    port: Annotated[int | None, typer.Option(help="the port; 0 for any free one", show_default=_text("port"))] = None,
    http_port: Annotated[int | None, typer.Option(show_default=_text("http_port"), help=(
        "the port of the console, /metrics and /healthz; -1 for none"))] = None,
    password_file: Annotated[Path | None, typer.Option(help=(
        "lines name:password; without it only this machine can connect"))] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="the certificate of the server, with those above it")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="the certificate's private key")] = None,
    clock: Annotated[Clock | None, typer.Option(help="as for run")] = None,
    memory: Annotated[str | None, typer.Option(help="the most that rows and indexes may take, such as 4GB")] = None,
    retain: Annotated[str | None, typer.Option(help="how much history stays readable, such as '30 days'")] = None,
    max_connections: Annotated[int | None, typer.Option(show_default=_text("max_connections"))] = None,
    idle_timeout: Annotated[float | None, typer.Option(
        help="seconds that a connection may send nothing", show_default=_text("idle_timeout"))] = None,
    statement_timeout: Annotated[float | None, typer.Option(
        help="seconds that a statement may run", show_default=_text("statement_timeout"))] = None,
) -> None:  # fmt: skip
    """Serve a warehouse to clients of PostgreSQL (psql, drivers, BI tools) and to browsers.

    What is not given here comes from HALFJOIN_... in the environment, or from halfjoin.toml.
    """
    given = dict(locals())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    told = guarded(read_settings, given).settings
    limits = Limits(connections=told.max_connections, idle=told.idle_timeout, statement=told.statement_timeout)
    secret = None if told.password is None else told.password.get_secret_value()
    allowed = guarded(access, told.host, told.password_file, told.tls_cert, told.tls_key, secret)
    with guarded(lambda: Engine(warehouse_of(told), **told.engine)) as engine:
        page = None
        if told.http_port >= 0:
            hosts = LOCAL if is_loopback(told.host) else ["*"]
            made = console(engine, allowed, hosts)
            page = HttpServer(made, told.host, told.http_port, told.tls_cert, told.tls_key)
        gc.collect()
        gc.freeze()  # to look at all that modules and definitions hold stops every statement for a tenth of a second
        guarded(lambda: asyncio.run(_serve(engine, told.host, told.port, allowed, limits, page)))


async def _serve(
    engine: Engine, host: str, port: int, allowed: Access, limits: Limits, page: HttpServer | None
) -> None:
    """Serve until the process is told to stop."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    server = Server(engine, allowed, limits)
    try:
        where, at = await server.start(host, port)
    except OSError as problem:
        raise HalfjoinError(f"cannot listen on {host}:{port}: {problem.strerror or problem}",
                            remedy="choose another with --host and --port") from None  # fmt: skip
    _say(f"listening on {where}:{at}: psql -h {where} -p {at} -U {'USER' if allowed.users else 'halfjoin'}")
    try:
        engine.start_sources()
        if page is not None:
            _say(f"the console is at {await page.start()}")
        await stopped.wait()
        _say("stopping")
        _end_within(limits.stop + _MORE)
    finally:
        await asyncio.gather(server.stop(), *([] if page is None else [page.stop()]))


def _say(text: str) -> None:
    """Print a line. A server also serves where nobody can read it: on a full disk, or after the reader has ended."""
    with suppress(OSError):
        typer.echo(text)


def _end_within(seconds: float) -> None:
    """End the process if it has not ended by itself by then, as a kill would: what is acknowledged is kept. So a call
    that no interrupt reaches does not hold it."""

    def end() -> None:
        _log.error("it has not stopped within %s s, and is ended; these calls were still running:", seconds)
        faulthandler.dump_traceback()
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()

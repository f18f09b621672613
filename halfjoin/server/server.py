"""The server: listens, logs clients in, and stops. An error of one connection ends that connection alone."""

from __future__ import annotations

import asyncio
import logging
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from halfjoin.engine.engine import Engine
from halfjoin.errors import HalfjoinError
from halfjoin.server import messages as m
from halfjoin.server import reports
from halfjoin.server.access import Access
from halfjoin.server.advisory import AdvisoryLocks, LocksOfClient
from halfjoin.server.client import Client, stopped
from halfjoin.server.limits import Limits
from halfjoin.server.login import Login, log_in
from halfjoin.server.notifying import Channels, Mail
from halfjoin.server.sleeping import Sleep
from halfjoin.server.variables import Variables, time_text
from halfjoin.server.wire import Gone, Wire
from halfjoin.server.working import Worker
from halfjoin.sql.system import Asker

_log = logging.getLogger("halfjoin.server")
_CLOSING = 0.5  # seconds for the last bytes of a connection
_LOOK = 0.05  # seconds between two looks for connections whose statement has ended, while the server stops


@dataclass
class _Open:
    """A connection: what cancels it, and what runs it."""

    secret: int
    worker: Worker
    client: Client
    task: asyncio.Task[None]


class Server:
    """PostgreSQL's protocol over an engine, on the running event loop.

    Args:
        engine: what answers. The server does not close it.
        access: who may connect.
        limits: what clients may take.
    """

    def __init__(self, engine: Engine, access: Access | None = None, limits: Limits | None = None) -> None:
        self._engine, self._access, self._limits = engine, access or Access(), limits or Limits()
        self._threads = ThreadPoolExecutor(self._limits.connections + 1, thread_name_prefix="halfjoin-client")
        self._open: dict[int, _Open] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers, self._locks, self._channels = 0, AdvisoryLocks(), Channels()
        self._stopping = False
        self._server: asyncio.Server | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 6875) -> tuple[str, int]:
        """Listen; the address is where.

        Raises:
            OSError: the address is in use, or not this machine's.
        """
        self._server = await asyncio.start_server(self._accept, host, port, limit=1 << 20)
        found = self._server.sockets[0].getsockname()
        return found[0], found[1]

    async def stop(self) -> None:
        """Take no more connections; let statements end that run, and cancel them after a while.

        A connection that waits ends at once: for its client's next message or password, for rows of a COPY, for
        changes of a SUBSCRIBE, or for a client that does not read.
        """
        self._stopping = True
        if self._server is not None:
            self._server.close()
        until = asyncio.get_running_loop().time() + self._limits.stop
        while self._tasks and asyncio.get_running_loop().time() < until:
            running = set()
            for one in self._open.values():
                one.client.stopping = True
                if one.worker.running:
                    running.add(one.task)
            await _end(self._tasks - running)
            if running:
                await asyncio.wait(running, timeout=_LOOK)
        await _end(self._tasks)
        self._threads.shutdown()

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._open)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        wire = Wire(reader, writer, self._limits)
        try:
            await self._serve(wire)
        except asyncio.CancelledError:
            wire.put(reports.error(stopped(), severity="FATAL"))
        except m.BadMessage as problem:
            wire.put(reports.error(problem, severity="FATAL"))
        except (Gone, OSError):
            pass
        except HalfjoinError as problem:
            wire.put(reports.error(problem, severity="FATAL"))
        except Exception as problem:
            wire.put(reports.error(problem, severity="FATAL"))
        finally:
            self._tasks.discard(task)
            await self._close(wire)

    async def _close(self, wire: Wire) -> None:
        """Send the last bytes, and close."""
        wire.forget()
        try:
            async with asyncio.timeout(_CLOSING):
                await wire.flush()
                wire.writer.close()
                await wire.writer.wait_closed()
        except (Gone, OSError, TimeoutError, asyncio.CancelledError):
            wire.writer.transport.abort()

    async def _serve(self, wire: Wire) -> None:
        try:
            async with asyncio.timeout(self._limits.startup):
                login = await log_in(wire, self._access)
        except TimeoutError:
            raise m.BadMessage("canceling authentication due to timeout", code="57014") from None
        if login.cancels is not None:
            self._cancel(*login.cancels)
            return
        if len(self._open) >= self._limits.connections or self._stopping:
            code, why = ("57P03", "the server is stopping") if self._stopping else ("53300", "too many clients already")
            raise HalfjoinError(f"sorry, {why}", remedy=f"{self._limits.connections} may connect at a time", code=code)
        await self._session(wire, login)

    async def _session(self, wire: Wire, login: Login) -> None:
        connection, worker = self._engine.connect(), Worker(self._threads)
        variables = Variables(connection, login.user, self._told())
        wire.known = True
        refused = [why for name, value in login.settings.items() if (why := variables.start(name, value)) is not None]
        wire.put(m.AUTHENTICATED)
        for name, value in variables.reported().items():
            wire.put(m.status(name, value))
        self._numbers += 1
        number, secret = self._numbers, secrets.randbits(32)
        wire.put(m.key(number, secret))
        locks, sleep = LocksOfClient(self._locks), Sleep()
        mail = Mail(self._channels, number, self._limits.told)
        connection.introduce(Asker(login.user, login.database, number, settings=variables.fixed(), set=variables.set,
                                   lock=locks.call, sleep=sleep.call, notify=mail.say,
                                   listening=lambda: sorted(mail.channels)))
        for why in refused:
            wire.put(reports.notice(why, "01000", "WARNING"))
        client = Client(wire, connection, worker, variables, self._limits, locks, sleep, mail, login.database)
        task = asyncio.current_task()
        assert task is not None
        self._open[number] = _Open(secret, worker, client, task)
        try:
            await client.serve()
        finally:
            del self._open[number]

    def _told(self) -> dict[str, str]:
        """What SHOW says of the server."""
        limits = self._limits
        return {"max_connections": str(limits.connections), "ssl": "off" if self._access.tls is None else "on",
                "statement_timeout": time_text(limits.statement), "idle_session_timeout": time_text(limits.idle),
                "idle_in_transaction_session_timeout": time_text(limits.idle_in_transaction)}  # fmt: skip

    def _cancel(self, number: int, secret: int) -> None:
        """Carry out a cancel request; a wrong key does nothing, and nobody is told."""
        one = self._open.get(number)
        if one is not None and secrets.compare_digest(str(one.secret), str(secret)):
            one.worker.cancel()


async def _end(tasks: set[asyncio.Task[None]]) -> None:
    """End connections, and wait until they have ended."""
    tasks = set(tasks)
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)

"""One connection after its login: takes message by message, and answers in the order in which they came.

After an error the messages up to the next Sync are left out, as the protocol has it. Statements that come together,
before one Sync, are one transaction; so are those of one simple query.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from halfjoin.engine.statements.connection import Connection, Expecting
from halfjoin.errors import HalfjoinError, UnsupportedSQL
from halfjoin.server import messages as m
from halfjoin.server import reports
from halfjoin.server.advisory import LocksOfClient
from halfjoin.server.binding import bound
from halfjoin.server.commands import Commands, parsed
from halfjoin.server.copying import Copying
from halfjoin.server.cursors import fetched
from halfjoin.server.effects import begins_or_ends, changes, together
from halfjoin.server.interval_styles import ISO, styled
from halfjoin.server.limits import Limits
from halfjoin.server.notifying import Mail, next_message
from halfjoin.server.portals import Held, Parsed, Portal, Result
from halfjoin.server.rows import data_rows
from halfjoin.server.sleeping import Sleep
from halfjoin.server.splitting import Piece, split
from halfjoin.server.transactions import Transactions
from halfjoin.server.variables import Variables
from halfjoin.server.wire import Gone, Message, Wire
from halfjoin.server.working import Worker
from halfjoin.sql.expr import Column
from halfjoin.sql.oids import pg_type
from halfjoin.sql.system import DATABASE

_log = logging.getLogger("halfjoin.server")
# Rows and bytes of a part of an answer. The messages of so few take less time than to wake a thread twice.
_FEW, _SMALL = 256, 1 << 14


class Client:
    """A connection."""

    def __init__(
        self, wire: Wire, connection: Connection, worker: Worker, variables: Variables, limits: Limits,
        locks: LocksOfClient, sleep: Sleep, mail: Mail, database: str = DATABASE,
    ) -> None:  # fmt: skip
        self._wire, self._worker, self._variables, self._limits = wire, worker, variables, limits
        self._held = Held(limits, locks, sleep, mail)
        self._transactions = Transactions(connection, variables, self._held, wire.put)
        self._commands = Commands(connection, worker, variables, self._held, self._transactions, limits, database)
        self._copying = Copying(wire, connection, self._commands, worker, limits)
        self._connection = connection
        self._told = variables.reported()
        self._text, self._start = "", 0  # what the client sent, and where the running statement begins in it
        self._skipping = False  # after an error, until Sync
        self.idle = True
        self.stopping = False  # the server takes no more statements

    async def serve(self) -> None:
        """Answer messages until the client leaves.

        Raises:
            Gone: it left without a word. BadMessage: it does not follow the protocol. HalfjoinError: the server stops.
        """
        try:
            await self._ready()
            while (message := await self._next()).letter != "X":
                self.idle = False
                await self._answer(message)
        finally:
            for name in list(self._held.portals):
                self._held.close_portal(name)
            self._held.locks.end()
            self._held.mail.unlisten(self._held.mail.channels)
            self._connection.roll_back()

    async def _next(self) -> Message:
        """The next message; an error if none comes for too long, or the server stops."""
        if self.stopping:
            raise stopped()
        inside = self._connection.transaction != "idle"
        own = self._variables.timeout("idle_in_transaction_session_timeout" if inside else "idle_session_timeout")
        most = self._limits.idle_in_transaction if inside else self._limits.idle
        most = min(own or most, most)
        try:
            if self._held.mail.channels:
                return await next_message(self._wire, self._held.mail, most, inside=inside)
            return await self._wire.take(most)
        except TimeoutError:
            code, what = ("25P03", "idle-in-transaction") if inside else ("57P05", "idle-session")
            raise m.BadMessage(f"terminating connection due to {what} timeout", code=code) from None

    async def _answer(self, message: Message) -> None:
        if message.letter == "Q":
            self._skipping = False
            await self._simple(message)
            return
        if message.letter == "S":
            await self._sync()
            return
        if self._skipping or message.letter in "cdf":  # the rest of a COPY that has failed
            return
        await self._tried(lambda: self._extended(message))

    async def _tried(self, step: Callable[[], Awaitable[None]]) -> bool:
        """Carry out a step; report its error. Whether it worked."""
        try:
            await step()
        except (m.BadMessage, Gone):
            raise
        except Exception as problem:
            self._fail(problem)
            await self._wire.flush()  # a client that has sent Flush waits for it
            return False
        return True

    def _fail(self, problem: BaseException) -> None:
        self._transactions.fail()
        if self._connection.transaction == "idle":  # what came together, before one Sync, says nothing
            self._held.mail.end_transaction(keep=False)
        self._skipping = True
        self._wire.put(reports.error(problem, self._text, self._start))

    async def _sync(self) -> None:
        if self._transactions.implicit:
            await self._tried(lambda: self._transactions.end_implicit(self._commands.call))
        elif self._connection.transaction == "idle":
            self._held.end_transaction(keep=True)
        self._skipping = False
        await self._ready()

    async def _ready(self) -> None:
        self.tell()
        if self._connection.transaction == "idle":
            self._wire.put(*self._held.mail.take())
        self._wire.put(m.ready(self._transactions.status))
        self.idle = True
        await self._wire.flush()

    def tell(self) -> None:
        """Tell the client which of the settings that it knows have changed."""
        now = self._variables.reported()
        for name, value in now.items():
            if self._told[name] != value:
                self._wire.put(m.status(name, value))
        self._told = now

    # -- simple queries

    async def _simple(self, message: Message) -> None:
        fields = m.Fields(message.body)
        await self._tried(lambda: self._script(fields))
        if self._transactions.implicit:
            await self._tried(lambda: self._transactions.end_implicit(self._commands.call))
        self._held.close_portal("")
        if self._connection.transaction == "idle":
            self._held.end_transaction(keep=True)
        self._skipping = False
        await self._ready()

    async def _script(self, fields: m.Fields) -> None:
        self._start = 0
        self._text = fields.text()
        fields.end()
        if (known := self._commands.recalled(self._text)) is not None:
            self._at(known)
            await self._run(known)
            return
        pieces = split(self._text)
        if not pieces:
            self._wire.put(m.EMPTY)
        one = together([piece.keywords for piece in pieces])
        for piece in pieces:
            self._start = piece.start
            if one and not begins_or_ends(piece.keywords):
                self._transactions.begin_implicit()
            await self._statement(piece)
            self.tell()

    async def _statement(self, piece: Piece) -> None:
        self._transactions.check_savepoint(piece.words)
        if piece.words[0] == "COPY":
            self._transactions.check(piece.keywords)
            await self._copying.run(piece)
            return
        await self._run(parsed(piece.text, piece, (), self._commands.database))

    async def _run(self, one: Parsed) -> None:
        result = await self._commands.run(one)
        if result.columns is not None and one.piece is not None:
            formats = self._formats(one.piece, len(result.columns))
            self._wire.put(m.row_description(result.columns, formats))
            await self._rows(result, formats, 0)
        self._complete(result, result.sent)

    def _formats(self, piece: Piece, count: int) -> list[int]:
        """Text; but binary for the rows of a cursor that says so."""
        portal = self._held.portals.get(fetched(piece).name) if piece.words[0] == "FETCH" else None
        return portal.column_formats(count) if portal is not None and portal.cursor else [0] * count

    async def _rows(self, result: Result, formats: list[int], most: int) -> int:
        """Send the next rows of an answer, at most so many (0: all); their number."""
        assert result.columns is not None
        part = result.take(most)
        types = [column.type for column in result.columns]
        if self._variables.get("intervalstyle") == ISO:
            part, types = styled(part, types, formats)
        pieces = data_rows(part, types, formats)
        if part.num_rows <= _FEW and part.nbytes <= _SMALL:
            for made in pieces:
                await self._wire.give(made)
            return int(part.num_rows)
        while (piece := await self._commands.call(lambda: next(pieces, None))) is not None:
            await self._wire.give(piece)
        return int(part.num_rows)

    def _complete(self, result: Result, count: int) -> None:
        self._wire.put(m.complete(f"{result.tag} {count}" if result.counted else result.tag))

    # -- extended queries

    async def _extended(self, message: Message) -> None:
        fields = m.Fields(message.body)
        match message.letter:
            case "P":
                await self._parse(fields)
            case "B":
                await self._bind(fields)
            case "D":
                await self._describe(fields)
            case "E":
                await self._execute(fields)
            case "C":
                self._close(fields)
            case "H":
                await self._wire.flush()
            case _:
                raise m.BadMessage(f"message {message.letter} is out of place")

    async def _parse(self, fields: m.Fields) -> None:
        name, self._text, self._start = fields.text(), fields.text(), 0
        oids = [fields.oid() for _ in range(fields.int16())]
        fields.end()
        known = self._commands.recalled(self._text, oids)
        pieces = split(self._text) if known is None or known.piece is None else [known.piece]
        if len(pieces) > 1:
            raise UnsupportedSQL("cannot insert multiple commands into a prepared statement", code="42601")
        piece = pieces[0] if pieces else None
        if piece is not None:
            self._transactions.check(piece.keywords)
        one = known if known is not None else await self._commands.call(
            partial(parsed, self._text, piece, oids, self._commands.database))  # fmt: skip
        await self._commands.check(one)
        self._held.keep_statement(name, one)
        self._wire.put(m.PARSED)

    async def _bind(self, fields: m.Fields) -> None:
        name, statement = fields.text(), fields.text()
        one = self._at(self._held.statement(statement))
        if one.piece is not None:
            self._transactions.check(one.piece.keywords)
        portal = await bound(one, fields, self._commands)
        self._held.keep_portal(name, portal)
        self._wire.put(m.BOUND)

    async def _describe(self, fields: m.Fields) -> None:
        kind, name = fields.data(1), fields.text()
        fields.end()
        if kind == b"S":
            one = self._at(self._held.statement(name))
            described = await self._commands.describe(one)
            oids = [given or pg_type(type).oid for given, type in
                    zip([*one.oids, *[0] * len(described.parameters)], described.parameters, strict=False)]  # fmt: skip
            self._wire.put(m.parameter_description([*oids, *one.oids[len(oids):]]))
            one.told = columns = described.columns
            formats = [0] * len(columns or ())
        elif kind == b"P":
            portal = self._held.portal(name)
            self._at(portal.parsed)
            columns = await self._columns(portal)
            formats = portal.column_formats(len(columns or ()))
        else:
            raise m.BadMessage(f"invalid DESCRIBE message subtype {kind[0]}")
        self._wire.put(m.NO_DATA if columns is None else m.row_description(columns, formats))

    async def _columns(self, portal: Portal) -> tuple[Column, ...] | None:
        if portal.columns is None and portal.result is None and portal.parsed.piece is not None:
            portal.columns = (await self._commands.describe(portal.parsed)).columns
        return portal.columns

    async def _execute(self, fields: m.Fields) -> None:
        name, most = fields.text(), fields.int32()
        fields.end()
        portal = self._held.portal(name)
        one = self._at(portal.parsed)
        if one.piece is None:
            self._wire.put(m.EMPTY)
            return
        if portal.result is None:
            # A change with more messages before Sync is part of one transaction with them.
            words = one.piece.keywords
            self._transactions.check_savepoint(words)
            if changes(words) and (await self._wire.peek()).letter != "S":
                self._transactions.begin_implicit()
            if words[0] == "COPY":
                self._transactions.check(words)
                await self._copying.run(one.piece)
                return
            told, expecting = one.told if portal.columns is None else portal.columns, None
            if told is not None and changes(words) and self._connection.transaction == "idle":
                # Nothing would undo what it has changed.
                expecting = Expecting(await self._commands.given(one), partial(_check_columns, one, told))
            portal.result = await self._commands.run(one, portal.values, portal.types, expecting)
            portal.columns = portal.result.columns
            if told is not None:
                _check_columns(one, told, portal.columns)
        result, count = portal.result, 0
        if result.columns is not None:
            count = await self._rows(result, portal.column_formats(len(result.columns)), max(most, 0))
        if result.done and not (most > 0 and count == most):
            self._complete(result, count)
        else:
            self._wire.put(m.SUSPENDED)

    def _close(self, fields: m.Fields) -> None:
        kind, name = fields.data(1), fields.text()
        fields.end()
        if kind == b"S":
            self._held.statements.pop(name, None)
        elif kind == b"P":
            self._held.close_portal(name)
        else:
            raise m.BadMessage(f"invalid CLOSE message subtype {kind[0]}")
        self._wire.put(m.CLOSED)

    def _at(self, one: Parsed) -> Parsed:
        """Errors from here on are in the text of this statement."""
        self._text, self._start = one.text, one.piece.start if one.piece is not None else 0
        return one


def stopped() -> HalfjoinError:
    """What a client is told whose connection ends with the server."""
    return HalfjoinError("terminating connection due to administrator command", code="57P01")


def _check_columns(one: Parsed, told: Sequence[Column], found: Sequence[Column] | None) -> None:
    """Refuse an answer with other columns than the client was told."""
    if _oids(told) != _oids(found or ()):
        one.described = None
        raise UnsupportedSQL(reports.OTHER_COLUMNS, remedy="prepare the statement again")


def _oids(columns: Sequence[Column]) -> list[int]:
    """How clients know the types. Digits and dimensions may follow from values, and each value shows its own."""
    return [pg_type(column.type).oid for column in columns]

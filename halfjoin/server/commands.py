"""Carries out one statement of a client: the engine does most; the server itself knows transactions, settings, cursors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import pyarrow as pa

from halfjoin.engine.statements.connection import Connection, Expecting
from halfjoin.engine.statements.describing import Described
from halfjoin.engine.statements.maintaining import NOTHING
from halfjoin.errors import HalfjoinError, UnsupportedSQL
from halfjoin.server.block_steps import BlockSteps
from halfjoin.server.blocks import block_of
from halfjoin.server.changes import Changes
from halfjoin.server.cursors import declared, fetched, name_at
from halfjoin.server.explained import explained
from halfjoin.server.heard import heard
from halfjoin.server.limits import Limits
from halfjoin.server.locking import locking
from halfjoin.server.own import extension_of, is_own
from halfjoin.server.portals import Held, Parsed, Portal, Result
from halfjoin.server.reports import notice
from halfjoin.server.settings import Settings
from halfjoin.server.splitting import QUERY, Piece, split
from halfjoin.server.tags import counted, tag_of
from halfjoin.server.transactions import Transactions
from halfjoin.server.variables import Variables
from halfjoin.server.working import Worker
from halfjoin.sql.expr import Column
from halfjoin.sql.oids import FIRST_OWN, type_of
from halfjoin.sql.parse.prepared import SHORT, Prepared, prepared
from halfjoin.sql.system import DATABASE
from halfjoin.sql.transactions import Savepoint
from halfjoin.sql.types import JSON, TEXT, SqlType

T = TypeVar("T")
_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE")
_PLAN = "QUERY PLAN"
_VAIN = {"CHECKPOINT": "what is acknowledged is kept", "REINDEX": "indexes are made anew by themselves",
         "CLUSTER": "rows are kept in no order"}  # fmt: skip
_SAVEPOINTS = ("SAVEPOINT", "ROLLBACK", "RELEASE")
_OUTSIDE = ("BEGIN", "START", "COMMIT", "END", "ABORT")  # what begins or ends transactions


def parsed(text: str, piece: Piece | None, oids: Sequence[int] = (), database: str = DATABASE) -> Parsed:
    """A statement of a client, parsed. `database`: what it calls the database.

    Raises:
        UnsupportedSQL: a syntax error.
    """
    if piece is not None and piece.words[0] == "DECLARE":
        (inner,) = split(declared(piece).query) or (None,)
        if inner is None or (not counted(inner.words) and inner.words[0] != "SUBSCRIBE"):
            raise UnsupportedSQL("a cursor is for a query", remedy="write DECLARE name CURSOR FOR SELECT ...")
        return Parsed(text, piece, prepared(inner.text, database), tuple(oids))
    if piece is None or is_own(piece.words) or piece.words[0] == "COPY":
        return Parsed(text, piece, None, tuple(oids))
    return Parsed(text, piece, prepared(piece.text, database), tuple(oids))


class Commands:
    """The statements of one connection."""

    def __init__(self, connection: Connection, worker: Worker, variables: Variables, held: Held,
                 transactions: Transactions, limits: Limits, database: str) -> None:
        self._connection, self._worker, self._variables = connection, worker, variables
        self._held, self._transactions, self._limits, self.database = held, transactions, limits, database
        self._settings = Settings(connection, variables, transactions)

    def recalled(self, text: str, oids: Sequence[int] = ()) -> Parsed | None:
        """A text that is one query which the engine remembers, maybe with other constants; None if it has to be parsed.
        """
        query = text.strip(" \t\r\n;")
        if len(query) > SHORT or not self._connection.remembers(query):
            return None
        return Parsed(text, Piece(query, text.index(query), QUERY), Prepared(query, True, self.database),
                      tuple(oids))  # fmt: skip

    async def call(self, function: Callable[[], T]) -> T:
        """Run a function in a thread, no longer than a statement may run."""
        return await self._worker.call(function, self._most())

    def _most(self) -> float:
        """How long a statement may run, in seconds."""
        own = self._variables.timeout("statement_timeout")
        return min(own or self._limits.statement, self._limits.statement)

    async def run(self, one: Parsed, values: Sequence[str | None] = (),
                  types: Sequence[SqlType | None] = (), expecting: Expecting | None = None) -> Result:
        """Carry out a statement other than COPY.

        Raises:
            HalfjoinError: it fails.
        """
        piece = one.piece
        assert piece is not None
        self._transactions.check(piece.keywords)
        if piece.words[0] == "DECLARE":
            return await self._declare(one, values, types)
        if one.prepared is None:
            return await self._run_own(piece)
        if one.prepared.executes is not None:
            self._transactions.check_execute(one.prepared.executes)
        self._held.locks.begin()
        self._held.sleep.begin()
        run = partial(self._connection.run, one.prepared, values, types, expecting)
        if piece.words[0] in ("CREATE", "DROP", "ALTER"):
            answer, warnings = await self.call(partial(heard, run))
            for text in warnings:
                self._transactions.say(notice(text))
        else:
            answer = await self.call(run)
        await self._held.locks.settle(self._worker, self._most(), self._variables.timeout("lock_timeout"))
        await self._held.sleep.settle(self._worker, self._most())
        if piece.words[0] in _SAVEPOINTS and isinstance(statement := one.prepared.statement(), Savepoint):
            self._held.mail.savepoint(statement)
        if answer.tag:
            return Result(answer.tag, answer.rows, answer.columns)
        if answer.rows is not None and (counted(piece.words) or piece.words[0] == "EXECUTE"):
            return Result("SELECT", answer.rows, answer.columns, counted=True)
        tag = tag_of(piece.words)
        if tag.lower() in NOTHING:
            self._transactions.say(notice(NOTHING[tag.lower()]))
        return Result(tag, answer.rows, answer.columns)

    async def check(self, one: Parsed) -> None:
        """Check a statement when it is prepared: its names, its types, its syntax. Where only the value of a parameter
        tells whether it is right, that is told later.

        Raises:
            HalfjoinError: it is wrong.
        """
        if one.piece is None or one.prepared is None or one.piece.words[0] == "DECLARE":
            return
        if not counted(one.piece.words) and one.piece.words[0] not in _CHANGES:
            await self.call(one.prepared.statement)
            return
        try:
            await self.describe(one)
        except HalfjoinError:
            if len(one.oids) >= len(one.prepared.parameters) and all(one.oids):
                raise

    async def describe(self, one: Parsed) -> Described:
        """The types of a statement's parameters, and the columns of its rows."""
        if one.described is None:
            one.described = await self._described(one)
        return one.described

    async def _described(self, one: Parsed) -> Described:
        if one.piece is None:
            return Described((), None)
        if one.prepared is not None:
            given = await self.given(one)
            found = await self.call(partial(self._connection.describe, one.prepared, given))
            if one.piece.words[0] == "DECLARE":
                return Described(found.parameters, None)
            if found.columns == () and not found.parameters:
                answer = await self.call(partial(self._connection.run, one.prepared))
                return Described(found.parameters, answer.columns)
            return found
        words = one.piece.words
        if words[0] == "SHOW":
            return Described((), (await self._run_own(one.piece)).columns)
        if words[0] == "EXPLAIN":
            return Described((), (Column(_PLAN, JSON if explained(one.piece)[1] else TEXT),))
        if words[0] == "FETCH":
            return Described((), self._held.portal(fetched(one.piece).name).columns)
        return Described((), None)

    async def given(self, one: Parsed) -> dict[int, SqlType]:
        """The types that the client has given for parameters, by their numbers."""
        return {n: type for n, type in enumerate(await self.types(one.oids), 1) if type is not None}

    async def types(self, oids: Sequence[int]) -> list[SqlType | None]:
        """The types with these numbers; None for a number that says nothing."""
        enums = await self.call(self._connection.enums) if any(oid >= FIRST_OWN for oid in oids) else ()
        return [type_of(oid, enums) for oid in oids]

    async def _run_own(self, piece: Piece) -> Result:
        words = piece.words
        match words[0]:
            case "BEGIN" | "START":
                self._transactions.begin(words)
                return Result("BEGIN" if words[0] == "BEGIN" else "START TRANSACTION")
            case "COMMIT" | "END":
                return Result(await self._transactions.commit(self.call, chain=_chained(words)))
            case "ROLLBACK" | "ABORT":
                return Result(self._transactions.roll_back(chain=_chained(words)))
            case "SET" if words[1:2] == ("CONSTRAINTS",):
                await self._set_constraints(words)
                return Result("SET CONSTRAINTS")
            case "SET":
                self._settings.set(piece)
            case "RESET":
                self._settings.reset(piece)
            case "SHOW":
                return self._settings.show(piece)
            case "DISCARD":
                return self._discard(words)
            case "DEALLOCATE":
                return await self._deallocate(piece)
            case "FETCH" | "MOVE":
                return await self._fetch(piece)
            case "CLOSE":
                return self._close(piece)
            case "EXPLAIN":
                return await self._explain(piece)
            case "DO":
                self._transactions.begin_implicit()
                await BlockSteps(self._inside, self._transactions.fail).run(block_of(piece))
            case "LOCK":
                if self._connection.transaction == "idle":
                    raise UnsupportedSQL("LOCK TABLE can only be used in transaction blocks", code="25P01",
                                         remedy="write BEGIN first")
                for query in locking(piece):
                    await self._inside(query)
                return Result("LOCK TABLE")
            case "GRANT":
                self._transactions.say(notice("each user may do everything: GRANT changes nothing"))
            case "REVOKE":
                raise UnsupportedSQL("REVOKE is not supported: each user may do everything",
                                     remedy="the server's --host and --password-file say who may connect")
            case "CHECKPOINT" | "REINDEX" | "CLUSTER":
                self._transactions.say(notice(f"{words[0]} has nothing to do: {_VAIN[words[0]]}"))
            case "PREPARE":
                raise UnsupportedSQL("PREPARE TRANSACTION is not supported: a transaction ends with its connection",
                                     remedy="write COMMIT; engine.apply with a batch_id takes a batch once")
            case "ALTER" if words[1] == "DEFAULT":
                self._transactions.say(notice("each user may do everything: ALTER DEFAULT PRIVILEGES changes nothing"))
                return Result("ALTER DEFAULT PRIVILEGES")
            case "ALTER":
                self._transactions.say(notice("each user may do everything: OWNER TO changes nothing"))
                return Result(" ".join(words[: 3 if words[1] == "MATERIALIZED" else 2]))
            case "CREATE":
                self._transactions.say(notice(f'extension "{extension_of(words)}" already exists, skipping', "42710"))
                return Result("CREATE EXTENSION")
            case "LISTEN" | "NOTIFY" | "UNLISTEN":
                self._held.mail.ask(piece)
        return Result(words[0])

    async def _explain(self, piece: Piece) -> Result:
        """EXPLAIN of a prepared query, with NULL for each parameter. A change has no plan: it gives its first word."""
        name, in_json = explained(piece)
        one = self._held.statement(name)
        if one.prepared is None or one.piece is None:
            raise UnsupportedSQL("EXPLAIN takes a query or a view", remedy="write EXPLAIN SELECT ...")
        if not self._connection.reads(one.prepared):
            lines = [json.dumps({"statement": one.piece.words[0]}) if in_json else one.piece.words[0]]
        else:
            options = "(FORMAT JSON) " if in_json else ""
            plan = prepared(f"EXPLAIN {options}{one.piece.text}", self.database)
            count = max(plan.parameters, default=0)
            rows = (await self.call(partial(self._connection.run, plan, [None] * count, [None] * count))).rows
            assert rows is not None
            lines = rows.column(0).to_pylist()
        if in_json:
            lines = [f"[{chr(10).join(lines)}]"]  # one value, as PostgreSQL's
        columns = (await self._described(Parsed(piece.text, piece, None))).columns
        return Result("EXPLAIN", pa.table({_PLAN: pa.array(lines, pa.string())}), columns)

    async def _inside(self, text: str) -> Result:
        """Carry out a statement of a block."""
        (piece,) = split(text)
        if piece.words[0] in _OUTSIDE or piece.words[0] == "COPY":
            raise UnsupportedSQL(f"DO: {piece.words[0]} is not supported", code="2D000")
        return await self.run(parsed(text, piece, (), self.database))

    async def _set_constraints(self, words: Sequence[str]) -> None:
        """SET CONSTRAINTS ... IMMEDIATE checks what is deferred; a key is deferred, or not, as its definition says."""
        if words[-1] not in ("IMMEDIATE", "DEFERRED") or len(words) < 4:
            raise UnsupportedSQL("syntax error in SET CONSTRAINTS", code="42601",
                                 remedy="write SET CONSTRAINTS ALL IMMEDIATE")
        if self._connection.transaction == "idle":
            self._transactions.say(notice("SET CONSTRAINTS can only be used in transaction blocks", "25P01", "WARNING"))
        elif words[-1] == "IMMEDIATE":
            await self.call(self._connection.check_deferred)

    def _discard(self, words: Sequence[str]) -> Result:
        if self._connection.transaction != "idle" and words[1:2] == ("ALL",):
            raise UnsupportedSQL("DISCARD ALL cannot run inside a transaction block", code="25001")
        if words[1:2] == ("ALL",):
            for name in list(self._held.portals):
                self._held.close_portal(name)
            self._held.statements.clear()
            self._held.locks.end()
            self._held.mail.unlisten(self._held.mail.channels)
            self._connection.reset()
            self._variables.reset()
        elif words[1:2] in (("TEMP",), ("TEMPORARY",)):
            self._connection.forget_temporary()
            return Result("DISCARD TEMP")
        return Result(" ".join(words[:2]))

    async def _deallocate(self, piece: Piece) -> Result:
        at = 2 if piece.words[1:2] == ("PREPARE",) else 1
        if piece.words[at:] == ("ALL",):
            self._held.statements.clear()
            await self.call(partial(self._connection.run, prepared("DEALLOCATE ALL")))
            return Result("DEALLOCATE ALL")
        if self._held.statements.pop(name_at(piece, at), None) is None:
            await self.call(partial(self._connection.run, prepared(f"DEALLOCATE {piece.between(at, at + 1)}")))
        return Result("DEALLOCATE")

    async def _declare(self, one: Parsed, values: Sequence[str | None], types: Sequence[SqlType | None]) -> Result:
        assert one.piece is not None and one.prepared is not None
        said = declared(one.piece)
        if not said.hold and self._connection.transaction == "idle":
            raise UnsupportedSQL("DECLARE CURSOR can only be used in transaction blocks", code="25P01",
                                 remedy="write BEGIN first, or DECLARE ... WITH HOLD")
        if said.name in self._held.portals:
            self._held.keep_portal(said.name, self._held.portals[said.name])  # says that it exists
        (inner,) = split(said.query)
        source = Parsed(said.query, inner, one.prepared)
        portal = Portal(source, formats=(1,) if said.binary else (), hold=said.hold, cursor=True)
        if inner.words[0] == "SUBSCRIBE":
            if said.scroll:
                raise UnsupportedSQL("a cursor for SUBSCRIBE goes forward", remedy="leave SCROLL out")
            portal.changes = Changes(*await self.call(partial(self._connection.subscribe, one.prepared)))
            portal.columns = portal.changes.columns
        else:
            portal.result = await self.run(source, values, types)
            portal.columns = portal.result.columns
            portal.scroll = said.scroll is not False
        self._held.keep_portal(said.name, portal)
        return Result("DECLARE CURSOR")

    async def _fetch(self, piece: Piece) -> Result:
        said = fetched(piece)
        portal = self._held.portal(said.name)
        if portal.changes is not None:
            if said.way != "FORWARD" or (said.count or 0) < 0:
                raise UnsupportedSQL("a cursor for SUBSCRIBE goes forward", code="55000", remedy="declare another one")
            rows = await self._worker.wait(portal.changes.take(said.count, said.wait))
        elif portal.result is None and portal.parsed.piece is not None and counted(portal.parsed.piece.words):
            # One that Bind has made, and Execute has not run, as asyncpg's cursors are.
            portal.result = await self.run(portal.parsed, portal.values, portal.types)
            portal.columns = portal.result.columns
            return await self._fetch(piece)
        elif portal.result is None or portal.result.rows is None:
            raise UnsupportedSQL(f'portal "{said.name}" cannot be run', code="55000")
        else:
            rows = portal.result.fetch(said, scroll=portal.scroll)
        if piece.words[0] == "MOVE":
            return Result(f"MOVE {rows.num_rows}")
        return Result("FETCH", rows, portal.columns, counted=True)

    def _close(self, piece: Piece) -> Result:
        if piece.words[1:] == ("ALL",):
            for name in list(self._held.portals):
                self._held.close_portal(name)
            return Result("CLOSE CURSOR ALL")
        name = name_at(piece, 1)
        self._held.portal(name)
        self._held.close_portal(name)
        return Result("CLOSE CURSOR")


def _chained(words: Sequence[str]) -> bool:
    """Whether COMMIT or ROLLBACK has AND CHAIN.

    Raises:
        UnsupportedSQL: it has something else.
    """
    rest = " ".join(words[2 if words[1:2] in (("WORK",), ("TRANSACTION",)) else 1 :])
    if rest not in ("", "AND CHAIN", "AND NO CHAIN"):
        raise UnsupportedSQL(f"{words[0]} {rest} is not supported", remedy=f"write {words[0]}")
    return rest == "AND CHAIN"

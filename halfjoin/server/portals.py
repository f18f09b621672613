"""What a connection holds between messages: prepared statements, portals, and cursors: portals with a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from halfjoin.engine.statements.describing import Described
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.server.advisory import LocksOfClient
from halfjoin.server.changes import Changes
from halfjoin.server.cursors import Fetched, Place
from halfjoin.server.limits import Limits
from halfjoin.server.notifying import Mail
from halfjoin.server.sleeping import Sleep
from halfjoin.server.splitting import Piece
from halfjoin.sql.expr import Column
from halfjoin.sql.parse.prepared import Prepared
from halfjoin.sql.types import SqlType


@dataclass
class Parsed:
    """A prepared statement. `piece` is None if its text is empty; `prepared`, if the server carries it out by itself.
    `oids`: the types of parameters that the client has given; 0 for one to infer. `described`: once it is known.
    `told`: the columns that the client knows of, if it has asked for those of the statement."""

    text: str
    piece: Piece | None
    prepared: Prepared | None
    oids: tuple[int, ...] = ()
    described: Described | None = None
    told: tuple[Column, ...] | None = None


@dataclass
class Result:
    """What a statement answers: rows with their columns, or neither; and the command tag. `sent`: rows sent so far.

    Past the end it is one more than there are. `counted`: the tag ends in the number of rows of the answer.
    """

    tag: str
    rows: pa.Table | None = None
    columns: tuple[Column, ...] | None = None
    counted: bool = False
    sent: int = 0

    def take(self, most: int) -> pa.Table:
        """The next rows, at most so many (0: all)."""
        assert self.rows is not None
        part = self.rows.slice(min(self.sent, self.rows.num_rows), most or None)
        self.sent += part.num_rows
        return part

    def fetch(self, said: Fetched, *, scroll: bool) -> pa.Table:
        """The rows that FETCH or MOVE names, on the way from the place where the last one ended.

        Raises:
            UnsupportedSQL: it goes backward, and the cursor does not scroll.
        """
        assert self.rows is not None
        place = Place(self.rows.num_rows, self.sent)
        if not scroll and not place.forward(said):
            raise UnsupportedSQL("cursor can only scan forward", code="55000",
                                 remedy="declare it with SCROLL to enable backward scan")
        first, count, backward = place.move(said)
        self.sent = place.at
        if backward:
            return self.rows.take(pa.array(range(first + count - 1, first - 1, -1), pa.int64()))
        return self.rows.slice(min(max(first, 0), self.rows.num_rows), count)

    @property
    def done(self) -> bool:
        """Whether all rows are sent."""
        return self.rows is None or self.sent >= self.rows.num_rows


@dataclass
class Portal:
    """A statement with values for its parameters, and its answer once it has run.

    `formats`: of the columns, as Bind has them. `hold`: a cursor that stays after its transaction. `changes`: those of
    a cursor for SUBSCRIBE. `scroll`: whether FETCH may go backward.
    """

    parsed: Parsed
    values: Sequence[str | None] = ()
    types: Sequence[SqlType | None] = ()
    formats: Sequence[int] = ()
    columns: tuple[Column, ...] | None = None
    result: Result | None = None
    hold: bool = False
    changes: Changes | None = None
    cursor: bool = False
    scroll: bool = False

    def column_formats(self, count: int) -> list[int]:
        """The format of each column: 0 for text, 1 for binary."""
        if len(self.formats) in (0, 1):
            return list(self.formats or (0,)) * count
        if len(self.formats) != count:
            raise UnsupportedSQL(f"bind message has {len(self.formats)} result formats but query has {count} columns",
                                 code="08P01")
        return list(self.formats)

    def close(self) -> None:
        """Let go of what it reads."""
        if self.changes is not None:
            self.changes.close()


@dataclass
class Held:
    """The statements and portals of a connection, by name, its advisory locks, how long the running one sleeps, and
    its mail: what it tells and is told on channels. The empty name is taken anew at any time."""

    limits: Limits
    locks: LocksOfClient
    sleep: Sleep
    mail: Mail
    statements: dict[str, Parsed] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)

    def keep_statement(self, name: str, parsed: Parsed) -> None:
        """Keep a prepared statement."""
        if name and name in self.statements:
            raise Conflict(f'prepared statement "{name}" already exists', name=name, code="42P05")
        self._check(len(self.statements))
        self.statements[name] = parsed

    def statement(self, name: str) -> Parsed:
        """A prepared statement."""
        if name not in self.statements:
            raise UnknownName("prepared statement", name, (), remedy="Parse it first", code="26000")
        return self.statements[name]

    def keep_portal(self, name: str, portal: Portal) -> None:
        """Keep a portal or cursor."""
        if name in self.portals:
            if name:
                raise Conflict(f'cursor "{name}" already exists', name=name, code="42P03")
            self.portals[name].close()
        self._check(len(self.portals))
        self.portals[name] = portal

    def portal(self, name: str) -> Portal:
        """A portal or cursor."""
        if name not in self.portals:
            raise UnknownName("cursor", name, (), remedy="DECLARE it first; it ends with its transaction", code="34000")
        return self.portals[name]

    def close_portal(self, name: str) -> None:
        """Close a portal, if there is one of that name."""
        portal = self.portals.pop(name, None)
        if portal is not None:
            portal.close()

    def end_transaction(self, *, keep: bool) -> None:
        """Close the portals that do not outlive a transaction, `keep` those that do; release its locks; tell what it
        has to tell if it is to `keep` that."""
        self.locks.end_transaction()
        self.mail.end_transaction(keep=keep)
        for name, portal in list(self.portals.items()):
            if not (keep and portal.hold):
                self.close_portal(name)

    def _check(self, count: int) -> None:
        if count >= self.limits.held:
            raise UnsupportedSQL(f"a connection may have {self.limits.held:,} of these at a time", code="53400",
                                 remedy="close some: DEALLOCATE, CLOSE")

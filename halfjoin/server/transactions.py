"""BEGIN, COMMIT and ROLLBACK as drivers send them: what PostgreSQL warns of is no error, and options are taken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from halfjoin.engine.statements.connection import Connection
from halfjoin.errors import UnsupportedSQL
from halfjoin.server.portals import Held
from halfjoin.server.reports import notice
from halfjoin.server.variables import Variables

_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CREATE", "DROP", "ALTER", "COMMENT", "REFRESH")


Call = Callable[[Callable[[], None]], Awaitable[None]]  # runs a function in a thread


class Transactions:
    """The transaction of a connection. `implicit`: it is open only until the end of the messages that came together.

    A transaction has the guarantees of PostgreSQL's level SERIALIZABLE: COMMIT fails if another batch has changed a
    table that it changes. So every level that a client asks for is taken.
    """

    def __init__(self, connection: Connection, variables: Variables, held: Held, say: Callable[[bytes], None]) -> None:
        self._connection, self._variables, self._held, self._say = connection, variables, held, say
        self.implicit = False
        self._read_only = False

    @property
    def status(self) -> str:
        """What ReadyForQuery says: `idle`, `open` or `failed`."""
        return "idle" if self.implicit else self._connection.transaction

    def begin(self, words: Sequence[str]) -> None:
        """BEGIN, with any options."""
        if self._connection.transaction != "idle" and not self.implicit:
            self._say(notice("there is already a transaction in progress", "25001", "WARNING"))
            return
        default = self._variables.get("default_transaction_read_only") == "on"
        self._read_only = "READ ONLY" in " ".join(words) or ("READ WRITE" not in " ".join(words) and default)
        self._connection.begin()
        if not self.implicit:
            self._variables.begin()
        self.implicit = False

    def begin_implicit(self) -> None:
        """Open a transaction that ends with the messages that came together, if none is open."""
        if self._connection.transaction == "idle":
            self._connection.begin()
            self._variables.begin()
            self.implicit = True

    async def commit(self, call: Call) -> str:
        """COMMIT; the tag."""
        before = self._connection.transaction
        if before == "idle" or self.implicit:
            self._say(notice("there is no transaction in progress", "25P01", "WARNING"))
            if before == "idle":
                return "COMMIT"
        self.implicit = self._read_only = False
        try:
            await call(self._connection.commit)
        except BaseException:
            self._finish(keep=False)
            raise
        self._finish(keep=before == "open")
        return "COMMIT" if before == "open" else "ROLLBACK"

    def roll_back(self) -> str:
        """ROLLBACK; the tag."""
        if self._connection.transaction == "idle" or self.implicit:
            self._say(notice("there is no transaction in progress", "25P01", "WARNING"))
        self.implicit = self._read_only = False
        self._connection.roll_back()
        self._finish(keep=False)
        return "ROLLBACK"

    async def end_implicit(self, call: Call) -> None:
        """Apply what an implicit transaction has collected; forget it if something of it failed."""
        if not self.implicit:
            return
        self.implicit, failed = False, self._connection.transaction == "failed"
        try:
            await call(self._connection.commit)
        except BaseException:
            self._finish(keep=False)
            raise
        self._finish(keep=not failed)

    def fail(self) -> None:
        """A statement has failed."""
        if self._connection.transaction != "idle":
            self._connection.fail()

    def check(self, words: Sequence[str]) -> None:
        """Refuse a statement that the transaction's state does not allow.

        Raises:
            UnsupportedSQL: it has failed, or only reads.
        """
        ends = words[0] in ("ROLLBACK", "ABORT", "COMMIT", "END")
        if self._connection.transaction == "failed" and not ends:
            raise UnsupportedSQL("current transaction is aborted, commands ignored until end of transaction block",
                                 remedy="send ROLLBACK", code="25P02")
        read_only = self._read_only or (self._connection.transaction == "idle"
                                        and self._variables.get("default_transaction_read_only") == "on")  # fmt: skip
        if read_only and (words[0] in _CHANGES or (words[0] == "COPY" and "FROM" in words)):
            raise UnsupportedSQL(f"cannot execute {words[0]} in a read-only transaction", code="25006")

    def _finish(self, *, keep: bool) -> None:
        self._read_only = False
        self._variables.end(keep=keep)
        self._held.end_transaction(keep=keep)

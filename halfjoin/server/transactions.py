"""BEGIN, COMMIT and ROLLBACK as drivers send them: what PostgreSQL warns of is no error, and options are taken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from halfjoin.engine.statements.connection import Connection
from halfjoin.errors import UnsupportedSQL
from halfjoin.server.effects import change_of
from halfjoin.server.portals import Held
from halfjoin.server.reports import notice
from halfjoin.server.variables import Variables
from halfjoin.sql.transactions import LEVELS

_OUTSIDE = "SET TRANSACTION can only be used in transaction blocks"


Call = Callable[[Callable[[], None]], Awaitable[None]]  # runs a function in a thread


class Transactions:
    """The transaction of a connection. `implicit`: it is open only until the end of the messages that came together.

    Its isolation is the one that the client asks for; see `statements.isolation`. At every level COMMIT fails if
    another batch has changed a table after this transaction did.
    """

    def __init__(self, connection: Connection, variables: Variables, held: Held, say: Callable[[bytes], None]) -> None:
        self._connection, self._variables, self._held, self.say = connection, variables, held, say
        self.implicit = False

    @property
    def status(self) -> str:
        """What ReadyForQuery says: `idle`, `open` or `failed`."""
        return "idle" if self.implicit else self._connection.transaction

    def begin(self, words: Sequence[str]) -> None:
        """BEGIN, with any options. Within a transaction it gives it these."""
        if self._connection.transaction != "idle" and not self.implicit:
            self.say(notice("there is already a transaction in progress", "25001", "WARNING"))
            self.take(words)
            return
        read_only, level = read_only_of(words), level_of(words)
        if read_only is None:
            read_only = self._variables.get("default_transaction_read_only") == "on"
        level = level or self._variables.get("default_transaction_isolation")
        self._open(level, "on" if read_only else "off")
        self.implicit = False

    def take(self, words: Sequence[str]) -> None:
        """The modes of SET TRANSACTION, or of a BEGIN within a transaction.

        Raises:
            UnsupportedSQL: as `isolate`.
        """
        read_only, level = read_only_of(words), level_of(words)
        if self._connection.transaction == "idle":
            self.say(notice(_OUTSIDE, "25P01", "WARNING"))
            return
        if read_only is not None:
            self._variables.set("transaction_read_only", "on" if read_only else "off", local=True)
        if level is not None:
            self.isolate(level)

    def isolate(self, level: str) -> None:
        """SET TRANSACTION ISOLATION LEVEL.

        Raises:
            UnsupportedSQL: the transaction has read or changed something already; or there is no such level.
        """
        if self._connection.transaction == "idle":
            self.say(notice(_OUTSIDE, "25P01", "WARNING"))
            return
        self._variables.set("transaction_isolation", level, local=True)
        self._connection.begin(self._variables.get("transaction_isolation"))

    def begin_implicit(self) -> None:
        """Open a transaction that ends with the messages that came together, if none is open."""
        if self._connection.transaction == "idle":
            self._connection.begin(self._variables.get("default_transaction_isolation"))
            self._variables.begin()
            self.implicit = True

    async def commit(self, call: Call, *, chain: bool = False) -> str:
        """COMMIT; the tag. `chain`: another transaction with the same modes begins."""
        before = self._connection.transaction
        if self._is_none("COMMIT", chain=chain) and before == "idle":
            return "COMMIT"
        self.implicit, modes = False, self._modes()
        try:
            await call(self._connection.commit)
        except BaseException:
            self._finish(keep=False)
            raise
        self._finish(keep=before == "open")
        if chain:
            self._open(*modes)
        return "COMMIT" if before == "open" else "ROLLBACK"

    def roll_back(self, *, chain: bool = False) -> str:
        """ROLLBACK; the tag. `chain`: as of `commit`."""
        self._is_none("ROLLBACK", chain=chain)
        self.implicit, modes = False, self._modes()
        self._connection.roll_back()
        self._finish(keep=False)
        if chain:
            self._open(*modes)
        return "ROLLBACK"

    def _is_none(self, word: str, *, chain: bool) -> bool:
        """Whether the client has begun no transaction, of which it is told.

        Raises:
            UnsupportedSQL: so there is none to `chain` another one to.
        """
        none = self._connection.transaction == "idle" or self.implicit
        if none and chain:
            raise UnsupportedSQL(f"{word} AND CHAIN can only be used in transaction blocks", code="25P01",
                                 remedy="write BEGIN before it")
        if none:
            self.say(notice("there is no transaction in progress", "25P01", "WARNING"))
        return none

    def _modes(self) -> tuple[str, str]:
        """The isolation of the transaction, and whether it only reads."""
        return self._variables.get("transaction_isolation"), self._variables.get("transaction_read_only")

    def _open(self, level: str, read_only: str) -> None:
        """Open a transaction with these modes."""
        self._connection.begin(level)
        if not self.implicit:  # else it has begun already
            self._variables.begin()
        self._variables.set("transaction_read_only", read_only, local=True)
        self._variables.set("transaction_isolation", level, local=True)

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
        if (change := change_of(words)) is not None:
            self._check_change(change)

    def check_savepoint(self, words: Sequence[str]) -> None:
        """Refuse SAVEPOINT, RELEASE and ROLLBACK TO where the client has begun no transaction.

        Raises:
            UnsupportedSQL: it is one of these.
        """
        first = "ROLLBACK TO" if words[0] == "ROLLBACK" and "TO" in words else words[0]
        said = {"SAVEPOINT": "SAVEPOINT", "RELEASE": "RELEASE SAVEPOINT", "ROLLBACK TO": "ROLLBACK TO SAVEPOINT"}
        if first in said and (self.implicit or self._connection.transaction == "idle"):
            raise UnsupportedSQL(f"{said[first]} can only be used in transaction blocks", code="25P01",
                                 remedy="write BEGIN before it")

    def check_execute(self, name: str) -> None:
        """Refuse EXECUTE of a change in a transaction that only reads.

        Raises:
            UnsupportedSQL: it is one.
        """
        if (word := self._connection.changes(name)) is not None:
            self._check_change(word)

    def _check_change(self, word: str) -> None:
        if self._variables.get("transaction_read_only") == "on":
            raise UnsupportedSQL(f"cannot execute {word} in a read-only transaction", code="25006")

    def _finish(self, *, keep: bool) -> None:
        self._variables.end(keep=keep)
        self._held.end_transaction(keep=keep)


def level_of(words: Sequence[str]) -> str | None:
    """The level that the words of BEGIN or SET TRANSACTION name, the last one of several; None if they name none."""
    _, named, said = " ".join(words).rpartition("ISOLATION LEVEL ")
    return next((level for level in LEVELS if named and said.lower().startswith(level)), None)


def read_only_of(words: Sequence[str]) -> bool | None:
    """Whether these words say READ ONLY, and not READ WRITE after it; None if they say neither."""
    said = " ".join(words)
    only, write = said.rfind("READ ONLY"), said.rfind("READ WRITE")
    return None if only == write else only > write

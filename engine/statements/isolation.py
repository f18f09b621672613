"""What the statements of one transaction read, and which changes of others it bears: PostgreSQL's levels of isolation.

At READ COMMITTED each statement reads what the last batch left. At REPEATABLE READ and SERIALIZABLE all statements read
one state, as of one time: that of the first. A change is computed from that state, too, so it is refused once another
batch has closed times since. A SERIALIZABLE transaction with changes is refused for the same reason at COMMIT: what it
has read is then what it would read at COMMIT, as if no other transaction had run beside it.

The wrong ways: to read anew for each statement and only check the written tables at COMMIT (a sum that is read twice
differs), and to let a change read the latest state (it then sees rows that the queries before it did not).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.snapshot import snapshot
from halfjoin.errors import Conflict, UnsupportedSQL
from halfjoin.sql.prepared import Deallocate, Execute, Prepare
from halfjoin.sql.statements import Copy, Explain, Maintain, Select, SetSetting, SetTime, Show, Statement, Subscribe
from halfjoin.sql.transactions import Begin, Commit, Rollback, Savepoint, SetConstraints, SetTransaction

COMMITTED = "read committed"
_READS = (Begin, Commit, Deallocate, Execute, Explain, Maintain, Prepare, Rollback, Savepoint, Select, SetConstraints,
          SetSetting, SetTime, SetTransaction, Show, Subscribe)  # fmt: skip
# What reads and changes no rows, so that it fixes no state.
_APART = (Begin, Commit, Deallocate, Explain, Prepare, Rollback, Savepoint, SetConstraints, SetSetting, SetTime,
          SetTransaction, Show)  # fmt: skip


@dataclass(slots=True)
class Isolation:
    """The level of one transaction, and the state that it reads. `asked`: a statement has read or changed something.
    `read_only`: it changes nothing."""

    level: str = COMMITTED
    asked: bool = False
    read_only: bool = False
    _state: State | None = None

    @property
    def repeatable(self) -> bool:
        """Whether all statements read one state."""
        return self.level in ("repeatable read", "serializable")

    def set(self, level: str) -> None:
        """SET TRANSACTION ISOLATION LEVEL.

        Raises:
            UnsupportedSQL: a statement has read or changed something already.
        """
        if self.asked and level != self.level:
            raise UnsupportedSQL("SET TRANSACTION ISOLATION LEVEL must be called before any query", code="25001",
                                 remedy="write it after BEGIN, or BEGIN ISOLATION LEVEL ...")
        self.level = level

    def take(self, modes: Begin | SetTransaction) -> None:
        """The modes of BEGIN or SET TRANSACTION.

        Raises:
            UnsupportedSQL: a statement has read or changed something already, at another level.
        """
        if modes.level is not None:
            self.set(modes.level)
        if modes.read_only is not None:
            self.read_only = modes.read_only

    def check_change(self, statement: Statement) -> None:
        """Refuse a change in a transaction that only reads.

        Raises:
            UnsupportedSQL: it is one.
        """
        reads = not statement.incoming if isinstance(statement, Copy) else isinstance(statement, _READS)
        if self.read_only and not reads:
            words = re.sub(r"(?<!^)(?=[A-Z])", " ", type(statement).__name__).upper()
            raise UnsupportedSQL(f"cannot execute {words} in a read-only transaction", code="25006")

    def state_for(self, statement: Statement, state: State, *, reads: bool) -> State:
        """The state for a statement of a caller that holds the engine's lock; `state` is the engine's. `reads`: the
        statement is a query that changes nothing, sequences included.

        Raises:
            Conflict: the statement needs the engine's state, and it is not what the statements before have read.
        """
        if isinstance(statement, _APART):
            return state
        if reads and self._state is not None and state.upper != self._state.upper:
            return self._state
        return self.same(state)

    def read(self, latest: Callable[[], State]) -> State:
        """The state that a query reads."""
        self.asked = True
        if not self.repeatable:
            return latest()
        if self._state is None:
            self._state = latest()
        return self._state

    def same(self, state: State) -> State:
        """The engine's state, for a statement that needs it. The caller holds the engine's lock.

        Raises:
            Conflict: it is not what the statements before have read.
        """
        self.asked = True
        if self.repeatable and self._state is None:
            self._state = snapshot(state)
        self._check(state)
        return state

    def check_commit(self, state: State) -> None:
        """Check whether changes can be kept.

        Raises:
            Conflict: the transaction is SERIALIZABLE, and another batch has closed times since its first statement.
        """
        if self.level == "serializable":
            self._check(state)

    def _check(self, state: State) -> None:
        if self._state is not None and state.upper != self._state.upper:
            raise Conflict(f"could not serialize access: another batch has come since this {self.level.upper()} "
                           "transaction began to read", code="40001",
                           remedy="run the transaction again, or at READ COMMITTED")  # fmt: skip

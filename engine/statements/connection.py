"""A connection: one client's statements, with settings and a transaction of their own.

An engine has one session; a server has a connection for each of its clients. Calls of one connection come one after the
other. Queries read a snapshot, so they do not wait for the batches of other connections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar, cast

import pyarrow as pa

from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.subscription import Subscription
from halfjoin.engine.intake.times import time_of
from halfjoin.engine.scalar.arrow_types import sql_type
from halfjoin.engine.statements.asked import Asked, asked_of
from halfjoin.engine.statements.copy_statements import copied_columns, copy_from, copy_lines, copy_rows
from halfjoin.engine.statements.describing import Described, describe
from halfjoin.engine.statements.execute import run_one
from halfjoin.engine.statements.outcomes import RETURNED, TAG
from halfjoin.engine.statements.repeated import columns_known
from halfjoin.engine.statements.sequences import changes_sequence
from halfjoin.engine.statements.session import Session
from halfjoin.engine.statements.settings import checked
from halfjoin.engine.statements.snapshot import InFiles
from halfjoin.engine.statements.subscribing import subscribe
from halfjoin.engine.statements.temporary import Temporary
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Column
from halfjoin.sql.parse.prepared import Prepared, change_in
from halfjoin.sql.statements import Subscribe
from halfjoin.sql.system import Asker
from halfjoin.sql.types import BIGINT, SqlType

T = TypeVar("T")
Locked = Callable[..., Any]  # runs a function of the state while it holds the engine's lock


@dataclass(frozen=True, slots=True)
class Expecting:
    """What is looked at before a statement changes anything, while no other client comes in between. `given`: the types
    of parameters that the client has set. `check` gets the columns of its rows, and raises if they are others."""

    given: Mapping[int, SqlType]
    check: Callable[[tuple[Column, ...] | None], None]


@dataclass(frozen=True)
class Answer:
    """What a statement answers: its rows and their columns (None: none), and PostgreSQL's command tag (empty: none)."""

    rows: pa.Table | None
    columns: tuple[Column, ...] | None
    tag: str


class Connection:
    """The statements of one client of an engine; `Engine.connect` makes it."""

    def __init__(self, locked: Locked, latest: Callable[[], State], session: Session) -> None:
        self._locked, self._latest, self._session = locked, latest, session

    @property
    def transaction(self) -> str:
        """The state of the transaction: `idle`, `open`, or `failed`, which ends only with ROLLBACK."""
        one = self._session.transaction
        return "idle" if one is None else "failed" if one.failed else "open"

    def introduce(self, asker: Asker) -> None:
        """Say who the client is: what current_user, current_setting and the catalog tell of it."""
        self._session.asker = asker

    @property
    def settings(self) -> Mapping[str, str]:
        """What SET has set."""
        return self._session.settings

    def describe(self, prepared: Prepared, given: Mapping[int, SqlType]) -> Described:
        """The types of a statement's parameters, and the columns of its rows; see `statements.describing`."""
        session, asked = self._session, self._asked(prepared.text) if prepared.known else None

        def described(state: State) -> Described:
            if asked is not None and (columns := columns_known(session, state, asked)) is not None:
                return Described((), columns)
            return self._described(state, prepared, given)

        return self._read("", described)

    def _described(self, state: State, prepared: Prepared, given: Mapping[int, SqlType]) -> Described:
        session = self._session
        catalog, path = session.seen(state).catalog, session.path
        if prepared.executes is not None:  # what it will answer follows from PREPARE, too
            return describe(catalog, prepared, given, path, session.prepared)
        key = prepared.text, tuple(sorted(given.items())), path
        return session.remembered.described(key, catalog, lambda: describe(catalog, prepared, given, path))

    def remembers(self, sql: str) -> bool:
        """Whether a text is a query that is remembered, maybe with other constants."""
        return self._session.remembered.knows(self._asked(sql))

    def _asked(self, sql: str) -> Asked | None:
        return asked_of(sql, None, self._session.settings, self._session.path)

    def run(
        self, prepared: Prepared, values: Sequence[str | None] = (), types: Sequence[SqlType | None] = (),
        expecting: Expecting | None = None,
    ) -> Answer:
        """Run a statement with the values of its parameters, as texts of these types.

        Raises:
            UnsupportedSQL, UnknownName, Conflict, InvalidRow, InvalidTime, DataError: it changes nothing. A transaction
            that was open can only be rolled back now.
        """
        session = self._session
        asked = None
        if not prepared.keeps and prepared.rows is None:
            asked = asked_of(
                prepared.text, values, session.settings, session.path,
                lambda given: [prepared.with_values(cast("Sequence[Any]", given), types)], [repr(one) for one in types],
            )  # fmt: skip

        def answer(state: State) -> Answer:
            made = partial(prepared.with_values, values, types)
            return _answer(session, run_one(session, state, made, prepared.text, asked))

        if self.reads(prepared):
            kept = session.prepared.get(prepared.executes or "")
            return self._read(prepared.text if kept is None else kept.text, answer)

        def checked(state: State) -> Answer:
            state = self._same(state, prepared)
            if expecting is not None:
                expecting.check(self._described(state, prepared, expecting.given).columns)
            return answer(state)

        made: Answer = self._locked(checked, writes=True)
        return made

    def reads(self, prepared: Prepared) -> bool:
        """Whether a statement is a query that changes nothing, or EXECUTE of one."""
        kept = self._session.prepared.get(prepared.executes or "")
        return prepared.reads if kept is None else change_in(kept.statement) is None

    def changes(self, name: str) -> str | None:
        """The first word of the change that PREPARE keeps under a name; None if it keeps none."""
        kept = self._session.prepared.get(name)
        return None if kept is None else change_in(kept.statement)

    def _same(self, state: State, prepared: Prepared) -> State:
        """The engine's state, as the transaction's isolation lets a statement use it."""
        return state if prepared.keeps else self._session.isolation.same(state)

    def _read(self, sql: str, function: Callable[[State], T]) -> T:
        """Run a function that reads the state as the last batch left it, or as the transaction's isolation has it. It
        waits for the batch that another connection is submitting only if the transaction has definitions, if the rows
        are in files, or if `sql` is not quiet.

        Raises:
            Conflict: it waits, and the transaction's isolation does not let it read what is there then.
        """
        transaction, isolation = self._session.transaction, self._session.isolation
        if transaction is None or not transaction.defines:
            state = isolation.read(self._latest)
            if _quiet(state, sql):
                try:
                    return function(state)
                except InFiles:
                    if transaction is not None:
                        transaction.failed = False  # it is asked again
        found: T = self._locked(lambda state: function(isolation.same(state)))
        return found

    def copy_in(self, sql: str, data: bytes | pa.Table) -> str:
        """COPY FROM STDIN with the rows' text, or with rows that are read already: a column for each that COPY names.

        Returns:
            The command tag.

        Raises:
            UnsupportedSQL, UnknownName, InvalidRow, DataError: nothing is inserted.
        """
        session = self._session
        count: int = self._locked(lambda state: copy_from(session, session.isolation.same(state), sql, data),
                                  writes=True)
        return f"COPY {count}"

    def copied(self, sql: str) -> tuple[Column, ...]:
        """The columns of the rows that COPY takes or gives."""
        return self._read(sql, lambda state: copied_columns(self._session, state, sql))

    def copy_out(self, sql: str) -> pa.Array:
        """COPY TO STDOUT: the lines, without the ends of lines."""
        return self._read(sql, lambda state: copy_lines(self._session, state, sql))

    def copy_rows(self, sql: str) -> Answer:
        """COPY TO STDOUT: the rows, for another format than text."""
        return self._read(sql, lambda state: _answer(self._session, copy_rows(self._session, state, sql)))

    def subscribe(self, prepared: Prepared) -> tuple[Subscription, tuple[Column, ...]]:
        """SUBSCRIBE: the changes as they close, and their columns: those of the view, `__time`, `__diff`."""
        statement = prepared.statement()
        if not isinstance(statement, Subscribe):
            raise UnsupportedSQL("expected SUBSCRIBE")

        def begun(state: State) -> tuple[Subscription, tuple[Column, ...]]:
            as_of, up_to = time_of(statement.as_of), time_of(statement.up_to)
            made = subscribe(self._session, state, statement.collection, as_of, up_to)
            columns = [column.column for column in state.catalog.views[statement.collection].columns]
            return made, (*columns, Column("__time", BIGINT), Column("__diff", BIGINT))

        found: tuple[Subscription, tuple[Column, ...]] = self._locked(begun)
        return found

    def enums(self) -> list[SqlType]:
        """The enums and the types of rows of the warehouse."""
        catalog = self._read("", lambda state: state.catalog)
        found = (catalog.named_type(name) for name in catalog.enums)
        return [type for type in found if type is not None and (type.labels or type.fields)]

    def begin(self, level: str | None = None) -> None:
        """Open a transaction, if none is open. `level`: of its isolation (`sql.transactions.LEVELS`); None leaves it.

        Raises:
            UnsupportedSQL: it is open, with another level, and has read or changed something.
        """
        if self._session.transaction is None:
            self._session.begin()
        if level is not None:
            self._session.isolation.set(level)

    def commit(self) -> None:
        """Apply the open transaction's changes as one batch.

        Raises:
            Conflict, InvalidRow: nothing of it is applied.
        """
        self._locked(self._session.commit, writes=True)

    def check_deferred(self) -> None:
        """Check now what COMMIT of the open transaction would check.

        Raises:
            InvalidRow: a foreign key that is DEFERRED does not hold.
        """
        if (transaction := self._session.transaction) is not None:
            self._locked(transaction.check_deferred)

    def roll_back(self) -> None:
        """Forget the open transaction, if one is."""
        self._session.transaction = None

    def fail(self) -> None:
        """Let the open transaction wait for ROLLBACK, since something of it has failed."""
        self._session.fail(keep=self._session.transaction is not None)

    def reset(self) -> None:
        """Forget the settings, the prepared statements, the transaction and what is temporary, as DISCARD ALL does."""
        session = self._session
        session.transaction, session.time, session.kept = None, None, Temporary()
        session.settings.clear()
        session.prepared.clear()

    def forget_temporary(self) -> None:
        """Forget what is temporary, as DISCARD TEMP does. In a transaction, ROLLBACK brings it back."""
        if self._session.transaction is None:
            self._session.kept = Temporary()
        else:
            self._session.transaction.keep(Temporary())

    def set(self, name: str, value: str | None) -> None:
        """Change a setting, as SET does; None is its default.

        Raises:
            UnknownName, UnsupportedSQL: there is none of that name, or it cannot have that value.
        """
        self._session.settings[name] = checked(name, value)


def _quiet(state: State, sql: str) -> bool:
    """Whether a query needs no lock. Sequences go on, and functions of the user's need not bear several threads."""
    return not state.functions and not state.catalog.functions and not changes_sequence(sql)


def _answer(session: Session, rows: pa.Table | None) -> Answer:
    known = {} if rows is None else rows.schema.metadata or {}
    tag = known.get(TAG.encode(), b"").decode()
    if rows is None or (tag and RETURNED.encode() not in known):
        return Answer(None, None, tag)
    columns = session.columns
    if columns is None:
        columns = tuple(Column(one.name, sql_type(one.type)) for one in rows.schema)
    return Answer(rows, columns, tag)

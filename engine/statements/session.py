"""A session runs statements one after the other. The engine has a session; a server has one for each connection.

It holds their settings, the open transaction, and the function that they report to.
"""

from __future__ import annotations

import logging
from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Condition
from typing import Any, cast

import pyarrow as pa

from halfjoin.engine.batch.stage import closed_at
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.writer import Writer, writing
from halfjoin.engine.sinks.sinks import Sinks
from halfjoin.engine.spark.runners import Runners
from halfjoin.engine.statements.changing import ReadyChange
from halfjoin.engine.statements.definitions import Means
from halfjoin.engine.statements.isolation import Isolation
from halfjoin.engine.statements.open_times import check_open, due, last_seen, losing, tables_read, with_open
from halfjoin.engine.statements.querying import Ready
from halfjoin.engine.statements.remembered import Remembered
from halfjoin.engine.statements.settings import SETTINGS, checked
from halfjoin.engine.statements.sizes import sizes
from halfjoin.engine.statements.stats import SourceStats
from halfjoin.engine.statements.temporary import Temporary, defines
from halfjoin.engine.statements.transaction import Definition, Transaction, table_of
from halfjoin.engine.updates.updates import Updates
from halfjoin.errors import Conflict, HalfjoinError, UnknownName, UnsupportedSQL
from halfjoin.sql.bind.search_path import path_of
from halfjoin.sql.expr import Column
from halfjoin.sql.prepared import Prepare
from halfjoin.sql.statements import Statement
from halfjoin.sql.system import SCHEMAS, TEMPORARY, Asker, is_temporary
from halfjoin.sql.transactions import Commit, Rollback, Savepoint

_log = logging.getLogger("halfjoin")
_LATER = ("each statement closes its time: write SET TIME with a later one before the next, or put the statements of "
          "one time into one batch: BEGIN; ...; COMMIT")


def tell(tag: str) -> None:
    """Log what a statement has done as PostgreSQL's command tag, such as `INSERT 0 3`."""
    _log.info("%s", tag)


_DEFAULTS = {name: default for name, (default, _) in SETTINGS.items()}
AHEAD = 1000  # numbers of a sequence that are kept as given out before they are

@dataclass(slots=True)
class Session:
    """What statements need from the engine, and their settings.

    `writer` is None in an engine that only reads. `changed` is the engine's lock, with the condition that subscriptions
    wait for. `sources`: the sources of a state and how they are. `time`: the time of the changes of the next
    statements; None: the default of `Engine.apply`.
    `transaction`: the statements since BEGIN; None: no transaction is open. `prepared`: the statements of PREPARE.
    `settings`: those of SET, other than `time`. `last`: the last numbers of sequences, as `Catalog.last`. `columns`:
    those of the last answer, with their SQL types; None if only its rows tell them. `asker`: whom PostgreSQL's catalog
    tells of; a server names its client, and the settings that only it knows. `kept`: the temporary things outside the
    open transaction. `remembered`, `changes`: the queries and the changes that are ready; all sessions share them.
    """

    runners: Runners
    sinks: Sinks
    writer: Writer | None
    changed: tuple[Any, Condition]
    sources: Callable[[State], list[SourceStats]]
    report: Callable[[str], None] = tell
    time: int | None = None
    transaction: Transaction | None = None
    prepared: dict[str, Prepare] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    columns: tuple[Column, ...] | None = None
    asker: Asker = field(default_factory=Asker)
    kept: Temporary = field(default_factory=Temporary)
    remembered: Remembered[Ready] = field(default_factory=Remembered)
    changes: Remembered[ReadyChange] = field(default_factory=Remembered)

    @property
    def temporary(self) -> Temporary:
        """The temporary things, as the open transaction has left them."""
        return self.kept if self.transaction is None else self.transaction.temporary

    @property
    def path(self) -> tuple[str, ...]:
        """The search path: what is temporary comes first, unless the setting says otherwise."""
        path = path_of(self.settings.get("search_path"))
        return path if not self.temporary or TEMPORARY in path else (TEMPORARY, *path)

    def begin(self) -> None:
        """Open a transaction."""
        self.transaction = Transaction(self.kept)

    @property
    def isolation(self) -> Isolation:
        """That of the open transaction. Without one, each statement reads what the last batch left."""
        return Isolation() if self.transaction is None else self.transaction.isolation

    @property
    def means(self) -> Means:
        """What definitions need besides the state."""
        return Means(self.runners, self.sinks)

    @property
    def delivering(self) -> Sinks | None:
        """The sinks; None in an engine that only reads, which does not know how far they are."""
        return None if self.writer is None else self.sinks

    def define(self, state: State, change: Definition, statement: Statement | None = None) -> None:
        """Carry out a change of definitions and keep it, or do neither. In a transaction it is kept by COMMIT.
        `statement`: tells whether it defines what is temporary."""
        change = partial(self._asking_for, change)
        if statement is not None and defines(statement, self.temporary):
            self._take(state, self.temporary.defined(self._known(state), change))
            return
        writer = writing(self.writer)
        if self.transaction is None:
            writer.define(lambda: change(state))
        else:
            self.transaction.define(state, change)

    def _asking_for(self, change: Definition, state: State) -> None:
        """Carry out a change of definitions, in which a DEFAULT may ask for the user."""
        before, asker = state.catalog.asker, self._asking(state)
        state.catalog.asker = Asker(asker.user, asker.database, asker.process, asker.path)
        try:
            change(state)
        finally:
            state.catalog.asker = before  # all sessions share it

    def _take(self, state: State, temporary: Temporary) -> None:
        """Put other temporary things in the place of those of the session."""
        if self.transaction is None:
            self.kept = temporary.ended(state)
        else:
            self.transaction.keep(temporary)

    def apply(self, state: State, batch: Mapping[str, pa.Table], time: int | None) -> None:
        """Submit the changes of statements as one batch, at a time (None: the present).

        Raises:
            HalfjoinError: the engine only reads.
            InvalidTime: the time of SET TIME is closed.
        """
        writer = writing(self.writer)
        self._check_time(state)
        writer.apply(batch, time, follow=False)

    def _checked_time(self, state: State, names: Collection[str], *, waited: bool = False) -> int | None:
        """The session's time for changes that must have seen all of these tables by then. It is None, the time at which
        they are applied, only if nothing can come before. `waited`: it is long since they were computed.

        Raises:
            InvalidTime: the tables have changes before SET TIME.
            Conflict: they have changes that have come since; another try may see them.
        """
        if not with_open(state, names) or (self.time is None and state.clock == "own"):  # that is refused as it is
            return self.time
        if self.time is not None:
            check_open(state, names, self.time)
            return self.time
        return last_seen(state, names, waited=waited)

    def _check_time(self, state: State) -> None:
        if self.time is not None and self.time < state.upper:
            raise closed_at(state, f"time {self.time}", self.time, _LATER)

    def keep_numbers(self, state: State) -> None:
        """Keep which numbers of sequences may have been given out, before anybody sees one: for some time ahead."""
        known, there = self.known(state).catalog, state.catalog.sequences
        given = {name: state.catalog.numbers.get(one.id, one.next) for name, one in there.items()}
        due = {name: one.model_copy(update={"next": given[name] + (0 if one.bounded else AHEAD * one.step)})
               for name, one in there.items()
               if ((given[name] - one.next) * one.step > 0 or (one.cycle and given[name] != one.next))}  # fmt: skip
        due |= {name: known.sequences[name] for name in known.unkept if name in there}
        known.unkept.clear()
        if due:
            writing(self.writer).define(lambda: state.catalog.sequences.update(due))

    def close(self, state: State) -> None:
        """End the sinks, and keep that the numbers ahead have not been given out. If that fails, they are left out."""
        sequences, numbers = state.catalog.sequences, state.catalog.numbers
        given = {name: one.model_copy(update={"next": numbers[one.id]}) for name, one in sequences.items()
                 if (one.next - numbers.get(one.id, one.next)) * one.step > 0 and not one.cycle}  # fmt: skip
        if given and self.writer is not None:
            with suppress(HalfjoinError, OSError):
                self.writer.define(lambda: sequences.update(given))
        self.sinks.close()

    def known(self, state: State) -> State:
        """The state with the definitions of the open transaction, and what is temporary."""
        return self.temporary.over(self._known(state))

    def _known(self, state: State) -> State:
        return state if self.transaction is None else self.transaction.known(state)

    def seen(self, state: State) -> State:
        """The state that the next statement reads."""
        found = self.temporary.over(state if self.transaction is None else self.transaction.seen(state))
        return replace(found, catalog=found.catalog.asked_by(self._asking(found)))

    def _asking(self, state: State) -> Asker:
        """Who asks, with the settings of now."""
        def change(name: str, value: str) -> None:
            self.settings[name] = checked(name, value)

        path = tuple(name for name in self.path
                     if name in ("public", *SCHEMAS, *state.catalog.schemas))  # fmt: skip
        modes = {"transaction_isolation": self.isolation.level,
                 "transaction_read_only": "on" if self.isolation.read_only else "off"}
        settings = ChainMap(self.settings, cast("dict[str, str]", self.asker.settings), modes, _DEFAULTS)
        return replace(self.asker, path=path, settings=settings,
                       set=self.asker.set or change, sizes=partial(sizes, state))

    def close_due(self, state: State, statement: Statement) -> bool:
        """Close the times until now if a change at the present would not see all that its tables have by now.

        Raises:
            Conflict: the transaction has read what was there before, and must not see more.
        """
        names = tables_read(statement)
        if not names or self.writer is None or self.time is not None or state.clock != "wall":
            return False
        if self.transaction is not None and self.transaction.defines:
            return False
        to = due(state, names)
        if to is None:
            return False
        self.writer.advance(to)
        self.isolation.same(state)
        return True

    def change(self, state: State, name: str, changed: Updates) -> None:
        """Apply a statement's changes of a table, or stage them in the open transaction."""
        self.change_all(state, {name: changed})

    def change_all(self, state: State, changes: Mapping[str, Updates], read: Iterable[str] = ()) -> None:
        """As `change`, of several tables. `read`: those whose rows tell what the statement changes.

        Raises:
            InvalidTime: one of them, or of those that lose rows, has changes at open times that are not seen yet.
            Conflict: such a change has come at once; another try may see it.
        """
        own = {name: changed for name, changed in changes.items() if is_temporary(name)}
        lasting = {name: changed for name, changed in changes.items() if name not in own}
        temporary = self.temporary.changed(self._known(state), own) if own else None
        time = self._checked_time(state, {*read, *losing(lasting)})
        if self.transaction is not None:
            self.transaction.stage(state, lasting, self.time)
        elif lasting or not own:
            self.apply(state, {name: table_of(changed) for name, changed in lasting.items()}, time)
        if temporary is not None:
            self._take(state, temporary)

    def check_alive(self, statement: Statement) -> None:
        """Refuse a statement after another of its transaction has failed.

        Raises:
            UnsupportedSQL: the transaction can only be rolled back.
        """
        over = isinstance(statement, Commit | Rollback) or (
            isinstance(statement, Savepoint) and statement.word == "rollback")  # fmt: skip
        if self.transaction is not None and self.transaction.failed and not over:
            raise UnsupportedSQL("current transaction is aborted, commands ignored until end of transaction block",
                                 remedy="write ROLLBACK", code="25P02")

    def fail(self, *, keep: bool) -> None:
        """A statement has failed, and its transaction is rolled back. If it was open before the call (`keep`), it stays
        open until ROLLBACK, so that no later statement runs outside it."""
        if self.transaction is not None and keep:
            self.transaction.failed = True
        else:
            self.transaction = None

    def commit(self, state: State) -> None:
        """Submit the changes of the open transaction as one batch. A failed one is rolled back.

        Raises:
            Conflict: another batch has changed one of its tables meanwhile.
        """
        transaction, self.transaction = self.transaction, None
        if transaction is None or transaction.failed:
            return
        known = transaction.known(state)
        temporary = transaction.temporary.ended(known)
        batch = transaction.batch(state)
        time = self._checked_time(state, transaction.losing(), waited=True)
        if transaction.defines and batch:
            self._check_time(state)
            writing(self.writer).transact(lambda: transaction.define_all(state), batch, time)
        elif transaction.defines:
            writing(self.writer).define(lambda: transaction.define_all(state))
        elif batch:
            self.apply(state, batch, time)
        self.kept = temporary.made_again(known, state) if transaction.defines else temporary
        if transaction.defines:
            self.sinks.begin(state)

    def savepoint(self, statement: Savepoint) -> None:
        """Set, release or go back to a savepoint of the open transaction."""
        assert self.transaction is not None
        self.transaction.savepoint(statement)

    def prepare(self, statement: Prepare) -> None:
        """Keep a statement for EXECUTE."""
        if statement.name in self.prepared:
            raise Conflict(f"prepared statement {statement.name} already exists", remedy="DEALLOCATE it first",
                           name=statement.name, code="42P05")  # fmt: skip
        self.prepared[statement.name] = statement

    def prepared_statement(self, name: str) -> Prepare:
        """The statement of PREPARE."""
        if name not in self.prepared:
            raise UnknownName("prepared statement", name, self.prepared, code="26000")
        return self.prepared[name]

    def deallocate(self, name: str | None) -> None:
        """Forget a prepared statement; None: all."""
        for one in list(self.prepared) if name is None else [self.prepared_statement(name).name]:
            del self.prepared[one]

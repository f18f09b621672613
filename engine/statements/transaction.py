"""BEGIN ... COMMIT: the statements between are one batch, at one time, all of it or nothing.

The changes of a statement are staged, and later statements of the transaction see them in the tables. COMMIT submits
all changes as one batch, with the definitions; before that nothing is kept, and nobody else sees the changes.
A view over a changed table is updated only then. Inside the transaction its query is computed where it is read, as for
a plain view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from halfjoin.catalog.models import Table
from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.batch.clock import present
from halfjoin.engine.batch.readable import closed
from halfjoin.engine.batch.stage import runs_of
from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.rows import submitted
from halfjoin.engine.statements.forking import forked
from halfjoin.engine.statements.isolation import Isolation
from halfjoin.engine.statements.open_times import losing
from halfjoin.engine.statements.temporary import Temporary
from halfjoin.engine.system.counted import Counted
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Updates, concat, constant
from halfjoin.errors import Conflict, InvalidRow, UnknownName, UnsupportedSQL
from halfjoin.sql.definitions import CreateSink
from halfjoin.sql.functions.drawn import Drawn
from halfjoin.sql.statements import RefreshPlan, Statement, Subscribe
from halfjoin.sql.transactions import Begin, Commit, Rollback, Savepoint, SetConstraints, SetTransaction

Definition: TypeAlias = Callable[[State], None]  # carries out a statement that defines something
_WORDS = {CreateSink: "CREATE SINK", RefreshPlan: "REFRESH PLAN", Subscribe: "SUBSCRIBE"}


def check(statements: Sequence[Statement], inside: bool) -> None:
    """Check that transactions begin and end in order, and have no statement that they cannot contain. `inside`: one is
    open before the statements.

    Raises:
        UnsupportedSQL: one does not. No statement has run yet.
    """
    for statement in statements:
        match statement:
            case Begin():
                if inside:
                    raise UnsupportedSQL("BEGIN inside a transaction", remedy="a transaction cannot contain another",
                                         code="25001")
                inside = True
            case Commit() | Rollback():
                if not inside:
                    word = type(statement).__name__.upper()
                    raise UnsupportedSQL(f"{word} without BEGIN", remedy="write BEGIN; ...; COMMIT", code="25P01")
                inside = statement.chain
            case Savepoint() if not inside:
                raise UnsupportedSQL(f"{statement.words} can only be used in transaction blocks", code="25P01",
                                     remedy="write BEGIN before it")
            case SetTransaction() | SetConstraints() if not inside:
                word = "TRANSACTION" if isinstance(statement, SetTransaction) else "CONSTRAINTS"
                raise UnsupportedSQL(f"SET {word} can only be used in transaction blocks", code="25P01",
                                     remedy="write it after BEGIN")
            case CreateSink() | RefreshPlan() | Subscribe() if inside:
                raise UnsupportedSQL(f"{_WORDS[type(statement)]} cannot be in a transaction",
                                     remedy="write it before BEGIN or after COMMIT", code="25001")


@dataclass(frozen=True, slots=True)
class _Done:
    """What the statements of a transaction have done: the rows that they changed, by table; the state with their
    definitions (None: there are none); and the definitions, to be repeated at COMMIT, each with the rows that were
    changed before it, and what it has drawn; and the temporary things of the session."""

    rows: Mapping[str, Updates]
    fork: State | None
    definitions: tuple[tuple[Definition, Mapping[str, Updates], Drawn], ...]
    temporary: Temporary


@dataclass(frozen=True, slots=True)
class _Begun:
    """A table that a transaction has changed, or read FOR UPDATE, as it was then. `upper`: nobody else has changed its
    rows at times below. `watched`: it bears no change of them."""

    name: str
    table: Table
    upper: int
    watched: bool


class Transaction:
    """The changes of the statements since BEGIN. `failed`: a statement has failed, so it can only be rolled back.

    Definitions are made at once in a copy of the state, which the later statements see. COMMIT makes them again in the
    state itself, and then submits the rows; one entry of the journal has both. Rows that were changed before a
    definition are checked and changed with it, as the rows of the table are.
    """

    def __init__(self, temporary: Temporary) -> None:
        self.failed = False
        self.isolation = Isolation()
        self._done = _Done({}, None, (), temporary)
        self._begun: dict[str, _Begun] = {}  # by the ids of the tables
        self._time: int | None = None  # of COMMIT, if the session has set one
        self._savepoints: list[tuple[str, _Done]] = []

    @property
    def defines(self) -> bool:
        """Whether it has definitions."""
        return bool(self._done.definitions)

    @property
    def temporary(self) -> Temporary:
        """The temporary things of the session."""
        return self._done.temporary

    def keep(self, temporary: Temporary) -> None:
        """Put other temporary things in the place of those of the session."""
        self._done = replace(self._done, temporary=temporary)

    def known(self, state: State) -> State:
        """The state with the transaction's definitions, but not the changed rows."""
        return state if self._done.fork is None else self._done.fork

    def define(self, state: State, change: Definition) -> None:
        """Make a definition that the later statements see.

        Raises:
            HalfjoinError: it cannot be made. InvalidRow: the changed rows break a new constraint.
        """
        after, drawn = forked(self.known(state)), Drawn()
        after.pend(self._done.rows)
        with drawn.again():
            change(after)
        rows = {name: changed for name, changed in after.pending.items() if name in after.catalog.tables}
        after.pend({})
        self._check(after, rows, None)
        definitions = (*self._done.definitions, (change, self._done.rows, drawn))
        self._done = _Done(rows, after, definitions, self.temporary)

    def define_all(self, state: State) -> None:
        """Make all definitions again, with what they have drawn. Numbers that a new sequence has given out stay given.

        Raises:
            Conflict: a definition gives other rows than those of which the transaction has removed some.
        """
        fork, before = self._done.fork, {id(table) for table in state.tables.values()}
        assert fork is not None
        try:
            for change, rows, drawn in self._done.definitions:
                state.pend(rows)
                with drawn.again():
                    change(state)
        finally:
            state.pend({})
        for name, changed in self._done.rows.items():
            if id(state.tables[name]) not in before and (changed.diff < 0).any():
                _check_there(state, name, changed)
        sequences, numbers = state.catalog.sequences, state.catalog.numbers
        for name, one in fork.catalog.sequences.items():
            if name in sequences and sequences[name].id != one.id and one.id in numbers:
                sequences[name] = sequences[name].model_copy(update={"next": numbers[one.id]})

    def stage(self, state: State, changes: Mapping[str, Updates], time: int | None) -> None:
        """Add a statement's changes of tables. `time`: the time of COMMIT (None: now).

        Raises:
            InvalidRow: a table refuses the changes, after those of the statements before.
        """
        known, self._time = self.known(state), time
        changes = {name: consolidate(changed, by_time=False) for name, changed in changes.items()}
        self._check(self._after(known), changes, time)
        staged, there = dict(self._done.rows), {table.id: table for table in state.catalog.tables.values()}
        for name, changed in changes.items():
            table = there.get(known.catalog.tables[name].id)
            if table is not None and table.id not in self._begun:  # not one that the transaction has made
                self._begun[table.id] = _Begun(name, table, known.upper, watched=False)
            staged[name] = consolidate(concat([staged[name], changed]), by_time=False) if name in staged else changed
        self._done = replace(self._done, rows=staged)

    def seen(self, state: State) -> State:
        """The state that the next statement reads. If no time is closed yet, it reads as if time 0 were closed.

        Raises:
            Conflict: another batch has changed a table that this transaction has changed before. COMMIT would be
                refused, and its own changes do not fit what is there now: it may delete a row that is gone, or add one
                whose key is taken.
        """
        known = self.known(state)
        if not self._done.rows:
            return known
        self._check_begun(state)
        seen, catalog = self._after(known), known.catalog.copy()
        catalog.inlined = frozenset(name for name in known.above(self._done.rows) if name in catalog.views)
        return replace(seen, catalog=catalog)

    def check_deferred(self, state: State) -> None:
        """Check now what COMMIT would check.

        Raises:
            InvalidRow: a table refuses the changes of the transaction.
        """
        if self._done.rows:
            self._check(self.known(state), self._done.rows, self._time, deferred=True)

    def _check(self, state: State, changes: Mapping[str, Updates], time: int | None, *, deferred: bool = False) -> None:
        """Check changes of tables against their constraints. `deferred`: also foreign keys that are DEFERRED."""
        rows = {name: submitted(state.catalog.table(name), table_of(changed)) for name, changed in changes.items()}
        at = present(state.clock, state.upper) if time is None else max(time, state.upper)
        runs_of(state, rows, at, at + 1, deferred=deferred)

    def _after(self, state: State) -> State:
        """The state with the changes in the tables."""
        if not self._done.rows:
            return state
        start, upper = closed(state), max(state.upper, 1)
        tables = {name: _with(start.tables[name], rows, upper - 1, upper) for name, rows in self._done.rows.items()}
        return replace(start, upper=upper, tables=Counted({**start.tables, **tables}))

    def batch(self, state: State) -> dict[str, pa.Table]:
        """All changes, in the form that `Engine.apply` takes.

        Raises:
            Conflict: another batch has changed one of the tables meanwhile, or, if the transaction is SERIALIZABLE, has
                come at all.
        """
        if self._done.rows or self._done.definitions:
            self.isolation.check_commit(state)
            self._check_begun(state)
        return {name: table_of(rows) for name, rows in self._done.rows.items() if len(rows)}

    def losing(self) -> list[str]:
        """The tables from which it removes rows."""
        return losing(self._done.rows)

    def watch(self, state: State, names: Iterable[str]) -> None:
        """Bear no change of these tables by others from now on, if this transaction changes something: it has read them
        FOR UPDATE, and what it writes may follow from that."""
        for name in names:
            if (table := state.catalog.tables.get(name)) is not None:
                begun = self._begun.get(table.id, _Begun(name, table, state.upper, watched=True))
                self._begun[table.id] = replace(begun, watched=True)

    def _check_begun(self, state: State) -> None:
        """Check that what this transaction has changed fits what others have changed since. `state` is not that of its
        definitions."""
        there = {table.id: table for table in state.catalog.tables.values()}
        for id, begun in self._begun.items():
            name, table = begun.name, there.get(id)
            if table is None or not self._fits(begun, table, state):
                raise Conflict(f"could not serialize access: another batch has changed {name} since this transaction "
                               "changed it", remedy="run the transaction again", name=name, code="40001")  # fmt: skip
            self._begun[id] = replace(begun, upper=max(begun.upper, state.upper))  # the next check begins there

    def _fits(self, begun: _Begun, table: Table, state: State) -> bool:
        """Whether a table is what it was, or only has other rows, which are no matter."""
        if (table.name, table.columns) != (begun.table.name, begun.table.columns):
            return False
        if state.upper <= begun.upper or not len(state.tables[table.name].changes(begun.upper, state.upper)):
            return True
        return not begun.watched and self._still_adds(state, begun.name)

    def _still_adds(self, state: State, name: str) -> bool:
        """Whether the transaction only adds rows to a table, and the table takes them as it is now: rows of others are
        no matter to them."""
        rows = self._done.rows.get(name)
        late = self._time is not None and self._time < state.upper
        if rows is None or late or self.defines or (rows.diff < 0).any():
            return False
        try:
            self._check(state, {name: rows}, self._time)
        except InvalidRow:
            return False
        return True

    def savepoint(self, statement: Savepoint) -> None:
        """Set a savepoint, release it, or undo what was done since.

        Raises:
            UnknownName: no savepoint has that name.
        """
        if statement.word == "savepoint":
            self._savepoints.append((statement.name, self._done))
            return
        names = [name for name, _ in self._savepoints]
        if statement.name not in names:
            raise UnknownName("savepoint", statement.name, names, code="3B001")
        place = len(names) - 1 - names[::-1].index(statement.name)
        if statement.word == "rollback":
            self._done, self.failed = self._savepoints[place][1], False
            place += 1
        del self._savepoints[place:]


def _check_there(state: State, name: str, changed: Updates) -> None:
    """Check that a table that was made anew has the rows that a transaction removes from it."""
    there = state.tables[name].as_of(max(state.upper, 1) - 1, distinct=True)
    left = consolidate(concat([there, changed.select([*there.columns])]), by_time=False)
    if (left.diff < 0).any():
        raise Conflict(f"could not serialize access: {name} has other rows than the transaction has seen",
                       remedy="run the transaction again", name=name, code="40001")  # fmt: skip


def _with(collection: Collection, staged: Updates, time: int, upper: int) -> Collection:
    """A copy of a collection with these updates added."""
    run = make_run(Updates(staged.columns, constant(time, len(staged)), staged.diff), upper)
    held = (*collection.runs, run) if len(run) else collection.runs
    return replace(collection, held=held, stored=None, cold=None, arrangements=collection.shared())


def table_of(changed: Updates) -> pa.Table:
    """Updates in the form that `Engine.apply` takes, without times."""
    return changed.table(changes=True).drop_columns(["__time"])

"""BEGIN ... COMMIT: the statements between are one batch, at one time, all of it or nothing.

The changes of a statement are staged, and later statements of the transaction see them in the tables. COMMIT submits
all changes as one batch; before that nothing is kept, and nobody else sees the changes. A view over a changed table is
updated only then. Inside the transaction its query is computed where it is read, as for a plain view.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.batch.clock import present
from halfjoin.engine.batch.readable import closed
from halfjoin.engine.batch.stage import runs_of
from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.rows import submitted
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Updates, concat, constant
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.sql.statements import (
    Begin,
    Commit,
    Copy,
    Deallocate,
    Delete,
    Execute,
    Explain,
    Insert,
    Merge,
    Prepare,
    Rollback,
    Savepoint,
    Select,
    SetSetting,
    SetTime,
    Show,
    Statement,
    Truncate,
    Update,
    WithChanges,
)


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
            case Commit() | Rollback() | Savepoint():
                if not inside:
                    word = type(statement).__name__.upper()
                    raise UnsupportedSQL(f"{word} without BEGIN", remedy="write BEGIN; ...; COMMIT", code="25P01")
                inside = isinstance(statement, Savepoint)
            case (Insert() | Update() | Delete() | Merge() | WithChanges() | Copy() | Truncate() | Select() | Explain()
                  | Show() | SetTime() | SetSetting() | Prepare() | Execute() | Deallocate()):  # fmt: skip
                pass
            case _ if inside:
                raise UnsupportedSQL("a transaction can contain INSERT, UPDATE, DELETE and SELECT, but no definitions",
                                     remedy="write CREATE and DROP before BEGIN or after COMMIT")


class Transaction:
    """The changes of the statements since BEGIN. `failed`: a statement has failed, so it can only be rolled back."""

    def __init__(self) -> None:
        self.failed = False
        self._staged: dict[str, Updates] = {}
        self._begun: dict[str, int] = {}  # for each changed table, `upper` when it was first changed
        self._savepoints: list[tuple[str, dict[str, Updates]]] = []

    def stage(self, state: State, changes: Mapping[str, Updates], time: int | None) -> None:
        """Add a statement's changes of tables. `time`: the time of COMMIT (None: now).

        Raises:
            InvalidRow: a table refuses the changes, after those of the statements before.
        """
        changes = {name: consolidate(changed, by_time=False) for name, changed in changes.items()}
        rows = {name: submitted(state.catalog.table(name), table_of(changed)) for name, changed in changes.items()}
        at = present(state.clock, state.upper) if time is None else max(time, state.upper)
        runs_of(self._after(state), rows, at, at + 1)
        for name, changed in changes.items():
            self._begun.setdefault(name, state.upper)
            before = self._staged.get(name)
            self._staged[name] = changed if before is None else consolidate(concat([before, changed]), by_time=False)

    def seen(self, state: State) -> State:
        """The state that the next statement reads. If no time is closed yet, it reads as if time 0 were closed."""
        if not self._staged:
            return state
        seen, catalog = self._after(state), state.catalog.copy()
        for name in state.above(self._staged):
            if (view := catalog.views.get(name)) is not None:
                catalog.views[name] = view.model_copy(update={"materialized": False})
        return replace(seen, catalog=catalog)

    def _after(self, state: State) -> State:
        """The state with the changes in the tables."""
        if not self._staged:
            return state
        start, upper = closed(state), max(state.upper, 1)
        tables = {name: _with(start.tables[name], staged, upper - 1, upper) for name, staged in self._staged.items()}
        return replace(start, upper=upper, tables={**start.tables, **tables})

    def batch(self, state: State) -> dict[str, pa.Table]:
        """All changes, in the form that `Engine.apply` takes.

        Raises:
            Conflict: another batch has changed one of the tables meanwhile.
        """
        for name, upper in self._begun.items():
            table = state.tables.get(name)
            if table is None or (state.upper > upper and len(table.changes(upper, state.upper))):
                raise Conflict(f"could not serialize access: another batch has changed {name} since this transaction "
                               "changed it", remedy="run the transaction again", name=name, code="40001")  # fmt: skip
        return {name: table_of(staged) for name, staged in self._staged.items() if len(staged)}

    def savepoint(self, statement: Savepoint) -> None:
        """Set a savepoint, release it, or undo what was done since.

        Raises:
            UnknownName: no savepoint has that name.
        """
        if statement.word == "savepoint":
            self._savepoints.append((statement.name, dict(self._staged)))
            return
        names = [name for name, _ in self._savepoints]
        if statement.name not in names:
            raise UnknownName("savepoint", statement.name, names, code="3B001")
        place = len(names) - 1 - names[::-1].index(statement.name)
        if statement.word == "rollback":
            self._staged, self.failed = dict(self._savepoints[place][1]), False
            place += 1
        del self._savepoints[place:]


def _with(collection: Collection, staged: Updates, time: int, upper: int) -> Collection:
    """A copy of a collection with these updates added."""
    run = make_run(Updates(staged.columns, constant(time, len(staged)), staged.diff), upper)
    held = (*collection.runs, run) if len(run) else collection.runs
    return replace(collection, held=held, stored=None, cold=None, arrangements=collection.shared())


def table_of(changed: Updates) -> pa.Table:
    """Updates in the form that `Engine.apply` takes, without times."""
    return changed.table(changes=True).drop_columns(["__time"])

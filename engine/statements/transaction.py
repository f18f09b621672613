"""BEGIN; ...; COMMIT: the statements between are one batch, at one time, all of it or nothing.

The changes of a statement are staged, and later statements of the transaction see them in the tables. COMMIT submits
all changes as one batch; before that nothing is kept, and nobody else sees the changes. Views are updated only then, so
inside a transaction a view over a changed table cannot be read.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.bind.tables import names_of
from halfjoin.sql.statements import (
    Begin,
    Commit,
    Delete,
    Explain,
    Insert,
    Query,
    Rollback,
    Select,
    SetTime,
    Show,
    Statement,
    Update,
)

_WHOLE = "write BEGIN; ...; COMMIT in one execute"


def check(statements: Sequence[Statement]) -> None:
    """Check that each transaction begins and ends among the statements, and has no statement that it cannot contain.

    Raises:
        UnsupportedSQL: one does not. No statement has run yet.
    """
    inside = False
    for statement in statements:
        match statement:
            case Begin():
                if inside:
                    raise UnsupportedSQL("BEGIN inside a transaction", remedy="a transaction cannot contain another")
                inside = True
            case Commit() | Rollback():
                if not inside:
                    word = type(statement).__name__.upper()
                    raise UnsupportedSQL(f"{word} without BEGIN", remedy=_WHOLE)
                inside = False
            case Insert() | Update() | Delete() | Select() | Explain() | Show() | SetTime():
                pass
            case _ if inside:
                raise UnsupportedSQL("a transaction can contain INSERT, UPDATE, DELETE and SELECT, but no definitions",
                                     remedy="write CREATE and DROP before BEGIN or after COMMIT")
    if inside:
        raise UnsupportedSQL("BEGIN without COMMIT or ROLLBACK", remedy=_WHOLE)


class Transaction:
    """The changes of the statements since BEGIN."""

    def __init__(self) -> None:
        self._staged: dict[str, Updates] = {}

    def stage(self, state: State, name: str, changed: Updates, time: int | None) -> None:
        """Add a statement's changes of a table. `time`: the time of COMMIT (None: now).

        Raises:
            InvalidRow: the table refuses the changes, after those of the statements before.
        """
        changed = consolidate(changed, by_time=False)
        rows = submitted(state.catalog.table(name), _table(changed))
        at = present(state.clock, state.upper) if time is None else max(time, state.upper)
        runs_of(self.seen(state), {name: rows}, at, at + 1)
        before = self._staged.get(name)
        self._staged[name] = changed if before is None else consolidate(concat([before, changed]), by_time=False)

    def seen(self, state: State) -> State:
        """The state that the next statement reads. If no time is closed yet, it reads as if time 0 were closed."""
        if not self._staged:
            return state
        start, upper = closed(state), max(state.upper, 1)
        tables = {name: _with(start.tables[name], staged, upper - 1, upper) for name, staged in self._staged.items()}
        return replace(start, upper=upper, tables={**start.tables, **tables})

    def check_reads(self, state: State, query: Query) -> None:
        """Refuse to read a view that does not show the transaction's changes yet.

        Raises:
            UnsupportedSQL: the query reads such a view; the error names it.
        """
        behind = {*state.above(self._staged)}
        for name in sorted(names_of(query, state.catalog)):
            if name in behind:
                raise UnsupportedSQL(f"{name} reads what this transaction has changed, and is updated at COMMIT",
                                     remedy="read the tables, or COMMIT first")

    def batch(self) -> dict[str, pa.Table]:
        """All changes, in the form that `Engine.apply` takes."""
        return {name: _table(staged) for name, staged in self._staged.items() if len(staged)}


def _with(collection: Collection, staged: Updates, time: int, upper: int) -> Collection:
    """A copy of a collection with these updates added."""
    run = make_run(Updates(staged.columns, constant(time, len(staged)), staged.diff), upper)
    held = (*collection.runs, run) if len(run) else collection.runs
    return replace(collection, held=held, stored=None, cold=None, arrangements=collection.shared())


def _table(changed: Updates) -> pa.Table:
    return changed.table(changes=True).drop_columns(["__time"])

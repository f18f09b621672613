"""What a statement changes must have no rows at open times before its own: it reads closed times, and so would delete
rows that are gone by then, and pass over those that have come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from halfjoin.engine.batch.clock import present, shown
from halfjoin.engine.batch.state import State
from halfjoin.engine.updates.updates import MAXIMUM, Updates
from halfjoin.errors import InvalidTime
from halfjoin.sql.statements import Delete, Insert, Merge, Statement, Truncate, Update, WithChanges


def tables_read(statement: Statement) -> frozenset[str]:
    """The tables that a statement changes by what it has read of them. An INSERT reads its own only for ON CONFLICT."""
    match statement:
        case Insert(table=name, conflict=conflict):
            return frozenset() if conflict is None else frozenset([name])
        case Delete(table=name) | Update(table=name) | Merge(table=name):
            return frozenset([name])
        case Truncate(tables=names):
            return frozenset(names)
        case WithChanges(parts=parts, main=main):
            return frozenset().union(*map(tables_read, (main, *(change for _, change in parts))))
        case _:
            return frozenset()


def losing(changes: Mapping[str, Updates]) -> list[str]:
    """The tables from which changes remove rows."""
    return [name for name, rows in changes.items() if (rows.diff < 0).any()]


def has_open(state: State, names: Iterable[str], last: int = MAXIMUM - 1) -> list[str]:
    """Those of the tables that have changes at open times up to `last`."""
    tables = state.tables
    return [name for name in names if name in tables and tables[name].closes(state.upper, last + 1)]


def check_open(state: State, names: Iterable[str], time: int) -> None:
    """Check that a change at a time has seen all that is there by then.

    Raises:
        InvalidTime: one of the tables has changes at open times until then.
    """
    for name in has_open(state, names, time):
        raise InvalidTime(
            f"{name} has changes at times that are still open, up to {shown(time, state.clock)}, the time of this "
            "statement, which it does not see: statements read closed times", time=time, upper=state.upper, table=name,
            remedy=f"close them first, with engine.advance(to={time + 1}), and let the statement have a later time",
        )  # fmt: skip


def due(state: State, names: Iterable[str]) -> int | None:
    """What to close so that a statement at the present sees all changes of these tables until now. None: nothing."""
    now = present(state.clock, state.upper)
    return now + 1 if has_open(state, names, now) else None

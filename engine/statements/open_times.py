"""Lets no statement pass over rows at open times before its own.

Statements read closed times. So they would delete rows that are gone by then, and pass over those that have come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from halfjoin.catalog.catalog import Catalog
from halfjoin.engine.batch.clock import present, shown
from halfjoin.engine.batch.state import State
from halfjoin.engine.updates.updates import MAXIMUM, Updates
from halfjoin.errors import Conflict, InvalidTime
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


def _reached(catalog: Catalog, names: Iterable[str]) -> set[str]:
    """These tables and those whose foreign keys refer to them, which a change of them may change or has to look at."""
    found, new = set(names), set(names)
    while new:
        new = {other.name for other in catalog.tables.values() if other.name not in found
               and any(key.table in new for key in other.foreign_keys)}  # fmt: skip
        found |= new
    return found


def losing(changes: Mapping[str, Updates]) -> list[str]:
    """The tables from which changes remove rows."""
    return [name for name, rows in changes.items() if (rows.diff < 0).any()]


def with_open(state: State, names: Iterable[str], last: int = MAXIMUM - 1) -> list[str]:
    """Those of the tables that have changes at open times up to `last`."""
    tables = state.tables
    return [name for name in names if name in tables and tables[name].closes(state.upper, last + 1)]


def check_open(state: State, names: Iterable[str], time: int) -> None:
    """Check that a change at a time has seen all that is there by then.

    Raises:
        InvalidTime: one of the tables has changes at open times until then.
    """
    for name in with_open(state, names, time):
        raise InvalidTime(
            f"{name} has changes at times that are still open, up to {shown(time, state.clock)}, the time of this "
            "statement, which it does not see: statements read closed times", time=time, upper=state.upper, table=name,
            remedy=f"close them first, with engine.advance(to={time + 1}), and let the statement have a later time",
        )  # fmt: skip


def last_seen(state: State, names: Iterable[str], *, waited: bool) -> int:
    """The last time until now by which a change at the present has seen all of these tables. What has come since it was
    computed, a moment ago, comes after it.

    Raises:
        Conflict: something has come at once, or since a transaction computed it (`waited`).
    """
    now = present(state.clock, state.upper)
    late = with_open(state, names, now)
    times = [state.tables[name].closing(state.upper, now + 1).time for name in late]
    first = min((int(one.min()) for one in times if len(one)), default=now + 1)
    if first <= (now if waited else state.upper):
        raise Conflict(f"could not serialize access: {late[0]} has changes at {shown(first, state.clock)}, which this "
                       "change has not seen", remedy="try again once they are closed", name=late[0],
                       code="40001")  # fmt: skip
    return first - 1


def due(state: State, names: Iterable[str]) -> int | None:
    """What to close so that a statement at the present sees all changes until now of these tables, and of those that
    refer to them. None: nothing."""
    now = present(state.clock, state.upper)
    late = with_open(state, state.tables, now)  # hardly ever any, and to find what refers to a table takes longer
    return now + 1 if late and not _reached(state.catalog, names).isdisjoint(late) else None

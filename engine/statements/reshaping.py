"""Puts a table with other columns or constraints in the place of the one that has its name.

It gets a new collection of the table's rows, with all their times, in the same entry of the journal as the definition.
Views go on as they are; what would change one is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from halfjoin.catalog.models import Table
from halfjoin.engine.batch.enter import enter_table
from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.foreign_keys import Tables
from halfjoin.engine.intake.foreign_keys import check as check_foreign_keys
from halfjoin.engine.intake.generated import check as check_row_by_row
from halfjoin.engine.intake.primary_key import key_of, known
from halfjoin.engine.statements.tables import refer
from halfjoin.engine.storage.filling import take_in
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Updates, concat, empty
from halfjoin.errors import Conflict, InvalidRow, UnsupportedSQL
from halfjoin.planner.drift import same_work
from halfjoin.planner.figures import Replayed
from halfjoin.planner.plan_view import plan
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.parse.parse import parse_query

Rows = Callable[[Updates], Updates]  # what happens to the rows


def put(state: State, old: Table, new: Table, rows: Rows | None) -> None:
    """Put a table in the place of another, with its rows; the views over it stay."""
    there, catalog = state.tables.pop(old.name), state.catalog
    catalog.tables = {(new.name if name == old.name else name): (new if name == old.name else table)
                      for name, table in catalog.tables.items()}  # fmt: skip
    refer(catalog, new)
    made = enter_table(state, catalog.tables[new.name])
    made.since = there.since
    for key, arrangement in there.shared().items():
        kept = {user: None for user in arrangement.users if user.kind in ("view", "node", "index", "new view")}
        if kept:
            made.arrangements.setdefault(key, replace(arrangement, users={})).users.update(kept)
    if rows is None and made.schema == there.schema:  # its rows stay as they are, with other arrangements
        there.arrangements = made.arrangements
        state.tables[old.name] = there
    else:
        change = rows or (lambda updates: updates)
        for part in there.runs:
            for piece in part.pieces():
                take_in(state, "tables", new.name, made, change(piece))
    _check_views(state, new.name)


def _check_views(state: State, table: str) -> None:
    """Check that the views over a changed table, and the work to maintain them, are what they were.

    Raises:
        Conflict: one is not.
    """
    for name in state.above([table]):
        view, running = state.catalog.views.get(name), state.maintained[name]
        if view is None or running.plan is None:
            continue
        try:
            bound = bind(parse_query(view.text), state.catalog, view.text)
        except UnsupportedSQL as error:
            raise Conflict(f"the materialized view {name} would fail: {error.reason}", remedy="drop it first",
                           name=table, holder=name, code="2BP01") from None  # fmt: skip
        planned = plan(bound, Replayed(state, view.planned), name)
        columns = [(column.name, column.type) for column in planned.columns]
        if columns != [(column.name, column.type) for column in view.columns] or not same_work(planned, running.plan):
            raise Conflict(f"the materialized view {name} would change", name=table, holder=name, code="2BP01",
                           remedy="name the columns that it reads, or drop it first")  # fmt: skip


def check_rows(state: State, table: Table) -> None:
    """Check the present and future rows of a table against its constraints.

    Raises:
        InvalidRow: one breaks them.
    """
    collection = state.tables[table.name]
    pieces = [piece for part in collection.runs for piece in part.pieces()]
    every = concat(pieces) if pieces else empty(collection.schema)
    rows = consolidate(every.not_before(max(state.upper - 1, 0)))  # what was there before does not matter
    for column in table.columns:
        if column.not_null and rows.filter(rows.diff > 0).columns[column.name].null_count:
            raise InvalidRow(f"column {column.name} of {table.name} contains NULLs", table=table.name,
                             column=column.name, code="23502")  # fmt: skip
    try:
        check_row_by_row(table, rows)
    except InvalidRow as problem:
        raise problem.with_(row=None) from None
    if table.primary_key:
        try:
            key_of(table, table.primary_key, collection).check([], consolidate(every))
        except InvalidRow as problem:
            raise problem.with_(row=None, reason="could not create the PRIMARY KEY: at a time that can be read "
                                f"{problem.reason}") from None  # fmt: skip
    for one in table.unique:
        asked = rows.filter(known(rows, one.columns))
        try:
            key_of(table, one.columns, collection).check([], asked)
        except InvalidRow as problem:
            raise problem.with_(row=None, reason=f"could not create unique constraint {one.name}") from None
    if table.foreign_keys and len(rows):
        before = dict(state.tables)
        before[table.name] = replace(collection, held=(), stored=None, cold=None, arrangements=collection.shared())
        check_foreign_keys(Tables(state.catalog.tables, before), {table.name: rows})

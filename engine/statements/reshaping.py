"""Puts a table with other columns or constraints in the place of the one that has its name.

It gets a new collection of the table's rows, with all their times, in the same entry of the journal as the definition.
The views over it follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from halfjoin.catalog.models import Table
from halfjoin.engine.batch.enter import enter_index, enter_table
from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.foreign_keys import Tables
from halfjoin.engine.intake.foreign_keys import check as check_foreign_keys
from halfjoin.engine.intake.generated import check as check_row_by_row
from halfjoin.engine.intake.primary_key import key_of, known, primary_key
from halfjoin.engine.statements.following import follow
from halfjoin.engine.statements.framing import Change, between
from halfjoin.engine.statements.tables import refer
from halfjoin.engine.storage.filling import take_in
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Updates, concat, constant, empty
from halfjoin.errors import InvalidRow

Rows = Callable[[Updates], Updates]  # what happens to the rows


def put(state: State, old: Table, new: Table, rows: Rows | None, renamed: Change | None = None, *,
        whole: bool = False) -> None:  # fmt: skip
    """Put a table in the place of another, with its rows; the views over it follow. `renamed`: what else happens to
    names than that columns come and go. `whole`: what happens to a row depends on the others.

    Raises:
        Conflict: a view reads a column that goes.
    """
    before = state.catalog.copy()
    there, catalog = state.tables.pop(old.name), state.catalog
    catalog.tables = {(new.name if name == old.name else name): (new if name == old.name else table)
                      for name, table in catalog.tables.items()}  # fmt: skip
    refer(catalog, new)
    made = enter_table(state, catalog.tables[new.name])
    made.since = there.since
    for index in catalog.indexes.values():
        if index.collection == new.name:
            enter_index(state, index)
    if rows is None and made.schema == there.schema:  # its rows stay as they are, with other arrangements
        there.rearrange(made.arrangements)
        state.tables[old.name] = there
    else:
        change = rows or (lambda updates: updates)
        if old.name in state.pending:
            state.pending[new.name] = change(state.pending.pop(old.name))
        pieces = (piece for part in there.runs for piece in part.pieces())
        for piece in [concat([empty(there.schema), *pieces])] if whole else pieces:
            take_in(state, "tables", new.name, made, change(piece))
    follow(state, before, renamed or between(old, new))


def check_rows(state: State, table: Table) -> None:
    """Check the present and future rows of a table against its constraints, those that are NOT VALID apart.

    Raises:
        InvalidRow: one breaks them.
    """
    collection = state.tables[table.name]
    table = table.model_copy(update={"checks": tuple(one for one in table.checks if one.valid),
                                     "foreign_keys": tuple(one for one in table.foreign_keys if one.valid)})
    pieces = [piece for part in collection.runs for piece in part.pieces()]
    every = concat(pieces) if pieces else empty(collection.schema)
    pending = {name: Updates(one.columns, constant(state.upper, len(one)), one.diff)
               for name, one in state.pending.items()}  # fmt: skip
    start = max(state.upper - 1, 0)  # what was there before does not matter
    if table.name in pending:
        every, start = concat([every, pending[table.name]]), state.upper
    rows = consolidate(every.not_before(start))
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
            primary_key(table).check([], consolidate(every))
        except InvalidRow as problem:
            raise problem.with_(row=None, reason="could not create the PRIMARY KEY: at a time that can be read "
                                f"{problem.reason}") from None  # fmt: skip
    for one in table.unique:
        asked = rows.filter(known(rows, one.columns))
        try:
            key_of(table, one.columns).check([], asked)
        except InvalidRow as problem:
            raise problem.with_(row=None, reason=f"could not create unique constraint {one.name}") from None
    if table.foreign_keys and len(rows):
        before = dict(state.tables)
        before[table.name] = replace(collection, held=(), stored=None, cold=None, arrangements=collection.shared())
        defined = {**state.catalog.tables, table.name: table}
        check_foreign_keys(Tables(defined, before), {**pending, table.name: rows})

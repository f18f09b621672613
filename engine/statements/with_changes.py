"""WITH queries that change rows: all read the tables as they are before the statement, and make one batch together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.foreign_keys import Tables
from halfjoin.engine.intake.referential import Effects
from halfjoin.engine.statements import reading
from halfjoin.engine.statements.changing import Changed, carry_out
from halfjoin.engine.statements.given_rows import with_rows
from halfjoin.engine.updates.consolidate import consolidate, groups
from halfjoin.engine.updates.updates import Updates, concat, constant
from halfjoin.errors import InvalidRow
from halfjoin.sql.statements import Change

Made: TypeAlias = dict[str, list[Changed]]  # what the parts of a statement do, by table


def carry_out_all(state: State, parts: tuple[tuple[str, Change], ...], sql: str) -> tuple[State, Made]:
    """The changes of each table by the parts; and the state with what the parts return, for the statement after them.

    Raises:
        InvalidRow: two parts change the same row, of which PostgreSQL carries one out.
    """
    seen, made = state, Made()
    for name, part in parts:
        found = carry_out(seen, part, sql)
        together(state, made, part.table, found)
        if found.returned is not None:
            seen = with_rows(seen, name, found.columns, found.returned)
    return seen, made


def together(state: State, made: Made, name: str, more: Changed) -> None:
    """Add the changes of another part of a statement to those of a table.

    Raises:
        InvalidRow: two parts take the same row away.
    """
    if name in made:
        gone = concat([_gone(one.updates) for one in (*made[name], more)])
        there = reading.contents(state, name, None, distinct=True)
        numbers = groups(list(concat([gone, there]).columns.values()), len(gone) + len(there))
        counts = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
        np.add.at(counts, numbers, np.concatenate([gone.diff, there.diff]))
        if (counts[numbers[: len(gone)]] < 0).any():
            raise InvalidRow("two parts of the statement change the same row", table=name, code="27000",
                             remedy="change each row in one part of WITH")  # fmt: skip
    made.setdefault(name, []).append(more)


def followed(state: State, made: Mapping[str, Sequence[Changed]]) -> dict[str, Updates]:
    """The changes of a statement, and those that ON DELETE and ON UPDATE of foreign keys make with them.

    Raises:
        InvalidRow: these cannot be made.
    """
    time, defined = state.upper, state.catalog.tables
    changed = {name: _at(time, [one.updates for one in parts]) for name, parts in made.items()}
    if not any(key.on_delete or key.on_update for table in defined.values() for key in table.foreign_keys):
        return changed
    pairs = {name: (_at(time, [one[0] for one in both]), _at(time, [one[1] for one in both]))
             for name, parts in made.items() if (both := [one.pairs for one in parts if one.pairs is not None])}
    return Effects(Tables(defined, state.tables), changed).follow(pairs)


def _at(time: int, parts: Sequence[Updates]) -> Updates:
    every = concat(parts)
    return Updates(every.columns, constant(time, len(every)), every.diff)


def _gone(updates: Updates) -> Updates:
    gone = updates.filter(updates.diff < 0)
    return consolidate(Updates(gone.columns, constant(0, len(gone)), gone.diff), by_time=False)

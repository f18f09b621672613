"""The rows of a table that a change is about: each once, and how often the table has it."""

from __future__ import annotations

import numpy as np

from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.batch.readable import closed
from halfjoin.engine.batch.state import State
from halfjoin.engine.join.known import KnownRows
from halfjoin.engine.statements import reading
from halfjoin.engine.statements.moment import Moment
from halfjoin.engine.updates.codes import codes, distinct
from halfjoin.engine.updates.consolidate import groups
from halfjoin.engine.updates.updates import Ints, Updates, concat, constant
from halfjoin.sql.bind.target import BoundChange
from halfjoin.sql.expr import Column


def part_of(rows: Updates, bound: BoundChange, columns: tuple[Column, ...]) -> Updates:
    """The old or the new rows, under the names of the table's columns."""
    names = (column.name for column in bound.target.columns)
    return rows.renamed(list(zip((column.name for column in columns), names, strict=True)))


def once(state: State, bound: BoundChange, rows: Updates) -> Updates:
    """One of the joined rows for each distinct row of the table, with the count of that row."""
    old = part_of(rows, bound, bound.old)
    numbers, copies = counts(state, bound, old)
    _, kept = np.unique(numbers, return_index=True)
    found = rows.take(kept)
    return Updates(found.columns, found.time, copies[kept])


def counts(state: State, bound: BoundChange, old: Updates) -> tuple[Ints, Ints]:
    """For rows of the table, numbers that equal rows share, and how often the table has the row."""
    table = state.catalog.table(bound.target.table)
    if table.primary_key:
        return groups([old.columns[name] for name in table.primary_key], len(old)), constant(1, len(old))
    there = _candidates(state, table.name, old)
    numbers = groups(list(concat([old, there]).columns.values()), len(old) + len(there))
    copies = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    np.add.at(copies, numbers[len(old):], there.diff)
    return numbers[: len(old)], copies[numbers[: len(old)]]


def _candidates(state: State, table: str, rows: Updates) -> Updates:
    """Rows of a table, among them all that equal one of these: those with their keys in an index, if there is one."""
    names = list(rows.columns)
    keys = [key for key in state.arranged(table) if key.keys and key.through is None and all(
        isinstance(expr, Column) and not rows.columns[expr.name].null_count for expr in key.keys)]  # fmt: skip
    if not keys:
        return reading.contents(state, table, None, distinct=True)
    key = max(keys, key=lambda one: (state.distinct(one) or 0, str(one)))
    values = [rows.columns[expr.name] for expr in key.keys if isinstance(expr, Column)]
    lookup = KnownRows(key, key_columns(key, state.functions), values, distinct(codes(values, len(rows))))
    moment = Moment(closed(state), closed(state).upper - 1)
    return concat([rows.slice(0, 0), *lookup(moment, moment.closed, moment.time + 1, names)])

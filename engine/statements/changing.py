"""INSERT, UPDATE, DELETE and MERGE: the rows that a statement changes, and what it returns.

A statement is bound to a relation of old and new rows, which is evaluated as a query is. All of it reads the tables as
they were before the statement.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from halfjoin.catalog.models import Table
from halfjoin.engine.arrange.expand import expand
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.batch.readable import closed
from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.generated import with_generated
from halfjoin.engine.intake.referential import Pairs
from halfjoin.engine.join.known import KnownRows
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.statements import reading
from halfjoin.engine.statements.conflicting import inserted
from halfjoin.engine.statements.evaluating import evaluate
from halfjoin.engine.statements.moment import Moment
from halfjoin.engine.statements.querying import first
from halfjoin.engine.statements.scratch import SCRATCH, beside, numbered, singly
from halfjoin.engine.updates.codes import codes, distinct
from halfjoin.engine.updates.consolidate import groups
from halfjoin.engine.updates.updates import Ints, Updates, concat, constant
from halfjoin.errors import InvalidRow, UnsupportedSQL
from halfjoin.sql.bind.changes import bind_delete, bind_insert, bind_update
from halfjoin.sql.bind.merging import bind_merge
from halfjoin.sql.bind.returning import bind_returning
from halfjoin.sql.bind.target import BoundChange, at_target
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import TopK
from halfjoin.sql.statements import Change, Delete, Insert, Merge, Update


@dataclass(frozen=True, slots=True)
class Changed:
    """What a statement does: the updates of its table, how many rows it changes, and the rows of RETURNING with their
    columns. `pairs`: the rows that it updates, as they were and as they are."""

    updates: Updates
    count: int
    returned: pa.Table | None
    columns: tuple[Column, ...] = ()
    pairs: Pairs | None = None


def carry_out(state: State, statement: Change, sql: str) -> Changed:
    """The changes of a statement; nothing is applied.

    Raises:
        UnsupportedSQL, UnknownName: the statement is not valid.
        DataError: an expression fails for a row.
        InvalidRow: a row would be changed twice.
    """
    schema = state.catalog
    with at_target(statement, sql):
        schema.table(statement.table)  # not a view
    match statement:
        case Insert():
            bound = bind_insert(statement, schema, sql)
            if statement.conflict is not None:
                rows = singly(_evaluated(state, bound), statement.table)
                table = state.catalog.table(statement.table)
                old, new, now = inserted(state, statement, _new(state, rows, bound), sql)
                new = with_generated(table, new)
                return replace(_changed(state, bound, old, new, new), pairs=(old, with_generated(table, now)))
            rows = _evaluated(state, bound)
            new = _new(state, singly(rows, statement.table) if bound.numbered else rows, bound)
            return _changed(state, bound, None, new, new)
        case Delete():
            bound = bind_delete(statement, schema, sql)
            rows = _evaluated(state, bound)
            old = _part(rows, bound, bound.old)
            return _changed(state, bound, old, None, _with_others(old, rows, bound))
        case Update():
            bound = bind_update(statement, schema, sql)
            rows = _evaluated(state, bound)
            rows = singly(rows, statement.table) if bound.numbered else rows
            old, new = _part(rows, bound, bound.old), _new(state, rows, bound)
            return replace(_changed(state, bound, old, new, _with_others(new, rows, bound)), pairs=(old, new))
        case Merge():
            return _merged(state, bind_merge(statement, schema, sql))


def _evaluated(state: State, bound: BoundChange) -> Updates:
    """The rows of a statement, in order if they have one; each row of the table once."""
    rows = evaluate(state, bound.relation, None, distinct=not bound.order)
    if bound.order:
        rows = first(rows, TopK(bound.relation, (), bound.order, None))
    return _once(state, bound, rows) if bound.joined else rows


def _once(state: State, bound: BoundChange, rows: Updates) -> Updates:
    """One of the joined rows for each distinct row of the table, with the count of that row."""
    old = _part(rows, bound, bound.old)
    numbers, counts = _counts(state, bound, old)
    _, kept = np.unique(numbers, return_index=True)
    found = rows.take(kept)
    return Updates(found.columns, found.time, counts[kept])


def _counts(state: State, bound: BoundChange, old: Updates) -> tuple[Ints, Ints]:
    """For rows of the table, numbers that equal rows share, and how often the table has the row."""
    table = state.catalog.table(bound.target.table)
    if table.primary_key:
        return groups([old.columns[name] for name in table.primary_key], len(old)), constant(1, len(old))
    there = _candidates(state, table.name, old)
    numbers = groups(list(concat([old, there]).columns.values()), len(old) + len(there))
    counts = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    np.add.at(counts, numbers[len(old):], there.diff)
    return numbers[: len(old)], counts[numbers[: len(old)]]


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


def _merged(state: State, bound: BoundChange) -> Changed:
    assert bound.action is not None
    rows = evaluate(state, bound.relation, None)
    action = rows.columns[bound.action.name].to_numpy(zero_copy_only=False)
    kinds = np.array(["nothing", *bound.kinds])[action]
    leaving = np.isin(kinds, ("update", "delete"))
    coming = np.isin(kinds, ("update", "insert"))
    old = _part(rows.filter(leaving), bound, bound.old)
    numbers, counts = _counts(state, bound, old)
    touched = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    np.add.at(touched, numbers, old.diff)
    if (touched[numbers] > counts).any():
        raise InvalidRow("MERGE command cannot affect row a second time", table=bound.target.table, code="21000",
                         remedy="the source must match each row of the table at most once")  # fmt: skip
    new = _new(state, rows.filter(coming), bound)
    made = _changed(state, replace(bound, returning=None), old, new, new)
    pairs = _part(rows.filter(kinds == "update"), bound, bound.old), new.filter(kinds[coming] == "update")
    made = replace(made, count=int(rows.diff[leaving | coming].sum()), pairs=pairs)
    if bound.returning is None:
        return made
    returned, columns = list[pa.Table](), made.columns
    for kind in ("insert", "update", "delete"):
        acted = replace(bound, returning=replace(bound.returning, action=kind.upper()))
        some = rows.filter(kinds == kind)
        part = _part(some, bound, bound.old) if kind == "delete" else _new(state, some, bound)
        found, columns = _returned(state, acted, _with_others(part, some, bound))
        returned.append(found)
    return replace(made, returned=pa.concat_tables(returned), columns=columns)


def _changed(state: State, bound: BoundChange, old: Updates | None, new: Updates | None, shown: Updates) -> Changed:
    """The outcome; `shown`: the rows that RETURNING reads, with its other columns."""
    parts = [] if old is None else [Updates(old.columns, old.time, -old.diff)]
    parts += [] if new is None else [new]
    returned, columns = (None, ()) if bound.returning is None else _returned(state, bound, shown)
    return Changed(concat(parts), int(shown.diff.sum()), returned, columns)


def _returned(state: State, bound: BoundChange, shown: Updates) -> tuple[pa.Table, tuple[Column, ...]]:
    """The rows of RETURNING, in the order of the changed rows; and their columns, under the names that they show."""
    rows = singly(shown, bound.target.table)
    found = bind_returning(bound, SCRATCH)
    made = evaluate(beside(state, numbered(list(rows.columns.values()), len(rows))), found.relation, None,
                            distinct=False)  # fmt: skip
    *outputs, number = made.columns.values()
    order = np.argsort(number.to_numpy(zero_copy_only=False), kind="stable")
    shown = Updates({str(n): column for n, column in enumerate(outputs)}, made.time, made.diff).take(order)
    columns = tuple(replace(column, name=name, nullable=True)
                    for column, name in zip(found.relation.columns[:-1], found.names, strict=True))  # fmt: skip
    arrays = list(expand(shown, bound.target.table).columns.values())
    return pa.Table.from_arrays(arrays, names=list(found.names)), columns


def _part(rows: Updates, bound: BoundChange, columns: tuple[Column, ...]) -> Updates:
    """The old or the new rows, under the names of the table's columns."""
    names = (column.name for column in bound.target.columns)
    return rows.renamed(list(zip((column.name for column in columns), names, strict=True)))


def _new(state: State, rows: Updates, bound: BoundChange) -> Updates:
    """The new rows, with their generated columns."""
    table = state.catalog.table(bound.target.table)
    part = _part(rows, bound, bound.new)
    if bound.numbered:
        numbers = {name: _numbers(state, table, name, sequence, len(part)) for name, sequence in bound.numbered}
        part = part.with_columns(numbers)
    return with_generated(table, part)


def _numbers(state: State, table: Table, column: str, sequence: str, count: int) -> pa.Array:
    """The next numbers of a sequence for the rows of a column."""
    numbers = np.array(state.catalog.next_number(sequence, count), np.int64)
    type = next(one.type for one in table.columns if one.name == column)
    made = arrow_type(type)
    if count and numbers.max() >= 1 << (made.bit_width - 1):
        raise UnsupportedSQL(f"nextval: reached maximum value of sequence {sequence}", code="2200H")
    return pa.array(numbers).cast(made)


def _with_others(part: Updates, rows: Updates, bound: BoundChange) -> Updates:
    """Rows of the table with the other columns that RETURNING reads."""
    return Updates(part.columns | {f"={column.name}": rows.columns[column.name] for column in bound.others},
                   part.time, part.diff)  # fmt: skip

"""INSERT, UPDATE, DELETE and MERGE: the rows that a statement changes, and what it returns.

A statement is bound to a relation of old and new rows, which is evaluated as a query is. All of it reads the tables as
they were before the statement. What needs no data is prepared once (`ReadyChange`), and may be used again for the same
definitions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from halfjoin.catalog.models import Table
from halfjoin.engine.arrange.expand import expand
from halfjoin.engine.batch.readable import closed
from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.generated import with_generated
from halfjoin.engine.intake.referential import Pairs
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.statements.changed_rows import counts, once, part_of
from halfjoin.engine.statements.conflicting import inserted
from halfjoin.engine.statements.evaluating import Evaluation, compiled, evaluate, planned_query, prepare, run
from halfjoin.engine.statements.querying import first
from halfjoin.engine.statements.scratch import SCRATCH, beside, numbered, singly
from halfjoin.engine.statements.shapes import Unfit, fill_of
from halfjoin.engine.statements.system_tables import system_tables
from halfjoin.engine.updates.updates import Updates, concat
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


@dataclass(frozen=True, slots=True)
class ReadyChange:
    """A change that needs no more than a state: the statement, bound, and the evaluation of its rows. What a shape is
    filled with is in the evaluation only."""

    statement: Change
    bound: BoundChange
    evaluation: Evaluation


Keep: TypeAlias = "Callable[[ReadyChange], None]"  # takes a change that may be asked again


def carry_out(state: State, statement: Change, sql: str, keep: Keep | None = None) -> Changed:
    """The changes of a statement; nothing is applied. `keep` gets what may be used again.

    Raises:
        UnsupportedSQL, UnknownName: the statement is not valid.
        DataError: an expression fails for a row.
        InvalidRow: a row would be changed twice.
    """
    bound = _bound(state, statement, sql)
    if isinstance(statement, Insert) and statement.conflict is not None:
        found = evaluate(state, bound.relation, None, distinct=not bound.order)
        rows = singly(_in_order(bound, found), statement.table)
        table = state.catalog.table(statement.table)
        old, new, now = inserted(state, statement, _new(state, rows, bound), sql)
        new = with_generated(table, new)
        return replace(_changed(state, bound, old, new, new), pairs=(old, with_generated(table, now)))
    if not _lasts(statement, bound):
        return _carried_out(state, statement, bound, evaluate(state, bound.relation, None, distinct=not bound.order))
    made = ReadyChange(statement, bound, prepare(closed(state), bound.relation))
    changed = carried_out(state, made)
    if keep is not None:
        keep(made)
    return changed


def carried_out(state: State, ready: ReadyChange) -> Changed:
    """As `carry_out`, of a change that is ready."""
    rows = run(closed(state), ready.evaluation, None, distinct=not ready.bound.order)
    return _carried_out(state, ready.statement, ready.bound, rows)


def ready_change(state: State, statement: Change, sql: str) -> ReadyChange | None:
    """A change with values that cannot be looked at, as `querying.ready`. None for one that means something only now.

    Raises:
        Looked, Unfit: the change depends on a value in another way than as a constant of its plan.
    """
    state = closed(state)
    bound = _bound(state, statement, sql)
    if not _lasts(statement, bound):
        return None
    planned = planned_query(state, bound.relation)
    evaluation = compiled(state, planned, [node for node in planned.nodes if fill_of(node) is None])
    if fill_of((bound.old, bound.new, bound.others, bound.order, bound.action, evaluation.collections)) is not None:
        raise Unfit
    return ReadyChange(statement, bound, evaluation)


def _bound(state: State, statement: Change, sql: str) -> BoundChange:
    schema = state.catalog
    with at_target(statement, sql):
        schema.table(statement.table)  # not a view
    match statement:
        case Insert():
            return bind_insert(statement, schema, sql)
        case Delete():
            return bind_delete(statement, schema, sql)
        case Update():
            return bind_update(statement, schema, sql)
        case Merge():
            return bind_merge(statement, schema, sql)


def _lasts(statement: Change, bound: BoundChange) -> bool:
    """Whether the plan of the rows is all that a change needs, and means the same when it is asked again."""
    if isinstance(statement, Insert) and statement.conflict is not None:
        return False
    return bound.returning is None and not bound.fleeting and not system_tables(bound.relation)


def _carried_out(state: State, statement: Change, bound: BoundChange, found: Updates) -> Changed:
    """What a statement does with the rows of its relation."""
    if isinstance(statement, Merge):
        return _merged(state, bound, found)
    rows = _in_order(bound, found)
    if bound.joined:
        rows = once(state, bound, rows)
    rows = singly(rows, statement.table) if bound.numbered else rows
    if isinstance(statement, Insert):
        new = _new(state, rows, bound)
        return _changed(state, bound, None, new, new)
    old = part_of(rows, bound, bound.old)
    if isinstance(statement, Delete):
        return _changed(state, bound, old, None, _with_others(old, rows, bound))
    new = _new(state, rows, bound)
    return replace(_changed(state, bound, old, new, _with_others(new, rows, bound)), pairs=(old, new))


def _in_order(bound: BoundChange, rows: Updates) -> Updates:
    """The rows of a statement, in order if they have one."""
    return first(rows, TopK(bound.relation, (), bound.order, None)) if bound.order else rows


def _merged(state: State, bound: BoundChange, rows: Updates) -> Changed:
    assert bound.action is not None
    action = rows.columns[bound.action.name].to_numpy(zero_copy_only=False)
    kinds = np.array(["nothing", *bound.kinds])[action]
    leaving = np.isin(kinds, ("update", "delete"))
    coming = np.isin(kinds, ("update", "insert"))
    old = part_of(rows.filter(leaving), bound, bound.old)
    numbers, copies = counts(state, bound, old)
    touched = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    np.add.at(touched, numbers, old.diff)
    if (touched[numbers] > copies).any():
        raise InvalidRow("MERGE command cannot affect row a second time", table=bound.target.table, code="21000",
                         remedy="the source must match each row of the table at most once")  # fmt: skip
    new = _new(state, rows.filter(coming), bound)
    made = _changed(state, replace(bound, returning=None), old, new, new)
    pairs = part_of(rows.filter(kinds == "update"), bound, bound.old), new.filter(kinds[coming] == "update")
    made = replace(made, count=int(rows.diff[leaving | coming].sum()), pairs=pairs)
    if bound.returning is None:
        return made
    returned, columns = list[pa.Table](), made.columns
    for kind in ("insert", "update", "delete"):
        acted = replace(bound, returning=replace(bound.returning, action=kind.upper()))
        some = rows.filter(kinds == kind)
        part = part_of(some, bound, bound.old) if kind == "delete" else _new(state, some, bound)
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


def _new(state: State, rows: Updates, bound: BoundChange) -> Updates:
    """The new rows, with their generated columns."""
    table = state.catalog.table(bound.target.table)
    part = part_of(rows, bound, bound.new)
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

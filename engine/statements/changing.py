"""INSERT, UPDATE, DELETE and MERGE: the rows that a statement changes, and what it returns.

A statement is bound to a relation of old and new rows, which is evaluated as a query is. All of it reads the tables as
they were before the statement. What needs no data is prepared once (`ReadyChange`), and may be used again for the same
definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import Table
from halfjoin.engine.arrange.expand import expand
from halfjoin.engine.batch.readable import closed
from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.generated import values, with_generated
from halfjoin.engine.intake.referential import Pairs
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.statements.changed_rows import counts, once, part_of
from halfjoin.engine.statements.conflicting import inserted
from halfjoin.engine.statements.evaluating import Evaluation, compiled, evaluate, planned_query, prepare, run
from halfjoin.engine.statements.querying import first
from halfjoin.engine.statements.rows_at_once import from_columns
from halfjoin.engine.statements.scratch import SCRATCH, B, OverRows, beside, nothing, singly
from halfjoin.engine.statements.shapes import Unfit, fill_of
from halfjoin.engine.statements.system_tables import system_tables
from halfjoin.engine.updates.updates import Ints, Updates, concat
from halfjoin.errors import DataError, HalfjoinError, InvalidRow, UnsupportedSQL
from halfjoin.sql.bind.changes import bind_delete, bind_insert, bind_update
from halfjoin.sql.bind.conflicts import bind_do_update
from halfjoin.sql.bind.merging import bind_merge
from halfjoin.sql.bind.returning import BoundReturning, bind_returning
from halfjoin.sql.bind.target import BoundChange, at_target
from halfjoin.sql.expr import Column
from halfjoin.sql.parse.literal_rows import rows_of
from halfjoin.sql.parse.whole_rows import with_whole_rows
from halfjoin.sql.relation import Relation, Scan, TopK, every_part
from halfjoin.sql.statements import Change, Delete, Insert, Merge, Update
from halfjoin.sql.types import SqlType


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
class Parts:
    """A statement, bound. `update`: what DO UPDATE makes of rows; `returning`: what RETURNING does, but in MERGE."""

    statement: Change
    bound: BoundChange
    update: OverRows[BoundChange] | None
    returning: OverRows[BoundReturning] | None


@dataclass(frozen=True, slots=True)
class ReadyChange:
    """A change that needs no more than a state: its parts, and the evaluation of its rows. What a shape is filled with
    is in the evaluation only."""

    parts: Parts
    evaluation: Evaluation


Keep: TypeAlias = "Callable[[ReadyChange], None]"  # takes a change that may be asked again
Make: TypeAlias = Callable[[State, Relation], Evaluation]


def carry_out(state: State, statement: Change, sql: str, keep: Keep | None = None) -> Changed:
    """The changes of a statement; nothing is applied. `keep` gets what may be used again.

    Raises:
        UnsupportedSQL, UnknownName: the statement is not valid.
        DataError: an expression fails for a row.
        InvalidRow: a row would be changed twice.
    """
    if isinstance(statement, Insert) and (literals := rows_of(statement.query)) is not None:
        with suppress(HalfjoinError):  # told with its place
            if (found := from_columns(state, statement, literals)) is not None:
                return carry_out(*found, sql)
        return carry_out(state, with_whole_rows(statement, literals), sql)
    parts = _parts(state, statement, sql, prepare)
    if not _lasts(parts):
        rows = evaluate(state, parts.bound.relation, None, distinct=not parts.bound.order)
        return _carried_out(state, parts, rows, sql)
    made = ReadyChange(parts, prepare(closed(state), parts.bound.relation, daring=True))
    changed = carried_out(state, made, sql)
    if changed is None:
        made = replace(made, evaluation=prepare(closed(state), parts.bound.relation))
        changed = carried_out(state, made, sql)
    assert changed is not None
    if keep is not None:
        keep(made)
    return changed


def carried_out(state: State, ready: ReadyChange, sql: str) -> Changed | None:
    """As `carry_out`, of a change that is ready. None: its query has dared too much, as in `querying.answered`."""
    try:
        rows = run(closed(state), ready.evaluation, None, distinct=not ready.parts.bound.order)
    except DataError:
        if ready.evaluation.plan.dares:
            return None
        raise
    return _carried_out(state, ready.parts, rows, sql)


def ready_change(state: State, statement: Change, sql: str) -> ReadyChange | None:
    """A change with values that cannot be looked at, as `querying.ready`. None for one that means something only now.

    Raises:
        Looked, Unfit: the change depends on a value in another way than as a constant of its plan.
    """
    if isinstance(statement, Insert) and rows_of(statement.query) is not None:
        return None

    def planned(state: State, relation: Relation, *, daring: bool = False) -> Evaluation:
        made = planned_query(state, relation, daring=daring)
        return compiled(state, made, [node for node in made.nodes if fill_of(node) is None])

    parts = _parts(state, statement, sql, planned)
    if not _lasts(parts):
        return None
    evaluation, bound = planned(closed(state), parts.bound.relation, daring=True), parts.bound
    aside = [one.evaluation.plan for one in (parts.update, parts.returning) if one is not None and one.evaluation]
    named = (bound.old, bound.new, bound.others, bound.order, bound.action, evaluation.collections)
    if fill_of((named, aside)) is not None:
        raise Unfit
    return ReadyChange(parts, evaluation)


def _parts(state: State, statement: Change, sql: str, make: Make) -> Parts:
    """A statement, bound. `make` plans what it makes of rows beside the tables."""
    bound, update, returning = bound_change(state.catalog, statement, sql), None, None
    own = [column.type for column in bound.target.columns]
    if isinstance(statement, Insert) and statement.conflict is not None and statement.conflict.assignments is not None:
        update = _over_rows(state, bind_do_update(statement, state.catalog, sql, SCRATCH), [*own, *own], make)
    if bound.returning is not None and not isinstance(statement, Merge):
        others = [column.type for column in bound.others]
        returning = _over_rows(state, bind_returning(bound, SCRATCH), [*own, *others], make)
    return Parts(statement, bound, update, returning)


def _over_rows(state: State, bound: B, types: Sequence[SqlType], make: Make) -> OverRows[B]:
    """What is bound over rows with columns of these types; it is planned if it reads nothing else."""
    alone = all(not isinstance(part, Scan) or part.collection == SCRATCH for part in every_part(bound.relation))
    return OverRows(bound, make(beside(state, nothing(types)), bound.relation) if alone else None)


def _lasts(parts: Parts) -> bool:
    """Whether a change means the same when it is asked again, and is planned as a whole."""
    bound, update, returning = parts.bound, parts.update, parts.returning
    fleeting = (bound.fleeting, () if update is None else update.bound.fleeting,
                () if bound.returning is None else bound.returning.context.fleeting)  # fmt: skip
    return not (any(fleeting) or system_tables(bound.relation) or (bound.returning is not None and returning is None)
                or any(one is not None and one.evaluation is None for one in (update, returning)))  # fmt: skip


def bound_change(schema: Catalog, statement: Change, sql: str) -> BoundChange:
    """A statement as a relation of the rows that it changes.

    Raises:
        UnsupportedSQL, UnknownName: it is not valid.
    """
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


def _carried_out(state: State, parts: Parts, found: Updates, sql: str) -> Changed:
    """What a statement does with the rows of its relation."""
    statement, bound = parts.statement, parts.bound
    if isinstance(statement, Merge):
        return _merged(state, bound, found)
    rows = _in_order(bound, found)
    if bound.joined:
        rows = once(state, bound, rows)
    if isinstance(statement, Insert) and statement.conflict is not None:
        table = state.catalog.table(statement.table)
        rows = _new(state, singly(rows, statement.table), bound)
        old, new, now = inserted(state, statement, rows, parts.update, sql)
        new = with_generated(table, new)
        return replace(_changed(state, parts, old, new, new), pairs=(old, with_generated(table, now)))
    rows = singly(rows, statement.table) if bound.numbered or bound.computed else rows
    if isinstance(statement, Insert):
        new = _new(state, rows, bound)
        return _changed(state, parts, None, new, new)
    old = part_of(rows, bound, bound.old)
    if isinstance(statement, Delete):
        return _changed(state, parts, old, None, _with_others(old, rows, bound))
    new = _new(state, rows, bound)
    return replace(_changed(state, parts, old, new, _with_others(new, rows, bound)), pairs=(old, new))


def _in_order(bound: BoundChange, rows: Updates) -> Updates:
    """The rows of a statement, in order if they have one."""
    return first(rows, TopK(bound.relation, (), bound.order, None)) if bound.order else rows


def _merged(state: State, bound: BoundChange, rows: Updates) -> Changed:
    assert bound.action is not None
    rows = singly(rows, bound.target.table) if any(bound.clauses) else rows
    action = rows.columns[bound.action.name].to_numpy(zero_copy_only=False)
    rows = rows.with_columns(_numbers_of_clauses(state, bound, rows, action))
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
    pairs = part_of(rows.filter(kinds == "update"), bound, bound.old), new.filter(kinds[coming] == "update")
    made = Changed(_difference(old, new), int(rows.diff[leaving | coming].sum()), None, (), pairs)
    if bound.returning is None:
        return made
    returned, columns = list[pa.Table](), made.columns
    for kind in ("insert", "update", "delete"):
        acted = replace(bound, returning=replace(bound.returning, action=kind.upper()))
        some = rows.filter(kinds == kind)
        part = part_of(some, bound, bound.old) if kind == "delete" else _new(state, some, bound)
        shown = OverRows(bind_returning(acted, SCRATCH), None)
        found, columns = _returned(state, bound, shown, _with_others(part, some, bound))
        returned.append(found)
    return replace(made, returned=pa.concat_tables(returned), columns=columns)


def _numbers_of_clauses(state: State, bound: BoundChange, rows: Updates, action: Ints) -> dict[str, pa.Array]:
    """The columns of new rows in which clauses of MERGE put the next numbers of sequences."""
    table, found = state.catalog.table(bound.target.table), dict[str, pa.Array]()
    columns = {to.name: new.name for to, new in zip(bound.target.columns, bound.new, strict=True)}
    for clause, numbered in enumerate(bound.clauses, 1):
        mine = action == clause
        for name, sequence in numbered:
            held = found.get(columns[name], rows.columns[columns[name]])
            numbers = _numbers(state, table, name, sequence, int(mine.sum()))
            found[columns[name]] = pc.replace_with_mask(held, mine, numbers)
    return found


def _changed(state: State, parts: Parts, old: Updates | None, new: Updates | None, shown: Updates) -> Changed:
    """The outcome; `shown`: the rows that RETURNING reads, with its other columns."""
    returned, columns = (None, ()) if parts.returning is None else (
        _returned(state, parts.bound, parts.returning, shown))  # fmt: skip
    return Changed(_difference(old, new), int(shown.diff.sum()), returned, columns)


def _difference(old: Updates | None, new: Updates | None) -> Updates:
    parts = [] if old is None else [Updates(old.columns, old.time, -old.diff)]
    return concat(parts if new is None else [*parts, new])


def _returned(
    state: State, bound: BoundChange, returning: OverRows[BoundReturning], shown: Updates
) -> tuple[pa.Table, tuple[Column, ...]]:
    """The rows of RETURNING, in the order of the changed rows; and their columns, under the names that they show."""
    rows, found = singly(shown, bound.target.table), returning.bound
    made = returning.of(state, list(rows.columns.values()), len(rows))
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
    for name, value, sequences in bound.computed:
        given = {f"number {n}": pa.array(state.catalog.next_number(sequence, len(part)), pa.int64())
                 for n, sequence in enumerate(sequences)}  # fmt: skip
        part = part.with_columns({name: values(table, compile(value), Updates(given, part.time, part.diff))})
    return with_generated(table, part)


def _numbers(state: State, table: Table, column: str, sequence: str, count: int) -> pa.Array:
    """The next numbers of a sequence for the rows of a column."""
    numbers = np.array(state.catalog.next_number(sequence, count), np.int64)
    type = next(one.type for one in table.columns if one.name == column)
    made = arrow_type(type)
    end = 1 << (made.bit_width - 1)
    if count and not (-end <= numbers.min() and numbers.max() < end):
        raise UnsupportedSQL(f"nextval: reached the end of sequence {sequence} for a column of type {type}",
                             code="2200H", remedy=f"ALTER TABLE {table.name} ALTER COLUMN {column} TYPE bigint")
    return pa.array(numbers).cast(made)


def _with_others(part: Updates, rows: Updates, bound: BoundChange) -> Updates:
    """Rows of the table with the other columns that RETURNING reads."""
    return Updates(part.columns | {f"={column.name}": rows.columns[column.name] for column in bound.others},
                   part.time, part.diff)  # fmt: skip

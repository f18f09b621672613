"""SQL statements, carried out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from halfjoin.engine.batch.stage import closed_at
from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.times import time_of
from halfjoin.engine.statements import reading
from halfjoin.engine.statements.definitions import define
from halfjoin.engine.statements.explaining import explain_query, explain_view
from halfjoin.engine.statements.transaction import Transaction, check
from halfjoin.engine.updates.updates import Updates, concat, empty
from halfjoin.sql.bind.changes import bind_delete, bind_insert, bind_update
from halfjoin.sql.errors import UnknownName, bounded
from halfjoin.sql.parse.parse import parse
from halfjoin.sql.statements import (
    Begin,
    Commit,
    CreateIndex,
    CreateSink,
    CreateTable,
    CreateView,
    Delete,
    Drop,
    Explain,
    Insert,
    Rollback,
    Select,
    SetTime,
    Show,
    Statement,
    Subscribe,
    Update,
)

if TYPE_CHECKING:
    from halfjoin.engine.engine import Engine


TAG = "tag"  # in the metadata of what INSERT, UPDATE and DELETE return: PostgreSQL's command tag
_log = logging.getLogger("halfjoin")
_LATER = ("each statement closes its time: write SET TIME with a later one before the next, or make the statements of "
          "one time one batch: BEGIN; ...; COMMIT")

# Carries a change of what is defined out, and keeps it, or does neither.
Keep: TypeAlias = Callable[[Callable[[], None]], None]


@dataclass(slots=True)
class Session:
    """What statements have set for those after them. `time`: of what they change; None is as `Engine.apply` has it."""

    time: int | None = None


def execute(engine: Engine, state: State, sql: str, keep: Keep, session: Session) -> pa.Table | None:
    """Run the statements in order; the rows of the last one, if it has any. `keep` carries definitions out."""
    result, statements, transaction = None, parse(sql), None
    check(statements)
    for statement in statements:
        match statement:
            case Begin():
                result, transaction = None, Transaction()
            case Commit() | Rollback():
                if isinstance(statement, Commit) and transaction is not None and (batch := transaction.batch()):
                    _apply(engine, state, batch, session)
                result, transaction = None, None
            case _:
                result = _run(engine, state, statement, sql, keep, session, transaction)
    return result


@bounded()
def _run(
    engine: Engine, state: State, statement: Statement, sql: str, keep: Keep, session: Session,
    transaction: Transaction | None,
) -> pa.Table | None:  # fmt: skip
    seen = state if transaction is None else transaction.seen(state)
    if transaction is not None and isinstance(statement, Insert | Select):
        transaction.check_reads(state, statement.query)
    match statement:
        case CreateTable() | CreateView() | CreateIndex() | Drop():
            keep(lambda: define(state, statement, sql))
            if isinstance(statement, CreateView) and statement.or_replace and state.sinks is not None:
                state.sinks.begin(state)
        case CreateSink():
            _create_sink(state, statement, sql, keep)
        case Insert() | Delete() | Update():
            changed, count = changed_rows(seen, statement, sql)
            if transaction is None:
                _apply(engine, state, {statement.table: changed.table(changes=True).drop_columns(["__time"])}, session)
            else:
                transaction.stage(state, statement.table, changed, session.time)
            return _counted(statement, count)
        case SetTime(time):
            session.time = time_of(time)
        case Select(query, as_of):
            return reading.query(seen, query, time_of(as_of), sql)
        case Subscribe(collection, as_of, up_to):
            return _changes(engine, state, collection, time_of(as_of), time_of(up_to))
        case Explain(view, query):
            text = explain_query(state, query, sql, "text") if query is not None else explain_view(state, view, "text")
            return pa.table({"plan": text.splitlines()})
        case Show(what, collection):
            return _show(state, what, collection)
    return None


def _apply(engine: Engine, state: State, batch: Mapping[str, pa.Table], session: Session) -> None:
    if session.time is not None and session.time < state.upper:
        raise closed_at(state, f"time {session.time}", session.time, _LATER)
    engine.apply(batch, session.time)


def _counted(statement: Insert | Delete | Update, count: int) -> pa.Table:
    """How many rows a statement has changed: a row of `count`. PostgreSQL's words for it are logged, and in `TAG`."""
    word = {Insert: "INSERT 0", Delete: "DELETE", Update: "UPDATE"}[type(statement)]
    _log.info("%s %d", word, count)
    return pa.table({"count": pa.array([count], pa.int64())}).replace_schema_metadata({TAG: f"{word} {count}"})


def changed_rows(state: State, statement: Insert | Delete | Update, sql: str) -> tuple[Updates, int]:
    """What INSERT, DELETE or UPDATE changes now, and how many rows that are."""
    table = state.catalog.table(statement.table)
    match statement:
        case Insert():
            counted = changed = reading.evaluate(state, bind_insert(statement, state.catalog, sql), None)
        case Delete():
            gone = reading.evaluate(state, bind_delete(statement, state.catalog, sql), None)
            changed = Updates(gone.columns, gone.time, -gone.diff)
            counted = gone
        case Update():
            old, new = (reading.evaluate(state, part, None) for part in bind_update(statement, state.catalog, sql))
            changed, counted = concat([Updates(old.columns, old.time, -old.diff), new]), new
    return changed.select([column.name for column in table.columns]), int(counted.diff.sum())


def _create_sink(state: State, statement: CreateSink, sql: str, keep: Keep) -> None:
    """Define the sink, then make its table: nobody sees one of a sink that is not kept. If that fails, undo it."""
    if statement.if_not_exists and statement.name in state.catalog.sinks:
        define(state, statement, sql)
        return
    before = state.catalog.sinks.get(statement.name)
    keep(lambda: define(state, statement, sql))
    assert state.sinks is not None

    def undo() -> None:
        define(state, Drop("sink", (statement.name,)), sql)
        if before is not None:
            state.catalog.add(before)

    try:
        state.sinks.fill(state, statement.name)
    except BaseException:
        keep(undo)
        raise


def _changes(engine: Engine, state: State, name: str, as_of: int | None, up_to: int | None) -> pa.Table:
    """SUBSCRIBE as a statement: the snapshot and every change that is closed by now, as one table."""
    subscription = engine.subscribe(name, as_of, up_to)
    subscription.close()
    return pa.concat_tables([empty(state.schema(name)).table(changes=True), *subscription])


def _show(state: State, what: str, name: str | None) -> pa.Table:
    catalog = state.catalog
    match what:
        case "tables":
            tables = list(catalog.tables.values())
            return pa.table({
                "name": pa.array([table.name for table in tables], pa.string()),
                "primary_key": pa.array([", ".join(table.primary_key) for table in tables], pa.string()),
            })
        case "views" | "materialized views":
            views = [view for view in catalog.views.values() if view.materialized or what == "views"]
            return pa.table({
                "name": pa.array([view.name for view in views], pa.string()),
                "materialized": pa.array([view.materialized for view in views], pa.bool_()),
                "definition": pa.array([view.text for view in views], pa.string()),
            })
        case "indexes":
            indexes = [index for index in catalog.indexes.values() if name in (None, index.collection)]
            return pa.table({
                "name": pa.array([index.name for index in indexes], pa.string()),
                "on": pa.array([index.collection for index in indexes], pa.string()),
                "key": pa.array([", ".join(index.keys) for index in indexes], pa.string()),
            })
        case "sinks":
            return _show_sinks(state)
        case _:
            if name not in catalog.names():
                raise UnknownName("table or view", str(name), catalog.names())
            found = catalog.tables.get(name) or catalog.views[name]
            return pa.table({
                "name": pa.array([column.name for column in found.columns], pa.string()),
                "type": pa.array([str(column.type) for column in found.columns], pa.string()),
                "nullable": pa.array([not column.not_null for column in found.columns], pa.bool_()),
            })


def _show_sinks(state: State) -> pa.Table:
    """The sinks and how far they are, which only the engine that writes can tell."""
    sinks = list(state.catalog.sinks.values())
    status = [None if state.sinks is None else state.sinks.status(sink.name) for sink in sinks]
    return pa.table({
        "name": pa.array([sink.name for sink in sinks], pa.string()),
        "from": pa.array([sink.collection for sink in sinks], pa.string()),
        "into": pa.array([sink.target for sink in sinks], pa.string()),
        "upper": pa.array([None if one is None else one.upper for one in status], pa.int64()),
        "waiting": pa.array([None if one is None else one.waiting for one in status], pa.int64()),
        "error": pa.array([None if one is None else one.error for one in status], pa.string()),
    })

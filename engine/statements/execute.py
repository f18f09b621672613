"""Carries out SQL statements, one after the other."""

from __future__ import annotations

import pyarrow as pa

from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.times import time_of
from halfjoin.engine.statements import querying, reading
from halfjoin.engine.statements.definitions import define
from halfjoin.engine.statements.explaining import explain_query, explain_view
from halfjoin.engine.statements.replan import refresh
from halfjoin.engine.statements.session import Session
from halfjoin.engine.statements.showing import show
from halfjoin.engine.statements.subscribing import subscribe
from halfjoin.engine.statements.transaction import Transaction, check
from halfjoin.engine.updates.updates import Updates, concat, empty
from halfjoin.errors import UnsupportedSQL, bounded
from halfjoin.sql.bind.changes import bind_delete, bind_insert, bind_update
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
    RefreshPlan,
    Rollback,
    Select,
    SetTime,
    Show,
    Statement,
    Subscribe,
    Update,
)

TAG = "tag"  # metadata key of PostgreSQL's command tag, in the table that INSERT, UPDATE and DELETE return


def execute(session: Session, state: State, sql: str) -> pa.Table | None:
    """Run the statements in order, and return the rows of the last one, if it returns any."""
    statements = parse(sql)
    check(statements)
    result = None
    try:
        for statement in statements:
            result = _run(session, state, statement, sql)
    finally:
        session.transaction = None  # a failed transaction is rolled back
    return result


def query(state: State, sql: str, as_of: int | None) -> pa.Table:
    """The rows of one SELECT as of a time, which its AS OF may give."""
    statements = parse(sql)
    statement = statements[-1] if statements else None
    if not isinstance(statement, Select) or len(statements) > 1:
        raise UnsupportedSQL("expected one query", remedy="write SELECT ...")
    time = as_of if as_of is not None else time_of(statement.as_of)
    return querying.query(state, statement.query, time, sql)


@bounded()
def _run(session: Session, state: State, statement: Statement, sql: str) -> pa.Table | None:
    transaction = session.transaction
    seen = state if transaction is None else transaction.seen(state)
    if transaction is not None and isinstance(statement, Insert | Select):
        transaction.check_reads(state, statement.query)
    match statement:
        case Begin():
            session.transaction = Transaction()
        case Commit():
            session.commit(state)
        case Rollback():
            session.transaction = None
        case CreateTable() | CreateView() | CreateIndex() | Drop():
            session.define(lambda: define(state, session.means, statement, sql))
            if isinstance(statement, CreateView) and statement.or_replace:
                session.sinks.begin(state)
        case CreateSink():
            _create_sink(session, state, statement, sql)
        case Insert() | Delete() | Update():
            changed, count = changed_rows(seen, statement, sql)
            if transaction is None:
                session.apply(state, {statement.table: changed.table(changes=True).drop_columns(["__time"])})
            else:
                transaction.stage(state, statement.table, changed, session.time)
            return _counted(session, statement, count)
        case SetTime(time):
            session.time = time_of(time)
        case Select(query, as_of):
            return querying.query(seen, query, time_of(as_of), sql)
        case Subscribe(collection, as_of, up_to):
            return _changes(session, state, collection, time_of(as_of), time_of(up_to))
        case Explain(view, query):
            runners = session.runners
            if query is not None:
                text = explain_query(state, runners, query, sql, "text")
            else:
                text = explain_view(state, runners, view, "text")
            return pa.table({"plan": text.splitlines()})
        case RefreshPlan(view):
            session.define(lambda: refresh(state, session.runners, view))
        case Show(what, collection):
            return show(state, session.delivering, what, collection)
    return None


def _counted(session: Session, statement: Insert | Delete | Update, count: int) -> pa.Table:
    """The number of rows that a statement changed, as a table with one `count`. PostgreSQL's tag is reported and kept
    under `TAG`."""
    word = {Insert: "INSERT 0", Delete: "DELETE", Update: "UPDATE"}[type(statement)]
    session.report(f"{word} {count}")
    return pa.table({"count": pa.array([count], pa.int64())}).replace_schema_metadata({TAG: f"{word} {count}"})


def changed_rows(state: State, statement: Insert | Delete | Update, sql: str) -> tuple[Updates, int]:
    """The updates of an INSERT, DELETE or UPDATE, and the number of rows that it changes."""
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


def _create_sink(session: Session, state: State, statement: CreateSink, sql: str) -> None:
    """Define the sink, then fill its table, so that every table belongs to a sink that is kept. If the fill fails, undo
    the definition."""
    means = session.means
    if statement.if_not_exists and statement.name in state.catalog.sinks:
        define(state, means, statement, sql)
        return
    before = state.catalog.sinks.get(statement.name)
    session.define(lambda: define(state, means, statement, sql))

    def undo() -> None:
        define(state, means, Drop("sink", (statement.name,)), sql)
        if before is not None:
            state.catalog.add(before)

    try:
        session.sinks.fill(state, statement.name)
    except BaseException:
        session.define(undo)
        raise


def _changes(session: Session, state: State, name: str, as_of: int | None, up_to: int | None) -> pa.Table:
    """The answer to SUBSCRIBE: the snapshot and every change that is closed now, as one table."""
    subscription = subscribe(session, state, name, as_of, up_to)
    subscription.close()
    return pa.concat_tables([empty(state.schema(name)).table(changes=True), *subscription])

"""Carries out SQL statements, one after the other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.times import time_of
from halfjoin.engine.statements import querying, reading
from halfjoin.engine.statements.altering import alter_table
from halfjoin.engine.statements.asked import Asked, asked_of
from halfjoin.engine.statements.changing import carry_out
from halfjoin.engine.statements.definitions import define, say_ignored
from halfjoin.engine.statements.dependents import truncated
from halfjoin.engine.statements.dropping import drop
from halfjoin.engine.statements.enums import alter_enum
from halfjoin.engine.statements.explaining import PLAN, explain_change, explain_query, explain_view
from halfjoin.engine.statements.maintaining import maintain
from halfjoin.engine.statements.naming import name_things
from halfjoin.engine.statements.open_times import tables_read
from halfjoin.engine.statements.outcomes import answer, apply, tagged
from halfjoin.engine.statements.renaming import rename
from halfjoin.engine.statements.repeated import keeping, keeping_change, known, known_query
from halfjoin.engine.statements.replan import check_refreshed, refresh
from halfjoin.engine.statements.retention import alter_retention
from halfjoin.engine.statements.sequences import changes_sequence, restart
from halfjoin.engine.statements.session import Session
from halfjoin.engine.statements.settings import checked, show_settings
from halfjoin.engine.statements.showing import show
from halfjoin.engine.statements.snapshot import InFiles
from halfjoin.engine.statements.sourcing import alter_source, create_source, show_sources, wanted
from halfjoin.engine.statements.subscribing import subscribe
from halfjoin.engine.statements.tables import columns_of_query
from halfjoin.engine.statements.temporary import settled
from halfjoin.engine.statements.transaction import check
from halfjoin.engine.statements.with_changes import carry_out_all, followed, together
from halfjoin.engine.updates.updates import Updates, empty
from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.nesting import bounded
from halfjoin.sql.bind.locking import locked_in
from halfjoin.sql.bind.search_path import check_dots, placed
from halfjoin.sql.definitions import (
    AlterRetention,
    AlterSource,
    AlterTable,
    CreateIndex,
    CreateSink,
    CreateSource,
    CreateTable,
    CreateTableAs,
    CreateView,
    Drop,
    Rename,
)
from halfjoin.sql.named import (
    AlterDomain,
    AlterEnum,
    AlterSequence,
    Comment,
    CreateComposite,
    CreateDomain,
    CreateEnum,
    CreateSchema,
    CreateSequence,
)
from halfjoin.sql.parse.locate import PUBLIC
from halfjoin.sql.parse.parameters import Params
from halfjoin.sql.parse.parse import Tree, executed, statement_of, trees_of
from halfjoin.sql.parse.prepared import change_in
from halfjoin.sql.prepared import Deallocate, Execute, Prepare
from halfjoin.sql.statements import (
    Copy,
    Delete,
    Explain,
    Insert,
    Maintain,
    Merge,
    Refresh,
    RefreshPlan,
    Select,
    SetSetting,
    SetTime,
    Show,
    Statement,
    Subscribe,
    Truncate,
    Update,
    WithChanges,
)
from halfjoin.sql.system import is_temporary
from halfjoin.sql.transactions import Begin, Commit, Rollback, Savepoint, SetConstraints, SetTransaction

_log = logging.getLogger("halfjoin")
_MOST_GONE = 100  # things of which a message names what CASCADE has dropped


def execute(session: Session, state: State, sql: str, params: Params = None) -> pa.Table | None:
    """Run the statements in order, and return the rows of the last one, if it returns any."""
    result: pa.Table | None = None
    with failing(session):
        asked = asked_of(sql, params, session.settings, session.path)
        if not session.isolation.repeatable and (found := known(session, state, asked)) is not None:
            session.isolation.asked = True
            return found
        trees = trees_of(sql, params)
        elsewhere = session.path != (PUBLIC,) or any(word in sql.lower() for word in ("search_path", "temp"))
        statements = [statement_of(tree.copy() if elsewhere else tree, sql) for tree in trees]
        check(statements, session.transaction is not None)
        for tree, statement in zip(trees, statements, strict=True):
            check_dots(tree, sql, session.known(state).catalog.schemas)
            if session.path != (PUBLIC,):
                statement = statement_of(placed(tree, session.known(state).catalog, session.path), sql)
            result = _isolated(session, state, statement, sql, asked if len(trees) == 1 else None)
    return result


@contextmanager
def failing(session: Session) -> Iterator[None]:
    """A failure inside the `with` block ends what is open; a transaction from before it waits for ROLLBACK."""
    open_before = session.transaction is not None
    try:
        yield
    except BaseException:
        session.fail(keep=open_before)
        raise


def _isolated(
    session: Session, state: State, statement: Statement, sql: str, asked: Asked | None
) -> pa.Table | None:
    """Run a statement on the state that the transaction's isolation lets it read."""
    kept = session.prepared.get(statement.name) if isinstance(statement, Execute) else None
    reads = isinstance(statement, Select) if kept is None else change_in(kept.statement) is None
    reads = reads and not any(map(changes_sequence, (sql, kept.text if kept else "")))
    found = session.isolation.state_for(statement, state, reads=reads)
    try:
        return _run(session, found, statement, sql, asked)
    except InFiles:  # a snapshot does not have the rows; the state itself has them
        return _run(session, session.isolation.same(state), statement, sql, asked)


def run_one(
    session: Session, state: State, make: Callable[[], Tree], sql: str, asked: Asked | None = None
) -> pa.Table | None:
    """Run one statement, whose tree `make` makes. Its rows, and in `session.columns` their columns. `asked`: a query
    that may be remembered."""
    open_before = session.transaction is not None
    with failing(session):
        if (found := known(session, state, asked)) is not None:
            return found
        tree = make()
        check_dots(tree, sql, session.known(state).catalog.schemas)
        if session.path != (PUBLIC,):
            tree = placed(tree, session.known(state).catalog, session.path)
        statement = statement_of(tree, sql)
        check([statement], open_before)
        return _run(session, state, statement, sql, asked)


def query(session: Session, state: State, sql: str, as_of: int | None, params: Params = None) -> pa.Table:
    """The rows of one SELECT as of a time, which its AS OF may give. An open transaction is not read."""
    asked = asked_of(sql, params, session.settings, session.path)
    state = session.temporary.over(state)
    ready = known_query(session, state, asked)
    answers = None if ready is None else querying.answered(
        state, ready[0], as_of if as_of is not None else time_of(ready[1]))  # fmt: skip
    if answers is not None:
        return answers[0]
    trees = trees_of(sql, params)
    for tree in trees:
        check_dots(tree, sql, state.catalog.schemas)
    if len(trees) == 1 and session.path != (PUBLIC,):
        trees = [placed(trees[0], state.catalog, session.path)]
    statement = statement_of(trees[0], sql) if len(trees) == 1 else None
    if not isinstance(statement, Select):
        raise UnsupportedSQL("expected one query", remedy="write SELECT ...")
    time = as_of if as_of is not None else time_of(statement.as_of)
    given, sequences = dict(state.catalog.numbers), dict(state.catalog.sequences)
    state.catalog.speak_for({})
    found = querying.query(state, statement.query, time, sql, keeping(session, state, asked, statement))
    if state.catalog.numbers != given or state.catalog.sequences != sequences:
        for name, one in sequences.items():
            state.catalog.sequences[name] = one
        state.catalog.unkept.clear()
        raise UnsupportedSQL("a query cannot change a sequence", remedy="call nextval in engine.execute")
    return found


@bounded()
def _run(
    session: Session, state: State, statement: Statement, sql: str, asked: Asked | None = None
) -> pa.Table | None:
    session.check_alive(statement)
    session.isolation.check_change(statement)
    session.close_due(state, statement)
    session.known(state).catalog.speak_for(session.last)
    session.columns = None
    match statement:
        case Begin():
            session.begin()
            session.isolation.take(statement)
        case SetTransaction():
            session.isolation.take(statement)
        case SetConstraints(immediate):
            if immediate and session.transaction is not None:
                session.transaction.check_deferred(state)
        case Commit(chain) | Rollback(chain):
            modes = session.isolation
            if isinstance(statement, Commit):
                session.commit(state)
            session.transaction = None
            if chain:
                session.begin()
                session.isolation.take(SetTransaction(modes.level, modes.read_only))
        case Savepoint():
            session.savepoint(statement)
        case AlterTable():
            gone: list[str] = []
            session.define(state, lambda state: alter_table(state, statement, gone), statement)
            _say_gone(gone)
        case AlterRetention():
            if session.transaction is not None:
                raise UnsupportedSQL("the history to retain cannot change in a transaction", code="25001")
            session.define(state, lambda state: alter_retention(state, statement), statement)
        case Rename():
            session.define(state, lambda state: rename(state, session.runners, statement), statement)
        case CreateTableAs():
            return _create_table_as(session, state, statement, sql)
        case Drop():
            gone = []
            session.define(state, lambda state: drop(state, statement, gone), statement)
            _say_gone(gone)
        case (CreateEnum() | CreateComposite() | CreateDomain() | CreateSchema() | CreateSequence() | Comment()
              | AlterSequence() | AlterDomain()):  # fmt: skip
            session.define(state, lambda state: name_things(state, statement), statement)
        case AlterEnum():
            session.define(state, lambda state: alter_enum(state, session.runners, statement))
        case CreateTable() | CreateView() | CreateIndex():
            made = settled(statement, session.known(state).catalog, sql) if session.temporary else statement
            session.define(state, lambda state: define(state, session.means, made, sql), made)
            if isinstance(made, CreateTable | CreateView):
                say_ignored(made)
            if isinstance(statement, CreateView) and statement.or_replace and session.transaction is None:
                session.sinks.begin(state)
        case CreateSource():
            if session.writer is not None:
                session.writer.sources.settle()
            source = wanted(session.known(state), statement)
            session.define(state, lambda state: create_source(state, session.means, source))
        case AlterSource():
            session.define(state, lambda state: alter_source(state, statement))
        case CreateSink():
            _create_sink(session, state, statement, sql)
        case Insert() | Delete() | Update() | Merge():
            seen = session.seen(state)
            changed = carry_out(seen, statement, sql, keeping_change(session, seen, asked))
            return apply(session, state, seen, statement, changed)
        case WithChanges():
            return _change_with(session, state, statement, sql)
        case Copy(incoming):
            raise UnsupportedSQL(f"COPY {'FROM STDIN' if incoming else 'TO STDOUT'} needs a stream",
                                 remedy=f"engine.copy_{'from(sql, stream)' if incoming else 'to(sql)'}")
        case Truncate():
            return _truncate(session, state, statement)
        case Prepare():
            session.prepare(statement)
        case Execute(name, values):
            prepared = session.prepared_statement(name)
            return _run(session, state, executed(prepared, values), prepared.text)
        case Deallocate(name):
            session.deallocate(name)
        case SetTime(time):
            session.time = time_of(time)
        case SetSetting("all", None):
            session.settings.clear()
            session.time = None
        case SetSetting(name, value):
            session.settings[name] = checked(name, value)
        case Select(query, as_of):
            seen = session.seen(state)
            locked = locked_in(query)
            # A query that is remembered would not say again which tables it locks.
            keep = None if locked else keeping(session, seen, asked, statement)
            found, session.columns = querying.answer(seen, query, time_of(as_of), sql, keep)
            if session.transaction is not None:
                session.transaction.watch(state, locked)
            session.keep_numbers(state)
            return found
        case Subscribe(collection, as_of, up_to):
            return _changes(session, state, collection, time_of(as_of), time_of(up_to))
        case Explain(view, query, change, format):
            runners = session.runners
            if change is not None:
                text = explain_change(session.known(state), runners, change, sql, format)
            elif query is not None:
                text = explain_query(session.known(state), runners, query, sql, format)
            else:
                text = explain_view(session.known(state), runners, view, format)
            return pa.table({PLAN: text.splitlines() if format == "text" else [text]})
        case Maintain():
            session.report(maintain(session.known(state), statement))
        case Refresh(view):
            check_refreshed(session.known(state), view)
        case RefreshPlan(view):
            session.define(state, lambda state: refresh(state, session.runners, view))
        case Show("settings"):
            return show_settings({**session.asker.settings, **session.settings}, session.time)
        case Show("setting", setting):
            every = show_settings({**session.asker.settings, **session.settings}, session.time)
            found = {row["name"]: row["setting"] for row in every.to_pylist()}
            if setting not in found:
                raise UnknownName("setting", str(setting), found)
            return pa.table({str(setting): pa.array([found[setting]], pa.string())})
        case Show("sources"):
            return show_sources(session.sources(session.known(state)))
        case Show(what, collection):
            return show(session.known(state), session.delivering, what, collection)
    return None


def _change_with(session: Session, state: State, statement: WithChanges, sql: str) -> pa.Table:
    """Carry out the changes in WITH and what comes after it, in one batch. The answer is that of the latter."""
    seen = session.seen(state)
    after, changes = carry_out_all(seen, statement.parts, sql)
    if isinstance(statement.main, Select):
        found, session.columns = querying.answer(after, statement.main.query, None, sql)
        session.change_all(state, followed(seen, changes), tables_read(statement))
        return found
    made = carry_out(after, statement.main, sql)
    together(seen, changes, statement.main.table, made)
    session.change_all(state, followed(seen, changes), tables_read(statement))
    return answer(session, statement.main, made)


def _truncate(session: Session, state: State, statement: Truncate) -> pa.Table:
    """Remove all rows of tables, in one batch."""
    seen = session.seen(state)
    names = truncated(seen.catalog, statement)
    gone = {name: reading.contents(seen, name, None, distinct=True) for name in names}
    lost = {name: Updates(rows.columns, rows.time, -rows.diff) for name, rows in gone.items()}
    session.change_all(state, lost, names)
    if statement.restart:
        own = tuple(filter(is_temporary, names))
        lasting = tuple(name for name in names if name not in own)
        if own:
            session.define(state, lambda state: restart(state, own), Drop("table", own))
        if lasting:
            session.define(state, lambda state: restart(state, lasting))
    count = sum(int(rows.diff.sum()) for rows in gone.values())
    return tagged(session, pa.table({"count": pa.array([count], pa.int64())}), "TRUNCATE TABLE")


def _say_gone(gone: Sequence[str]) -> None:
    """Warn of what CASCADE has dropped."""
    shown = ", ".join(gone[:_MOST_GONE]) + (", ..." if len(gone) > _MOST_GONE else "")
    if gone:
        _log.warning("drop cascades to %s%s", f"{len(gone)} other objects: " if len(gone) > 1 else "", shown)


def _create_table_as(session: Session, state: State, statement: CreateTableAs, sql: str) -> pa.Table | None:
    """Create a table with the rows of a query, both or neither."""
    if isinstance(statement.query, Execute):
        kept = session.prepared_statement(statement.query.name)
        inner = executed(kept, statement.query.values)
        if not isinstance(inner, Select) or inner.as_of is not None:
            raise UnsupportedSQL(f"prepared statement {kept.name} is not a SELECT", code="42809")
        query, sql = inner.query, kept.text
        statement = replace(statement, query=query)
    else:
        query = statement.query
    known = session.known(state)
    if statement.if_not_exists and statement.name in known.catalog.names():
        return None
    made = columns_of_query(statement, known.catalog, sql)
    alone = session.transaction is None
    if alone:
        session.begin()
    session.define(state, lambda state: define(state, session.means, made, sql), made)
    count = 0
    if statement.data:
        found = carry_out(session.seen(state), Insert(statement.name, (), query), sql)
        session.keep_numbers(state)
        session.change(state, statement.name, found.updates)
        count = found.count
    if alone:
        session.commit(state)
    say_ignored(statement)
    if not statement.data:
        return None
    return tagged(session, pa.table({"count": pa.array([count], pa.int64())}), f"SELECT {count}")


def _create_sink(session: Session, state: State, statement: CreateSink, sql: str) -> None:
    """Define the sink, then fill its table, so that every table belongs to a sink that is kept. If the fill fails, undo
    the definition."""
    means = session.means
    settled(statement, state.catalog, sql)
    if statement.if_not_exists and statement.name in state.catalog.sinks:
        define(state, means, statement, sql)
        return
    before = state.catalog.sinks.get(statement.name)
    session.define(state, lambda state: define(state, means, statement, sql))

    def undo(state: State) -> None:
        drop(state, Drop("sink", (statement.name,)))
        if before is not None:
            state.catalog.add(before)

    try:
        session.sinks.fill(state, statement.name)
    except BaseException:
        session.define(state, undo)
        raise


def _changes(session: Session, state: State, name: str, as_of: int | None, up_to: int | None) -> pa.Table:
    """The answer to SUBSCRIBE: the snapshot and every change that is closed now, as one table."""
    subscription = subscribe(session, state, name, as_of, up_to)
    subscription.close()
    return pa.concat_tables([empty(state.schema(name)).table(changes=True), *subscription])

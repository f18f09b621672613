"""CREATE and DROP: they change the catalog's definitions and the collections behind them."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

from halfjoin.catalog.catalog import beside
from halfjoin.catalog.models import ColumnModel, Definition, Index, Sink, Table, View
from halfjoin.engine.arrange.collection import User
from halfjoin.engine.batch.enter import arranged, empty_view, enter_table, ordered, share, share_all
from halfjoin.engine.batch.flows import alone
from halfjoin.engine.batch.runner import LOCAL
from halfjoin.engine.batch.state import MaintainedView, State
from halfjoin.engine.sinks.kafka.defining import check_topic, topic_options
from halfjoin.engine.sinks.sinks import Sinks
from halfjoin.engine.sinks.target import check, normalized
from halfjoin.engine.spark.runners import Runners
from halfjoin.engine.statements.replacing import follow_query, followers
from halfjoin.engine.statements.statistics import Statistics
from halfjoin.engine.statements.tables import add_sequences, check_schema, refer, table_of, with_likes
from halfjoin.engine.storage.filling import fill_nodes, forget_past, take_in
from halfjoin.engine.storage.names import check_columns
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.planner.figures import Noted
from halfjoin.planner.plan import ArrangementKey, ViewPlan
from halfjoin.planner.plan_view import plan
from halfjoin.sql.bind.bind import bind, bind_keys
from halfjoin.sql.bind.tables import names_of
from halfjoin.sql.definitions import CreateIndex, CreateSink, CreateTable, CreateTableAs, CreateView
from halfjoin.sql.expr import is_temporal
from halfjoin.sql.functions import render

_log = logging.getLogger("halfjoin")


@dataclass(frozen=True, slots=True)
class Means:
    """What definitions need besides the state: the runners that fill views, and the sinks."""

    runners: Runners
    sinks: Sinks


def define(
    state: State, means: Means, statement: CreateTable | CreateView | CreateIndex | CreateSink, text: str
) -> None:
    """Carry out a definition."""
    match statement:
        case CreateTable():
            create_table(state, statement)
        case CreateView():
            create_view(state, means.runners, statement, text)
        case CreateIndex():
            create_index(state, statement, text)
        case CreateSink():
            create_sink(state, means.sinks, statement)


def create_table(state: State, statement: CreateTable) -> None:
    """Create an empty table, arranged by its keys."""
    catalog = state.catalog
    if statement.if_not_exists and statement.name in catalog.names():
        there, wanted = catalog.tables.get(statement.name), table_of(statement, catalog)
        _leave(there and _as_written(there), _as_written(wanted), "TABLE")
        return
    statement = with_likes(statement, catalog)
    table = table_of(statement, catalog)
    catalog.add(table)
    add_sequences(catalog, table, statement.columns)
    refer(catalog, table)
    enter_table(state, table)


def say_ignored(statement: CreateTable | CreateTableAs | CreateView) -> None:
    """Warn of what a statement says in vain."""
    if statement.ignored:
        _log.warning("%s: rows are not stored as in PostgreSQL; %s changes nothing", statement.name,
                     ", ".join(statement.ignored))  # fmt: skip


def _as_written(table: Table) -> Table:
    """The table without what tells it from another one that is written in the same way."""
    unique = tuple(one.model_copy(update={"lasting": False}) for one in table.unique)
    return table.model_copy(update={"id": "", "referenced": False, "unique": unique})


def _leave(there: Definition | None, wanted: Definition | None, kind: str, name: str = "") -> None:
    """Warn if CREATE ... IF NOT EXISTS finds another definition than the one wanted, and leaves it as it is."""
    if there != wanted:
        name = name if wanted is None else wanted.name
        _log.warning("CREATE %s IF NOT EXISTS: %s exists with another definition, and stays as it is", kind, name)


def create_view(state: State, runners: Runners, statement: CreateView, text: str) -> None:
    """Create a view. Plain views are checked too; a materialized view is filled from its inputs' history."""
    name, catalog = statement.name, state.catalog
    check_schema(name, catalog)
    if name in catalog.names():
        if statement.if_not_exists:
            there = catalog.views.get(name)
            same = there is not None and there.materialized == statement.materialized and (
                there.text.split() == statement.text.split() and there.retain == statement.retain)  # fmt: skip
            _leave(there if same else None, there, "MATERIALIZED VIEW" if statement.materialized else "VIEW", name)
            return
        if not statement.or_replace:
            raise Conflict(f"{name} exists already", remedy="drop it first, or write IF NOT EXISTS or OR REPLACE",
                           name=name, code="42P07")  # fmt: skip
        if name not in catalog.views:
            raise Conflict(f"{name} is a table, which a view cannot replace", name=name, code="42809")
        if catalog.views[name].materialized and not statement.materialized:
            raise Conflict(f"{name} is a materialized view, which a plain one cannot replace", name=name, code="42809",
                           remedy="CREATE OR REPLACE MATERIALIZED VIEW, or DROP MATERIALIZED VIEW first")
    replaced = catalog.views.get(name)
    readers = [] if replaced is None else followers(catalog, replaced, materialized=statement.materialized)
    notices: list[str] = []
    relation = bind(statement.query, catalog, text, notices)
    facts = Noted(Statistics(state), aside=(name,))
    planned = plan(relation, facts, name)
    view = View(
        name=name,
        columns=tuple(ColumnModel(name=c.name, type=c.type, not_null=not c.nullable) for c in planned.columns),
        text=statement.text,
        materialized=statement.materialized,
        reads=tuple(sorted(names_of(statement.query, catalog))),
        retain=statement.retain,
        id=uuid.uuid4().hex,
        first_id="" if replaced is None else replaced.first_id or replaced.id,
        planned=facts.figures(state.upper) if statement.materialized else None,
    )
    if name in view.reads:
        raise UnsupportedSQL(f"{name} reads itself", remedy="write WITH RECURSIVE in its query", code="42P17")
    made = User("new view", name)  # the view does not exist until it is filled, which may fail
    try:
        filled = _filled(state, runners, view, planned, made) if view.materialized else None
        if replaced is not None:
            _leave_view(state, replaced)
        catalog.add(view)
        if replaced is not None and readers:
            follow_query(catalog, replaced, readers)
        if filled is not None:
            maintained, nodes = filled
            _with_nodes(state, maintained, nodes)
            state.maintained[name] = maintained
            share_all(state, planned, name)
            _renew_sinks(state, name)
        remove_unused_nodes(state)
        for notice in notices:
            _log.warning("%s: %s", name, notice)
    finally:
        for collection in state.collections():
            collection.release(made)


def _renew_sinks(state: State, name: str) -> None:
    """Restart the sinks of a replaced view: each gets a new id, and takes over the table of the old one."""
    for sink in [sink for sink in state.catalog.sinks.values() if sink.collection == name]:
        _check_sink(state, sink)
        state.catalog.remove(sink)
        state.catalog.add(sink.model_copy(update={"id": uuid.uuid4().hex}))


def _filled(
    state: State, runners: Runners, view: View, planned: ViewPlan, user: User
) -> tuple[MaintainedView, dict[str, MaintainedView]]:
    """The view, filled from its inputs' history and readable from where all inputs are; and the nodes below it, those
    that exist already included."""
    maintained = empty_view(state, view, planned)
    contents = maintained.contents
    size = max((len(state.collection(name)) for name in planned.collections), default=0)
    runner, _ = runners.choose(size)
    build = runner is LOCAL
    share(state, planned, user, build=build)
    over, nodes = fill_nodes(state, planned, contents.since, runner, runners.staging)
    share(over, planned, user, build=build)
    before_and_after = over.before_and_after({})
    for output, errors in runner.fill(alone(maintained.dataflow), over, before_and_after, contents.since, view.name):
        take_in(state, "views", view.name, contents, output)
        take_in(state, "errors", view.name, maintained.errors, errors)
    return maintained, nodes


def _with_nodes(state: State, view: MaintainedView, nodes: Mapping[str, MaintainedView]) -> None:
    """Enter a view's new nodes; for its other nodes, enter errors with a longer history."""
    for name, made in nodes.items():
        there = state.maintained.get(name)
        if there is None:
            forget_past(state, made)
            state.maintained[name] = made
        elif there.errors.since > view.contents.since:
            state.maintained[name] = replace(there, errors=made.errors, standing=None)


def create_index(state: State, statement: CreateIndex, text: str) -> None:
    """Create an index: an arrangement that is built now and stays until the index is dropped."""
    catalog, name = state.catalog, statement.collection
    columns = catalog.columns(name)
    if columns is None:
        if name in catalog.views:
            raise UnsupportedSQL(f"{name} is a plain view, which holds no rows to index",
                                 remedy="CREATE MATERIALIZED VIEW, or index the tables it reads")
        raise UnknownName("table or materialized view", name, catalog.names())
    keys = bind_keys(statement.keys, columns, catalog, text, name)
    if any(is_temporal(key) for key in keys):
        raise UnsupportedSQL("an index key cannot read mz_now()", remedy="index the column it is compared with")
    bind_keys(statement.named, columns, catalog, text, name)
    texts = tuple(render(key) for key in keys)
    index_name = catalog.index_named(beside(name, statement.name)) if statement.name else (
        _free_name(state, name, texts))  # fmt: skip
    index = Index(name=index_name, collection=name, keys=texts, text=statement.text)
    if statement.if_not_exists and index_name in catalog.indexes:
        there = catalog.indexes[index_name]
        _leave(index if (there.collection, there.keys) == (name, texts) else there, index, "INDEX")
        return
    catalog.add(index)
    arranged(state, index_name, name, keys).build(ArrangementKey(name, ordered(keys)))
    if statement.ignored:
        _log.warning("index %s: it has all rows by equal keys; %s changes nothing", index_name,
                     ", ".join(statement.ignored))  # fmt: skip


def create_sink(state: State, sinks: Sinks, statement: CreateSink) -> None:
    """Create a sink. It is filled later."""
    catalog, name = state.catalog, statement.collection
    if statement.if_not_exists and statement.name in catalog.sinks:
        there = catalog.sinks[statement.name]
        asked = (name, statement.target, dict(statement.options or {}))
        same = (there.collection, "" if there.options else there.target, there.options) == asked
        _leave(there if same else None, there, "SINK")
        return
    columns = catalog.columns(name)
    if columns is None:
        if name in catalog.views:
            raise UnsupportedSQL(f"{name} is a plain view, which reports no changes",
                                 remedy=f"CREATE MATERIALIZED VIEW ... AS SELECT * FROM {name}")
        raise UnknownName("table or materialized view", name, catalog.names())
    options = dict(statement.options or {})
    target = topic_options(options).topic if options else normalized(statement.target)
    sink = Sink(name=statement.name, collection=name, target=target, id=uuid.uuid4().hex, options=options)
    _check_sink(state, sink)
    if statement.or_replace and statement.name in catalog.sinks:
        catalog.remove(catalog.sinks[statement.name])
    catalog.add(sink)
    if not options:
        others = [other for other in catalog.sinks.values() if other is not sink and not other.options]
        check(sink.target, sinks.home, others, catalog.former_sinks)


def _check_sink(state: State, sink: Sink) -> None:
    """Refuse columns of a table or view that a Delta table cannot have, and keys that a topic cannot have."""
    name = sink.collection
    if sink.options:
        check_topic(state, sink)
        return
    if not state.schema(name):
        raise UnsupportedSQL(f"{name} has no columns, but a Delta table needs one", remedy="select a constant")
    check_columns(name, state.schema(name))


def _free_name(state: State, collection: str, keys: tuple[str, ...]) -> str:
    words = "_".join("".join(c if c.isalnum() else "_" for c in key).strip("_") for key in keys)
    base = f"{collection}_{words}_idx"
    taken = state.catalog.indexes
    return next(name for name in (base, *(f"{base}{i}" for i in range(1, len(taken) + 2))) if name not in taken)


def drop_view(state: State, view: View) -> None:
    """Remove a view, with the nodes and arrangements that nobody else uses."""
    _leave_view(state, view)
    remove_unused_nodes(state)


def _leave_view(state: State, view: View) -> None:
    """Remove a view, but not the nodes below it."""
    state.catalog.remove(view)
    if state.maintained.pop(view.name, None) is not None:
        state.keep_promises()
        for collection in state.collections():
            collection.release(User("view", view.name))
        state.subscriptions.pop(view.name, None)  # they end once the definition is kept


def remove_unused_nodes(state: State) -> None:
    """Remove the nodes that no view has any more."""
    plans = [view.plan for view in state.views.values() if view.plan is not None]
    used = {node.output for plan in plans for node in plan.below}
    for name in [name for name, one in state.maintained.items() if one.plan is None and name not in used]:
        del state.maintained[name]
        for collection in state.collections():
            collection.release(User("node", name))

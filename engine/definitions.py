"""CREATE and DROP: definitions of the catalog and the collections behind them."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace

from halfjoin.catalog.models import ColumnModel, Definition, Index, Sink, Table, View
from halfjoin.engine.collection import Collection, User
from halfjoin.engine.dataflow import Dataflow
from halfjoin.engine.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.primary_key import arrangement_of
from halfjoin.engine.runners import LOCAL
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.sinks.target import check, settled
from halfjoin.engine.state import MaintainedView, State
from halfjoin.engine.statements.filling import fill_nodes, new_node, runnable, settle_node, take_in
from halfjoin.engine.storage.names import check_columns
from halfjoin.planner.plan import ArrangementKey, Join, ViewPlan
from halfjoin.planner.plan_view import plan
from halfjoin.sql.adhoc import names_of
from halfjoin.sql.bind import bind, bind_scalar
from halfjoin.sql.errors import Conflict, StorageError, UnknownName, UnsupportedSQL
from halfjoin.sql.expr import Expr, is_temporal
from halfjoin.sql.functions import render
from halfjoin.sql.parse import parse, parse_query
from halfjoin.sql.statements import CreateIndex, CreateSink, CreateTable, CreateView, Drop

_log = logging.getLogger("halfjoin")


def define(
    state: State, statement: CreateTable | CreateView | CreateIndex | CreateSink | Drop, text: str
) -> None:
    """Carry a definition out."""
    match statement:
        case CreateTable():
            create_table(state, statement)
        case CreateView():
            create_view(state, statement, text)
        case CreateIndex():
            create_index(state, statement, text)
        case CreateSink():
            create_sink(state, statement)
        case Drop():
            drop(state, statement)


def create_table(state: State, statement: CreateTable) -> None:
    """An empty table, arranged by its primary key if it has one."""
    table = Table(
        name=statement.name,
        columns=tuple(ColumnModel(name=c.name, type=c.type, not_null=c.not_null) for c in statement.columns),
        primary_key=statement.primary_key,
        retain=statement.retain,
    )
    if statement.if_not_exists and table.name in state.catalog.names():
        there = state.catalog.tables.get(table.name)
        _leave(there if there is None else there.model_copy(update={"id": ""}), table, "TABLE")
        return
    table = table.model_copy(update={"id": uuid.uuid4().hex})
    state.catalog.add(table)
    enter_table(state, table)


def enter_table(state: State, table: Table) -> Collection:
    """The empty collection of a table that is in the catalog."""
    schema = {column.name: arrow_type(column.type) for column in table.columns}
    retain = state.retain if table.retain is None else table.retain
    collection = Collection(table.name, schema, retain, since=max(0, state.upper - max(retain, 1)),
                            order=table.primary_key)  # fmt: skip
    if table.primary_key:
        collection.share(arrangement_of(table), User("primary key of", table.name), state.functions)
    state.tables[table.name] = collection
    return collection


def _leave(there: Definition | None, wanted: Definition | None, kind: str, name: str = "") -> None:
    """Say that CREATE ... IF NOT EXISTS leaves what is there as it is, if that is not what was wanted."""
    if there != wanted:
        name = name if wanted is None else wanted.name
        _log.warning("CREATE %s IF NOT EXISTS: %s is there with another definition, and stays as it is", kind, name)


def create_view(state: State, statement: CreateView, text: str) -> None:
    """A view, checked whether or not it is maintained; a materialized one is filled from its inputs' history."""
    name, catalog = statement.name, state.catalog
    if name in catalog.names():
        if statement.if_not_exists:
            there = catalog.views.get(name)
            same = there is not None and there.materialized == statement.materialized and (
                there.text.split() == statement.text.split() and there.retain == statement.retain)  # fmt: skip
            _leave(there if same else None, there, "MATERIALIZED VIEW" if statement.materialized else "VIEW", name)
            return
        if not statement.or_replace:
            raise Conflict(f"{name} exists already; drop it first, or write IF NOT EXISTS or OR REPLACE")
        if name not in catalog.views:
            raise Conflict(f"{name} is a table, which a view cannot replace")
        catalog.check_unread(catalog.views[name], sinks=not statement.materialized)
    relation = bind(statement.query, catalog, text)
    planned = plan(relation, state, name)
    view = View(
        name=name,
        columns=tuple(ColumnModel(name=c.name, type=c.type, not_null=not c.nullable) for c in planned.columns),
        text=statement.text,
        materialized=statement.materialized,
        reads=tuple(sorted(names_of(statement.query, catalog))),
        retain=statement.retain,
        id=uuid.uuid4().hex,
    )
    if name in view.reads:
        raise UnsupportedSQL(f"{name} reads itself", instead="recursion is not maintained yet")
    made = User("new view", name)  # until it is filled, which may fail, there is no such view
    try:
        filled = _filled(state, view, planned, made) if view.materialized else None
        if name in catalog.views:
            _leave_view(state, catalog.views[name])
        catalog.add(view)
        if filled is not None:
            maintained, nodes = filled
            _with_nodes(state, maintained, nodes)
            state.maintained[name] = maintained
            _share_all(state, planned, name)
            _renew_sinks(state, name)
        _remove_unused_nodes(state)
    finally:
        for collection in state.collections():
            collection.release(made)


def _renew_sinks(state: State, name: str) -> None:
    """Let the sinks of a view that was replaced begin anew: each is another one, that takes the table over."""
    for sink in [sink for sink in state.catalog.sinks.values() if sink.collection == name]:
        _check_sink(state, name)
        state.catalog.remove(sink)
        state.catalog.add(sink.model_copy(update={"id": uuid.uuid4().hex}))


def _filled(
    state: State, view: View, planned: ViewPlan, user: User
) -> tuple[MaintainedView, dict[str, MaintainedView]]:
    """The view with its collections, readable since all its inputs are, filled from their history; and the nodes below
    it, with those that are there already."""
    maintained = _maintained(state, view, planned)
    contents = maintained.contents
    size = max((len(state.collection(name)) for name in planned.collections), default=0)
    runner, _ = state.runners.choose(size)
    build = runner is LOCAL
    _share(state, planned, user, build=build)
    over, nodes = fill_nodes(state, planned, contents.since, runner)
    _share(over, planned, user, build=build)
    for output, errors in runner.fill(maintained.dataflow, over, over.before_and_after({}), view.name):
        take_in(state, "views", view.name, contents, output)
        take_in(state, "errors", view.name, maintained.errors, errors)
    return maintained, nodes


def _with_nodes(state: State, view: MaintainedView, nodes: Mapping[str, MaintainedView]) -> None:
    """Enter the nodes of a view that are new, and the longer history of errors of the others."""
    for name, made in nodes.items():
        there = state.maintained.get(name)
        if there is None:
            settle_node(state, made)
            state.maintained[name] = made
        elif there.errors.since > view.contents.since:
            state.maintained[name] = replace(there, errors=made.errors, standing=None)


def enter_view(state: State, view: View) -> dict[str, MaintainedView]:
    """The dataflow and the empty collections of a materialized view that is in the catalog, and of the nodes below it
    that are not there yet; no index is built.

    Raises:
        StorageError: its text means something else now than when the view was made.
    """
    planned = plan(bind(parse_query(view.text), state.catalog, view.text), state, view.name)
    if [(c.name, c.type) for c in planned.columns] != [(c.name, c.type) for c in view.columns]:
        raise StorageError(
            f"the materialized view {view.name} was made by another version of halfjoin, which gave it other columns; "
            "open the warehouse with that one, drop the view, and create it again with this one"
        )
    entered = {node.output: new_node(state, node, 0) for node in planned.below if node.output not in state.maintained}
    entered[view.name] = _maintained(state, view, planned)
    state.maintained.update(entered)
    _share_all(state, planned, view.name)
    return entered


def _maintained(state: State, view: View, planned: ViewPlan) -> MaintainedView:
    """The view's collections, readable since all its inputs are."""
    flow = Dataflow(runnable(planned.output), state.functions)
    retain = state.retain if view.retain is None else view.retain
    since = max([0, state.upper - max(retain, 1)] + [state.collection(name).since for name in planned.collections])
    return MaintainedView(
        flow,
        Collection(view.name, flow.schema, retain, since),
        Collection(f"{view.name} errors", ERROR_SCHEMA, retain, since),
        plan=planned,
    )


def _share(state: State, planned: ViewPlan | Join, user: User, *, build: bool = True) -> None:
    """Use a plan's arrangements, of the collections that are there; with `build` no later batch waits for an index of a
    whole table."""
    for key in planned.arrangements:
        if key.constant is None and (key.collection in state.tables or key.collection in state.maintained):
            collection = state.collection(key.collection)
            collection.share(key, user, state.functions)
            if build:
                collection.build(key)


def _share_all(state: State, planned: ViewPlan, view: str) -> None:
    """Use the arrangements that a view that was entered looks up, and those of the nodes below it."""
    for node in planned.below:
        _share(state, runnable(node), User("node", node.output), build=False)
    _share(state, runnable(planned.output), User("view", view), build=False)
    state.keep_promises()


def create_index(state: State, statement: CreateIndex, text: str) -> None:
    """An arrangement that stays until the index is dropped, built now."""
    catalog, name = state.catalog, statement.collection
    columns = catalog.columns(name)
    if columns is None:
        if name in catalog.views:
            raise UnsupportedSQL(f"{name} is a plain view, which holds no rows to index",
                                 instead="CREATE MATERIALIZED VIEW, or index the tables it reads")
        raise UnknownName("table or materialized view", name, catalog.names())
    keys = [bind_scalar(node, columns, catalog, text, name) for node in statement.keys]
    if any(is_temporal(key) for key in keys):
        raise UnsupportedSQL("an index key cannot read mz_now()", instead="index the column it is compared with")
    texts = tuple(render(key) for key in keys)
    index_name = statement.name or _free_name(state, name, texts)
    index = Index(name=index_name, collection=name, keys=texts, text=statement.text)
    if statement.if_not_exists and index_name in catalog.indexes:
        there = catalog.indexes[index_name]
        _leave(index if (there.collection, there.keys) == (name, texts) else there, index, "INDEX")
        return
    catalog.add(index)
    _arranged(state, index_name, name, keys).build(ArrangementKey(name, _ordered(keys)))


def create_sink(state: State, statement: CreateSink) -> None:
    """A sink, not filled yet."""
    catalog, name = state.catalog, statement.collection
    if statement.if_not_exists and statement.name in catalog.sinks:
        there = catalog.sinks[statement.name]
        same = (there.collection, there.target) == (name, statement.target)
        _leave(there if same else None, there, "SINK")
        return
    columns = catalog.columns(name)
    if columns is None:
        if name in catalog.views:
            raise UnsupportedSQL(f"{name} is a plain view, which reports no changes",
                                 instead=f"CREATE MATERIALIZED VIEW ... AS SELECT * FROM {name}")
        raise UnknownName("table or materialized view", name, catalog.names())
    _check_sink(state, name)
    if statement.or_replace and statement.name in catalog.sinks:
        catalog.remove(catalog.sinks[statement.name])
    sink = Sink(name=statement.name, collection=name, target=settled(statement.target), id=uuid.uuid4().hex)
    catalog.add(sink)
    assert state.sinks is not None  # whoever defines, writes
    others = [other for other in catalog.sinks.values() if other is not sink]
    check(sink.target, state.sinks.home, others, catalog.former_sinks)


def _check_sink(state: State, name: str) -> None:
    """Whether a Delta table can have the columns of a table or view."""
    if not state.schema(name):
        raise UnsupportedSQL(f"{name} has no columns, and a Delta table has some", instead="select a constant")
    check_columns(name, state.schema(name))


def enter_index(state: State, index: Index) -> None:
    """Share the arrangement of an index that is in the catalog."""
    columns = state.catalog.columns(index.collection)
    assert columns is not None
    (statement,) = parse(index.text)
    assert isinstance(statement, CreateIndex)
    keys = [bind_scalar(node, columns, state.catalog, index.text, index.collection) for node in statement.keys]
    _arranged(state, index.name, index.collection, keys)


def _arranged(state: State, index: str, name: str, keys: Sequence[Expr]) -> Collection:
    collection = state.collection(name)
    collection.share(ArrangementKey(name, _ordered(keys)), User("index", index), state.functions)
    return collection


def _ordered(keys: Sequence[Expr]) -> tuple[Expr, ...]:
    return tuple(sorted(keys, key=render))


def _free_name(state: State, collection: str, keys: tuple[str, ...]) -> str:
    words = "_".join("".join(c if c.isalnum() else "_" for c in key).strip("_") for key in keys)
    base = f"{collection}_{words}_idx"
    taken = state.catalog.indexes
    return next(name for name in (base, *(f"{base}{i}" for i in range(1, len(taken) + 2))) if name not in taken)


def drop(state: State, statement: Drop) -> None:
    """Drop tables, views, indexes or sinks; all of them or none."""
    catalog = state.catalog
    found_all = [
        catalog.find(statement.kind, name)
        for name in dict.fromkeys(statement.names)
        if not statement.if_exists or catalog.has(statement.kind, name)
    ]
    going = {found.name for found in found_all}
    for found in found_all:
        catalog.check_unread(found, going)
    for found in reversed(found_all):
        match found:
            case View():
                drop_view(state, found)
            case Sink():
                state.catalog.remove(found)
            case Index():
                state.catalog.remove(found)
                state.collection(found.collection).release(User("index", found.name))
            case Table():
                state.catalog.remove(found)
                del state.tables[found.name]


def drop_view(state: State, view: View) -> None:
    """Take a view out; nodes and arrangements that nobody else uses go with it."""
    _leave_view(state, view)
    _remove_unused_nodes(state)


def _leave_view(state: State, view: View) -> None:
    """Take a view out, and leave the nodes below it."""
    state.catalog.remove(view)
    if state.maintained.pop(view.name, None) is not None:
        state.keep_promises()
        for collection in state.collections():
            collection.release(User("view", view.name))
        state.subscriptions.pop(view.name, None)  # they end when this is kept


def _remove_unused_nodes(state: State) -> None:
    plans = [view.plan for view in state.views.values() if view.plan is not None]
    used = {node.output for plan in plans for node in plan.below}
    for name in [name for name, one in state.maintained.items() if one.plan is None and name not in used]:
        del state.maintained[name]
        for collection in state.collections():
            collection.release(User("node", name))

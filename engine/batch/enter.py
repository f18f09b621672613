"""Enter what the catalog defines into the state: empty collections, shared arrangements, the dataflows of views."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.catalog.models import Index, Table, View
from halfjoin.engine.arrange.collection import Collection, User
from halfjoin.engine.batch.state import MaintainedView, State
from halfjoin.engine.intake.primary_key import arrangement_of
from halfjoin.engine.join.dataflow import Dataflow
from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.errors import StorageError, UnsupportedSQL
from halfjoin.planner.drift import limit
from halfjoin.planner.figures import Replayed
from halfjoin.planner.plan import ArrangementKey, Join, Node, ViewPlan
from halfjoin.planner.plan_view import plan
from halfjoin.sql.bind.bind import bind, bind_scalar
from halfjoin.sql.expr import Expr
from halfjoin.sql.functions import render
from halfjoin.sql.parse.parse import parse, parse_query
from halfjoin.sql.statements import CreateIndex


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


def enter_view(state: State, view: View) -> dict[str, MaintainedView]:
    """The dataflow and the empty collections of a materialized view that is in the catalog, and of the nodes below it
    that are not there yet; no index is built.

    Raises:
        StorageError: its text means something else now than when the view was made.
    """
    facts = Replayed(state, view.planned)  # by which the plan is the one that ran when the warehouse was closed
    planned = plan(bind(parse_query(view.text), state.catalog, view.text), facts, view.name)
    if [(c.name, c.type) for c in planned.columns] != [(c.name, c.type) for c in view.columns]:
        raise StorageError(
            f"the materialized view {view.name} was made by another version of halfjoin, which gave it other columns",
            remedy="open the warehouse with that one, drop the view, and create it again with this one",
        )
    entered = {node.output: new_node(state, node, 0) for node in planned.below if node.output not in state.maintained}
    entered[view.name] = empty_view(state, view, planned)
    state.maintained.update(entered)
    share_all(state, planned, view.name)
    return entered


def enter_index(state: State, index: Index) -> None:
    """Share the arrangement of an index that is in the catalog."""
    columns = state.catalog.columns(index.collection)
    assert columns is not None
    (statement,) = parse(index.text)
    assert isinstance(statement, CreateIndex)
    keys = [bind_scalar(node, columns, state.catalog, index.text, index.collection) for node in statement.keys]
    arranged(state, index.name, index.collection, keys)


def empty_view(state: State, view: View, planned: ViewPlan) -> MaintainedView:
    """The view's collections, readable since all its inputs are."""
    flow = Dataflow(runnable(planned.output), state.functions, view.name)
    retain = state.retain if view.retain is None else view.retain
    since = max([0, state.upper - max(retain, 1)] + [state.collection(name).since for name in planned.collections])
    known = {} if view.planned is None else view.planned.rows
    return MaintainedView(
        flow,
        Collection(view.name, flow.schema, retain, since),
        Collection(f"{view.name} errors", ERROR_SCHEMA, retain, since),
        plan=planned,
        limits={name: limit(known.get(name, 0)) for name in planned.collections},
    )


def runnable(node: Node) -> Join:
    """The node as one that runners carry out.

    Raises:
        UnsupportedSQL: it is a reduce or a loop.
    """
    if isinstance(node, Join):
        return node
    kind = type(node).__name__.lower()
    raise UnsupportedSQL(f"the plan has a {kind}, which is not maintained yet",
                         remedy="write the view with joins, filters and UNION ALL")


def new_node(state: State, node: Node, since: int) -> MaintainedView:
    """A node with its empty output, of which nothing but the present is kept."""
    flow = Dataflow(runnable(node), state.functions, "a node below a view")
    errors = Collection(f"{node.output} errors", ERROR_SCHEMA, 1, since)
    return MaintainedView(flow, Collection(node.output, flow.schema, 1, since), errors)


def share(state: State, planned: ViewPlan | Join, user: User, *, build: bool = True) -> None:
    """Use a plan's arrangements, of the collections that are there; with `build` no later batch waits for an index of a
    whole table."""
    for key in planned.arrangements:
        if key.constant is None and (key.collection in state.tables or key.collection in state.maintained):
            collection = state.collection(key.collection)
            collection.share(key, user, state.functions)
            if build:
                collection.build(key)


def share_all(state: State, planned: ViewPlan, view: str) -> None:
    """Use the arrangements that a view that was entered looks up, and those of the nodes below it."""
    for node in planned.below:
        share(state, runnable(node), User("node", node.output), build=False)
    share(state, runnable(planned.output), User("view", view), build=False)
    state.keep_promises()


def arranged(state: State, index: str, name: str, keys: Sequence[Expr]) -> Collection:
    """Share the arrangement that an index stands for; the collection that it is of."""
    collection = state.collection(name)
    collection.share(ArrangementKey(name, ordered(keys)), User("index", index), state.functions)
    return collection


def ordered(keys: Sequence[Expr]) -> tuple[Expr, ...]:
    """Keys as arrangements have them, whatever their order in the text."""
    return tuple(sorted(keys, key=render))

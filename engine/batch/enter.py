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
from halfjoin.errors import StorageError
from halfjoin.planner.drift import limit
from halfjoin.planner.figures import Replayed
from halfjoin.planner.plan import ArrangementKey, ViewPlan
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


def enter_view(state: State, view: View) -> MaintainedView:
    """The dataflow and the empty collections of a materialized view that is in the catalog; no index is built.

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
    entered = state.views[view.name] = empty_view(state, view, Dataflow(planned, state.functions, view.name))
    share(state, planned, User("view", view.name), build=False)
    return entered


def enter_index(state: State, index: Index) -> None:
    """Share the arrangement of an index that is in the catalog."""
    columns = state.catalog.columns(index.collection)
    assert columns is not None
    (statement,) = parse(index.text)
    assert isinstance(statement, CreateIndex)
    keys = [bind_scalar(node, columns, state.catalog, index.text, index.collection) for node in statement.keys]
    arranged(state, index.name, index.collection, keys)


def empty_view(state: State, view: View, flow: Dataflow) -> MaintainedView:
    """The view's collections, readable since all its inputs are."""
    retain = state.retain if view.retain is None else view.retain
    since = max([0, state.upper - max(retain, 1)] + [state.collection(name).since for name in flow.plan.collections])
    known = {} if view.planned is None else view.planned.rows
    return MaintainedView(
        flow,
        Collection(view.name, flow.schema, retain, since),
        Collection(f"{view.name} errors", ERROR_SCHEMA, retain, since),
        limits={name: limit(known.get(name, 0)) for name in flow.plan.collections},
    )


def share(state: State, planned: ViewPlan, user: User, *, build: bool = True) -> None:
    """Use the plan's arrangements; with `build` no later batch waits for an index of a whole table."""
    for key in planned.arrangements:
        if not key.collection.startswith("="):
            collection = state.collection(key.collection)
            collection.share(key, user, state.functions)
            if build:
                collection.build(key)


def arranged(state: State, index: str, name: str, keys: Sequence[Expr]) -> Collection:
    """Share the arrangement that an index stands for; the collection that it is of."""
    collection = state.collection(name)
    collection.share(ArrangementKey(name, ordered(keys)), User("index", index), state.functions)
    return collection


def ordered(keys: Sequence[Expr]) -> tuple[Expr, ...]:
    """Keys as arrangements have them, whatever their order in the text."""
    return tuple(sorted(keys, key=render))

"""Enter the catalog's definitions into the state: empty collections, shared arrangements, the dataflows of views."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.catalog.models import ColumnModel, Index, Table, View
from halfjoin.engine.arrange.collection import Collection, User
from halfjoin.engine.batch.flows import flow_of
from halfjoin.engine.batch.state import MaintainedView, State
from halfjoin.engine.intake.primary_key import arrangement_of
from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.updates.updates import MINIMUM
from halfjoin.errors import StorageError
from halfjoin.planner.drift import limit
from halfjoin.planner.figures import Replayed
from halfjoin.planner.plan import ArrangementKey, Node, ViewPlan
from halfjoin.planner.plan_view import plan
from halfjoin.planner.wants import wants
from halfjoin.sql.bind.bind import bind_keys
from halfjoin.sql.expr import Expr
from halfjoin.sql.functions import render
from halfjoin.sql.parse.parse import parse_index
from halfjoin.sql.relation import Relation


def enter_table(state: State, table: Table) -> Collection:
    """Enter a table of the catalog as an empty collection."""
    schema = {column.name: arrow_type(column.type) for column in table.columns}
    retain = state.retained(table)
    collection = Collection(table.name, schema, retain, since=max(0, state.upper - max(retain, 1)),
                            order=table.primary_key)  # fmt: skip
    if table.primary_key:
        collection.share(arrangement_of(table, table.primary_key), User("primary key of", table.name), state.functions)
    for name, columns in table.keys.items():
        if columns != table.primary_key:
            collection.share(arrangement_of(table, columns), User("unique key of", f"{table.name}: {name}"),
                             state.functions)  # fmt: skip
    for key in table.foreign_keys:
        collection.share(arrangement_of(table, key.columns), User("foreign key of", f"{table.name}: {key.name}"),
                         state.functions)  # fmt: skip
    state.tables[table.name] = collection
    return collection


def enter_view(state: State, view: View, relation: Relation) -> dict[str, MaintainedView]:
    """Enter a materialized view of the catalog, and the nodes below it that the state does not have yet: dataflows and
    empty collections. No index is built. `relation`: what the view's text means now.

    Raises:
        StorageError: the view's text now has columns of other names than when it was created.
    """
    facts = Replayed(state, view.planned)  # they give the plan that ran when the warehouse was closed
    planned = plan(relation, facts, view.name)
    if [c.name for c in planned.columns] != [c.name for c in view.columns]:
        raise StorageError(
            f"another version of halfjoin made the materialized view {view.name}, with other columns",
            remedy="open the warehouse with that version, drop the view, and create it again with this version",
        )
    if [c.type for c in planned.columns] != [c.type for c in view.columns]:
        columns = tuple(ColumnModel(name=c.name, type=c.type, not_null=not c.nullable) for c in planned.columns)
        view = state.catalog.views[view.name] = view.model_copy(update={"columns": columns})
    entered = {node.output: new_node(state, node, 0) for node in planned.below if node.output not in state.maintained}
    entered[view.name] = empty_view(state, view, planned)
    state.maintained.update(entered)
    share_all(state, planned, view.name)
    return entered


def enter_index(state: State, index: Index) -> None:
    """Share the arrangement of an index that is in the catalog."""
    columns = state.catalog.columns(index.collection)
    assert columns is not None
    keys = bind_keys(parse_index(index.text).keys, columns, state.catalog, index.text, index.collection)
    arranged(state, index.name, index.collection, keys)


def empty_view(state: State, view: View, planned: ViewPlan) -> MaintainedView:
    """The view with empty collections, readable from where all its inputs are."""
    flow = flow_of(planned.output, state.functions, view.name)
    retain = state.retained(view)
    since = max([0, state.upper - max(retain, 1)] + [state.collection(name).since for name in planned.collections])
    known = {} if view.planned is None else view.planned.rows
    return MaintainedView(
        flow,
        Collection(view.name, flow.schema, retain, since),
        Collection(f"{view.name} errors", ERROR_SCHEMA, retain, since),
        plan=planned,
        limits={name: limit(known.get(name, 0)) for name in planned.collections},
    )


def new_node(state: State, node: Node, since: int) -> MaintainedView:
    """A node with an empty output; it keeps no history."""
    flow = flow_of(node, state.functions, "a node below a view")
    errors = Collection(f"{node.output} errors", ERROR_SCHEMA, 1, since)
    return MaintainedView(flow, Collection(node.output, flow.schema, 1, since), errors)


def share(state: State, planned: ViewPlan | Node, user: User, *, build: bool = True, fills: bool = True) -> None:
    """Share a plan's arrangements on the collections that exist. `build` builds their indexes now, so that no later
    batch waits for an index of a whole table. `fills`: the user reads history, not only what batches look up."""
    begins = MINIMUM if fills else state.upper
    for node in planned.nodes if isinstance(planned, ViewPlan) else (planned,):
        for key, wanted in wants(node, lasting=fills).items():
            if key.constant is None and (key.collection in state.tables or key.collection in state.maintained):
                collection = state.collection(key.collection)
                collection.share(key, user, state.functions, wanted)
                if build:
                    collection.build(key, wanted, begins)


def share_all(state: State, planned: ViewPlan, view: str) -> None:
    """Share the arrangements that an entered view and the nodes below it look up."""
    for node in planned.below:
        share(state, node, User("node", node.output), build=False, fills=False)
    share(state, planned.output, User("view", view), build=False, fills=False)
    state.keep_promises()


def arranged(state: State, index: str, name: str, keys: Sequence[Expr]) -> Collection:
    """Share the arrangement of an index, and return its collection."""
    collection = state.collection(name)
    collection.share(ArrangementKey(name, ordered(keys)), User("index", index), state.functions)
    return collection


def ordered(keys: Sequence[Expr]) -> tuple[Expr, ...]:
    """Keys in the order that arrangements use, whatever their order in the text."""
    return tuple(sorted(keys, key=render))

"""Fills a view anew whose meaning stays, although its plan is another one now: after ALTER TABLE."""

from __future__ import annotations

from halfjoin.catalog.models import ColumnModel, View
from halfjoin.engine.arrange.collection import Collection, User
from halfjoin.engine.batch.enter import empty_view, enter_index, share, share_all
from halfjoin.engine.batch.flows import alone
from halfjoin.engine.batch.runner import LOCAL
from halfjoin.engine.batch.state import MaintainedView, State
from halfjoin.engine.statements.definitions import remove_unused_nodes
from halfjoin.engine.statements.statistics import Statistics
from halfjoin.engine.storage.filling import fill_nodes, forget_past, take_in
from halfjoin.errors import Conflict
from halfjoin.planner.figures import Noted
from halfjoin.planner.plan import ViewPlan
from halfjoin.planner.plan_view import plan
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.parse.parse import parse_query


def refill(state: State, view: View) -> None:
    """Give a view its new text and plan, and fill it and its new nodes. Whatever reads the view goes on.

    Raises:
        Conflict: the view would have other columns.
    """
    facts = Noted(Statistics(state), aside=(view.name,))
    planned = plan(bind(parse_query(view.text), state.catalog, view.text), facts, view.name)
    columns = tuple(ColumnModel(name=c.name, type=c.type, not_null=not c.nullable) for c in planned.columns)
    if [(c.name, c.type) for c in columns] != [(c.name, c.type) for c in view.columns]:
        raise Conflict(f"the materialized view {view.name} would have other columns", name=view.name, code="2BP01",
                       remedy="drop it first")  # fmt: skip
    made = view.model_copy(update={"planned": facts.figures(state.upper)})  # its columns stay, for the views above
    user = User("new view", view.name)
    try:
        maintained, nodes = _filled(state, made, planned, user)
        there = state.maintained[view.name].contents
        for collection in state.collections():
            collection.release(User("view", view.name))
        _enter(state, made, maintained, nodes)
        share_all(state, planned, view.name)
        for other in list(state.views.values()):  # those above it look it up
            if other.plan is not None and view.name in other.plan.collections:
                share_all(state, other.plan, other.contents.name)
        for index in state.catalog.indexes.values():
            if index.collection == there.name:
                enter_index(state, index)
        remove_unused_nodes(state)
    finally:
        for collection in state.collections():
            collection.release(user)


def _filled(
    state: State, view: View, planned: ViewPlan, user: User
) -> tuple[MaintainedView, dict[str, MaintainedView]]:
    maintained = empty_view(state, view, planned)
    contents: Collection = maintained.contents
    share(state, planned, user)
    over, nodes = fill_nodes(state, planned, contents.since, LOCAL, None)
    share(over, planned, user)
    before_and_after = over.before_and_after({})
    for output, errors in LOCAL.fill(alone(maintained.dataflow), over, before_and_after, contents.since, view.name):
        take_in(state, "views", view.name, contents, output)
        take_in(state, "errors", view.name, maintained.errors, errors)
    return maintained, nodes


def _enter(state: State, view: View, maintained: MaintainedView, nodes: dict[str, MaintainedView]) -> None:
    """Enter the view in its place, and before it the nodes that are new."""
    new = {name: node for name, node in nodes.items() if name not in state.maintained}
    for node in new.values():
        forget_past(state, node)
    order = dict[str, MaintainedView]()
    for name, one in state.maintained.items():
        if name == view.name:
            order |= new
        order[name] = maintained if name == view.name else one
    state.maintained.clear()
    state.maintained.update(order)
    state.catalog.views[view.name] = view

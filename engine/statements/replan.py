"""Plans views anew: a new plan replaces the running one between two batches, in one entry of the journal.

A view's plan depends on figures that change (`planner.drift` tells when they have changed enough). The new plan's
arrangements are built beside those of the running plan. Then the view gets the new plan, and arrangements that nobody
uses are dropped. All of this is one definition (`commit`): it is prepared, kept and finished. Wherever it is
interrupted, the view has the old plan or the new one, and the journal has the figures of that plan.

Law. The answers do not change, and the collection of the view stays as it is, with its updates at open times.
For a join, any plan makes the same updates of the same batch. A result tuple has the maximum of its components' times
and the product of their diffs, in whatever order they were looked up. An error has the time and diff of its row; the
normal form of the SQL, not the plan, decides the columns that tell errors apart (`planner.identity`). So the old plan
has made the same updates, at closed and open times, as the new plan would have.

The wrong way, for nodes that wait until times close: such a plan has made nothing yet for open times, where another
plan has already made everything. Then the view's updates at or above `upper` must be replaced, in the same entry, by
what the new plan makes of its inputs. If they were kept, they would count twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sized
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TypeAlias

from halfjoin.engine.arrange.collection import User
from halfjoin.engine.batch.enter import share
from halfjoin.engine.batch.flows import flow_of
from halfjoin.engine.batch.runner import LOCAL
from halfjoin.engine.batch.state import MaintainedView, State
from halfjoin.engine.spark.runners import Runners
from halfjoin.engine.statements.statistics import Statistics
from halfjoin.errors import HalfjoinError, UnknownName, UnsupportedSQL
from halfjoin.nesting import bounded
from halfjoin.planner.drift import outgrown, raised, same_work
from halfjoin.planner.figures import Noted
from halfjoin.planner.plan import ViewPlan
from halfjoin.planner.plan_view import plan
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.parse.parse import parse_query

_MOST = 16  # views that are planned anew after one batch, so that it does not take long

# Carries out a change of definitions and keeps it, or does neither.
Keep: TypeAlias = Callable[[Callable[[], None]], None]


def reconsider(state: State, runners: Runners, changed: Mapping[str, Sized], keep: Keep) -> None:
    """After a batch, plan the views anew whose figures have moved too far; of many some, and the others after the next
    batches. `changed`: the updates of each collection that the batch has changed.

    A failure here is not a failure of the batch: the running plan goes on until the figures have moved as far again.
    After an interrupt the next batch tries again.
    """
    limited, room = state.wiring.limited, state.wiring.room
    full = []  # rows are counted only where the last count allows that there are too many by now
    for name, updates in changed.items():
        if name in limited:
            room[name] = left = room.get(name, 0) - len(updates)
            if left <= 0:
                full.append(name)
    if not full and not state.outgrown:
        return
    rows = {name: state.rows(name) for name in full}
    over = dict.fromkeys(view for name in rows for view in limited[name])
    state.outgrown.update(dict.fromkeys(name for name in over if outgrown(state.maintained[name].limits, rows)))
    for name in full:
        room[name] = min(state.maintained[view].limits[name] for view in limited[name]) - rows[name]
    some = [*islice(state.outgrown, _MOST)] if state.outgrown else []
    due = [name for name in some if name in state.maintained]
    if due:
        with suppress(HalfjoinError, MemoryError):
            keep(lambda: _plan_anew(state, runners, due))
        for name in due:
            view = state.maintained[name]
            view.limits = raised(view.limits, view.limits, state.rows)
    for name in some:
        del state.outgrown[name]


def check_refreshed(state: State, name: str) -> None:
    """REFRESH MATERIALIZED VIEW: the view is up to date, so this only checks its name.

    Raises:
        UnknownName: no materialized view has that name.
        UnsupportedSQL: the name is a table or a plain view.
    """
    if name in state.views:
        return
    if name in state.catalog.names():
        raise UnsupportedSQL(f"{name} is not a materialized view", code="0A000",
                             remedy="what is no materialized view needs no REFRESH")  # fmt: skip
    raise UnknownName("materialized view", name, state.views)


def refresh(state: State, runners: Runners, name: str) -> None:
    """REFRESH PLAN: plan a view anew. Note `upper` and the figures, even if the plan stays the same.

    Raises:
        UnknownName: no materialized view has that name.
        UnsupportedSQL: the name is a table or a plain view.
    """
    if name not in state.views:
        if name in state.catalog.tables:
            raise UnsupportedSQL(f"{name} is a table, which has no plan", remedy="name a materialized view")
        if name in state.catalog.views:
            raise UnsupportedSQL(f"{name} is a plain view, which is planned with each query that reads it",
                                 remedy="name a materialized view")  # fmt: skip
        raise UnknownName("materialized view", name, state.views)
    _plan_anew(state, runners, [name], note=True)


@bounded()
def _plan_anew(state: State, runners: Runners, names: Collection[str], *, note: bool = False) -> None:
    """Plan views anew, in their order. A view gets the new plan if that differs from the running one. With `note` the
    figures are noted even if it does not."""
    order = list(state.views)
    for position, name in enumerate(order):
        if name in names:
            view, running = state.catalog.views[name], state.views[name]
            facts = Noted(Statistics(state), view.planned, frozenset(order[position:]))
            planned = plan(bind(parse_query(view.text), state.catalog, view.text), facts, name)
            assert running.plan is not None  # every view has a plan
            differs = not same_work(planned, running.plan)
            if differs or note:
                state.catalog.views[name] = view.model_copy(update={"planned": facts.figures(state.upper)})
            if differs:
                _swap(state, runners, name, running, planned)


def _swap(state: State, runners: Runners, name: str, running: MaintainedView, planned: ViewPlan) -> None:
    """Give a view another plan. The new arrangements are built before the old ones are released."""
    new, user = User("new view", name), User("view", name)
    output = planned.output
    runner, _ = runners.choose(max(map(state.rows, planned.collections), default=0))
    try:
        share(state, output, new, build=runner is LOCAL, fills=False)
        limits = raised(running.limits, planned.collections, state.rows)
        flow = flow_of(output, state.functions, name)
        state.maintained[name] = replace(running, dataflow=flow, plan=planned, limits=limits)
        for collection in state.collections():
            collection.release(user)
        share(state, output, user, build=False, fills=False)
    finally:
        for collection in state.collections():
            collection.release(new)

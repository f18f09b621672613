"""Fill a new view, and the nodes below it, with their contents so far.

Fill law. A fill takes no history from a node. It evaluates the nodes below the view anew over the log, from the view's
`since` on. At `upper` the results equal the existing nodes, and are thrown away after the fill. The rows of new nodes
stay.

Wrong: to look up the rows of an existing node. Their times have moved to `upper`, so the view's past would depend on
which views existed before it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection as Members
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from halfjoin.engine.arrange.collection import Collection, User
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import loaded_runs
from halfjoin.engine.batch.enter import new_node, share
from halfjoin.engine.batch.flows import alone, is_passing
from halfjoin.engine.batch.looping import kept, loop_fill, without_state
from halfjoin.engine.batch.runner import LOCAL, Output, Runner
from halfjoin.engine.batch.state import MaintainedView, State
from halfjoin.engine.storage.parquet import write
from halfjoin.engine.storage.scratch import Scratch
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.system.counted import Counted
from halfjoin.engine.updates.updates import Updates
from halfjoin.errors import DataError
from halfjoin.planner.plan import ViewPlan

_log = logging.getLogger("halfjoin")


def fill_nodes(
    state: State, plan: ViewPlan, since: int, runner: Runner, staging: Path | None
) -> tuple[State, dict[str, MaintainedView]]:
    """A state to fill a view from, and the nodes below the view with their history from `since` on.

    Nodes that `state` already has do not change; the nodes returned in their place are for this fill only. Their files
    go to `staging`, None for a folder of their own.
    """
    over = replace(state, maintained=Counted(state.maintained))
    nodes: dict[str, MaintainedView] = {}
    scratch: Scratch | None = None
    for node in plan.below:
        name, made = node.output, new_node(state, node, since)
        lasting = name not in state.maintained
        if node.loop and not lasting and len(without_state(state, name)):
            raise DataError(f"a recursive query that {plan.output.output} shares has no rows now, since it went past a "
                            "bound", remedy="change the rows that it reads first")  # fmt: skip
        if not lasting and state.spill is not None and scratch is None:
            scratch = Scratch(staging)
        if node.loop:
            over.maintained.pop(name, None)
            nodes[name] = over.maintained[name] = made  # at its place: a loop runs its nodes in this order
            if node is [one for one in plan.below if one.loop == node.loop][-1]:
                found = loop_fill(over.loop(node.loop), over.before_and_after({}), over.upper, runner.steps(over),
                                  last=1 < over.upper <= since + 1)  # fmt: skip
                for one, (added, failed) in found.items():
                    whole = nodes[one]
                    take_in(state, "nodes", one, whole.contents, kept(over, one, added, over.upper), (), scratch)
                    take_in(state, "errors", one, whole.errors, failed, (), scratch)
            continue
        beside = [part for one in nodes.values() for part in (*one.contents.held, *one.errors.held)]
        for output, errors in runner.fill(alone(made.dataflow), over, over.before_and_after({}), since, name):
            take_in(state, "nodes", name, made.contents, output, beside, None if lasting else scratch)
            take_in(state, "errors", name, made.errors, errors, beside, None if lasting else scratch)
        nodes[name] = over.maintained[name] = made
    return over, nodes


def fill_missing(state: State) -> None:
    """When a warehouse is opened, fill what an older version of halfjoin did not have, or evaluated otherwise."""
    for name, view in state.views.items():
        empty, plan, since = unfilled(state), view.plan, view.contents.since
        assert plan is not None  # every view has a plan
        missing = [node.output for node in plan.below if node.output in empty]
        if not missing and name not in empty:
            continue
        over, made = fill_nodes(_without(state, missing), plan, since, LOCAL, None)
        if name in empty:
            _log.warning("another version of halfjoin evaluated the view %s otherwise: it is filled anew", name)
            share(over, plan, User("view", name))
            for output, errors in LOCAL.fill(alone(view.dataflow), over, over.before_and_after({}), since, name):
                take_in(state, "views", name, view.contents, output)
                take_in(state, "errors", name, view.errors, errors)
        for node in missing:
            there = state.maintained[node]
            there.contents.held, there.errors.held = made[node].contents.held, made[node].errors.held
            there.contents.since = there.errors.since = since
            forget_past(state, there)


def unfilled(state: State) -> list[str]:
    """The names of nodes and views that the warehouse does not keep yet."""
    return [name for name, one in state.maintained.items() if one.contents.stored is None and not one.contents.held]


def forget_past(state: State, node: MaintainedView) -> None:
    """Forget the past of a filled node. A fill that needs this past computes it anew."""
    node.contents.advance(state.upper)
    if is_passing(node.dataflow):
        pending = [piece for part in node.contents.held for piece in part.pieces(state.upper)]
        node.contents.held = tuple(loaded_runs(pending, state.upper))
    elif not node.contents.in_files:
        node.contents.compact(state.upper)


def _without(state: State, names: Members[str]) -> State:
    left = {name: one for name, one in state.maintained.items() if name not in names}
    return replace(state, maintained=Counted(left))


def take_in(
    state: State, kind: str, name: str, collection: Collection, made: Output, beside: Iterable[Part] = (),
    scratch: Scratch | None = None,
) -> None:  # fmt: skip
    """Add a part of a first fill to a collection: in memory, or in files if memory is short or it is in files already.

    `beside`: other parts that the same fill holds. `scratch`: the folder for files that are thrown away afterwards.
    """
    if not isinstance(made, Updates):
        collection.publish(made)
        return
    updates = made.not_before(collection.since)
    (run,) = loaded_runs([updates], state.upper)
    held = (part.row_bytes + part.index_bytes for part in (*collection.held, *beside, run))
    if state.spill is None or state.memory.recommends(sum(held)):
        collection.publish(run)
    elif len(updates):
        written = state.spill(kind, name, updates, ()) if scratch is None else _scratched(scratch, updates)
        collection.publish(written)


def _scratched(scratch: Scratch, updates: Updates, sort: Sequence[str] = ()) -> StoredRun:
    place, schema = scratch.fresh(), {column: array.type for column, array in updates.columns.items()}
    return StoredRun(place, tuple(write(place, updates, schema, sort)), schema)

"""When a table or view can be read: at a time in `[since, upper)` at which nothing that it reads has failed."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.batch.flows import alone
from halfjoin.engine.batch.looping import loop_fill
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.unreadable import in_words, reason, told, with_inputs
from halfjoin.engine.system.counted import Counted
from halfjoin.engine.updates.updates import Updates
from halfjoin.errors import InvalidTime
from halfjoin.planner.plan import Node


def closed(state: State) -> State:
    """The state to read: as long as no time is closed, the state without its rows.

    A read is as of a closed time, and open rows have later times. Before any time is closed, a read sees only what
    holds at every time: views over empty tables, and over constants, which come at time 0 and are taken as closed.
    """
    if state.upper > 0:
        return state
    upper = 1
    start = replace(state, tables=Counted({name: _emptied(table) for name, table in state.tables.items()}),
                    maintained=Counted())
    for name, view in state.maintained.items():
        made = replace(view, contents=_emptied(view.contents), errors=_emptied(view.errors), standing=None)
        start.maintained[name] = made
        loop, lookup = view.dataflow.plan.loop, start.before_and_after({})
        if not loop:
            parts = [(name, part) for part in alone(view.dataflow).fill(lookup, upper)]
        elif name == list(state.loop(loop))[-1]:
            parts = list(loop_fill(start.loop(loop), lookup, upper).items())
        else:
            parts = []
        for one, (output, errors) in parts:
            start.maintained[one].contents.publish(make_run(output, upper))
            start.maintained[one].errors.publish(make_run(errors, upper))
    return start


def _emptied(collection: Collection) -> Collection:
    return Collection(collection.name, collection.schema, collection.retain, arrangements=collection.shared())


def readable(state: State, names: Iterable[str], as_of: int | None) -> int:
    """The time to read at, checked: all the collections can be read there.

    Raises:
        InvalidTime, DataError: as `contents`.
    """
    # Before any time is closed a read sees only constants, which hold at every time.
    time = max(state.upper - 1, 0) if as_of is None else as_of
    names = list(names)
    for name in with_inputs(state, names):
        check_time(state, name, names, time, as_of)
        if name in state.maintained and (why := reason(state.maintained[name].errors.up_to(time))) is not None:
            raise told(state, name, why, time)
    return time


def check_time(state: State, name: str, asked: Container[str], time: int, as_of: int | None) -> None:
    """Check that one of the collections that a read of those `asked` for needs can be read at a time, but for its
    errors. `as_of`: what the user gave.

    Raises:
        InvalidTime: it cannot.
    """
    # A view below is asked only for its errors, which are kept as long as any view above can be read.
    since = state.collection(name).since if name in asked else state.maintained[name].errors.since
    if time < since or (as_of is not None and as_of >= state.upper):
        remedy = (
            "keep more history with Engine(retain=...) or WITH (RETAIN HISTORY FOR ...)"
            if time < since
            else "later times are not closed yet: apply a batch, or advance"
        )
        raise InvalidTime(
            f"cannot read {name} as of {time}: it can be read from since = {since} to below upper = {state.upper}",
            remedy=remedy, time=time, since=since, upper=state.upper, table=name,
        )  # fmt: skip


def raise_any(
    errors: Updates, name: str, time: int, nodes: Iterable[Node] = (), failing: Node | None = None
) -> None:  # fmt: skip
    """Raise the errors of a query at a time, if it has any. `nodes`: those that the errors may name; `failing`: whose
    errors they are.

    Raises:
        DataError: the first of them.
    """
    why = reason(errors)
    if why is not None:
        raise in_words(why, nodes, failing).with_(view=name, time=time)

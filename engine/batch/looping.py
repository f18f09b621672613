"""Takes a loop through a batch or a fill: what enters it, and what was there before.

A loop may go past a bound of rows or bytes, which is not a function of the contents. Then its state is thrown away: the
batch takes all its rows back, so views above it lose theirs, and leaves an error instead. The next batch that changes
what the loop reads fills it anew with what is there after the batch, and takes that error back. All of this is updates
like any others, so a warehouse that is opened again knows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import cast

import numpy as np

from halfjoin.engine.arrange.part import Part, present
from halfjoin.engine.arrange.run import Run, make_run
from halfjoin.engine.batch.flows import Inner, is_passing
from halfjoin.engine.batch.state import State, Versions
from halfjoin.engine.batch.unreadable import in_words
from halfjoin.engine.join.closing import Closing, RunsOf
from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.linear.failures import of_loop
from halfjoin.engine.loop.rounds import Made, Pass
from halfjoin.engine.loop.steps import HERE, Steps
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Updates, concat, constant, empty
from halfjoin.errors import DataError
from halfjoin.planner.plan import ROUND, Version

FIRST = 1  # the first time that a loop waits for: what constants make at times up to 0 is there when it is filled
_CANCEL = 8  # updates of which every eighth takes a row away are added up
_NOTHING = 0  # the code of the error of a loop without state


def loop_changes(
    state: State, name: str, lookup: Versions, steps: Steps = HERE, spent: dict[str, float] | None = None
) -> dict[str, Made]:
    """The output and error updates of each node of a loop for what a batch closes. `spent`: as of `Pass`."""
    closing = lookup.closing

    @cache
    def base(collection: str) -> Sequence[Part]:  # a loop takes what closes, no more
        return _closed(lookup(collection, Version.BEFORE), first if collection in flows else closing.before)

    def entering(collection: str) -> Sequence[Part]:
        updates = closing.updates(collection)
        return [make_run(updates, closing.after)] if len(updates) else []

    flows = state.loop(name)
    first = max(closing.before, FIRST)
    waited = {one: updates for one in flows if len(updates := state.collection(one).closing(first, closing.after))}
    thrown = {one: without_state(state, one) for one in flows}
    if any(map(len, thrown.values())):
        return _anew(flows, thrown, lookup, steps, spent)
    try:
        return Pass(flows, base, entering, closing, steps, waited=waited, spent=spent).run()
    except DataError as problem:
        times = [part.earliest for one in _outer(flows) for part in entering(one)]
        start = min([*times, *(int(updates.time.min()) for updates in waited.values())])
        return {one: _thrown_away(state, one, problem, start) for one in flows}


def _anew(
    flows: Mapping[str, Inner], thrown: Mapping[str, Updates], lookup: Versions, steps: Steps,
    spent: dict[str, float] | None,
) -> dict[str, Made]:
    """What a loop without state makes of all that is there at the last closing time; nothing if that is too much."""
    closing = lookup.closing
    nothing = {one: (empty(flow.schema), empty(ERROR_SCHEMA)) for one, flow in flows.items()}
    if not any(len(closing.updates(one)) for one in _outer(flows)):
        return nothing
    try:
        made = loop_fill(flows, lookup, closing.after, steps, last=True, spent=spent)
    except DataError:
        return nothing
    time = closing.after - 1
    back = {one: Updates(errors.columns, constant(time, len(errors)), -errors.diff) for one, errors in thrown.items()}
    return {one: (output, concat([errors, back[one]])) for one, (output, errors) in made.items()}


def _outer(flows: Mapping[str, Inner]) -> set[str]:
    """The collections that enter a loop."""
    return {one for flow in flows.values() for one in flow.plan.collections} - set(flows)


def without_state(state: State, name: str) -> Updates:
    """The error of a node whose loop has no state at the last closed time; no updates if it has."""
    if not len(state.maintained[name].errors):
        return empty(ERROR_SCHEMA)
    errors = consolidate(state.maintained[name].errors.up_to(state.upper - 1), by_time=False)
    whole = errors.columns["row"].to_numpy(zero_copy_only=False) == ""
    return errors.filter(whole & (errors.columns["code"].to_numpy() == _NOTHING))


def _thrown_away(state: State, name: str, problem: DataError, time: int) -> Made:
    """The updates that take back the rows and errors of a node from a time on, and leave one error."""
    node = state.maintained[name]
    there = [_at(one.up_to(state.upper - 1), time) for one in (node.contents, node.errors)]
    rows, errors = (Updates(part.columns, part.time, -part.diff) for part in there)
    if is_passing(node.dataflow):
        rows = empty(node.contents.schema)
    waiting = (one.changes(state.upper, MAXIMUM) for one in (node.contents, node.errors))
    later = [Updates(part.columns, part.time, -part.diff) for part in waiting]
    return concat([rows, later[0]]), concat([errors, later[1], of_loop(str(problem), time)])


def kept(state: State, name: str, made: Updates, upper: int) -> Updates:
    """What the collection of a loop's node keeps of what the node makes: of one that passes it on, what is open, and
    no longer what closes now."""
    node = state.maintained[name]
    if not is_passing(node.dataflow):
        return made
    gone = node.contents.closing(state.upper, upper)
    return concat([Updates(gone.columns, gone.time, -gone.diff), made.filter(made.time >= max(upper, FIRST))])


def loop_fill(
    flows: Mapping[str, Inner], lookup: RunsOf, upper: int, steps: Steps = HERE, *, last: bool = False,
    spent: dict[str, float] | None = None,
) -> dict[str, Made]:
    """The output and error updates of each node of a loop for the whole history below `upper`. With `last`, they are
    what is there at the last time below it. `spent`: as of `Pass`."""

    def entering(collection: str) -> Sequence[Part]:
        parts = _closed(lookup(collection, Version.AFTER), upper)
        if not last:
            return parts
        if (runs := _at_once(parts)) is not None:
            return runs
        there = list(present(parts, upper))
        return [make_run(_netted(concat(there)), upper)] if there else []

    def updates(collection: str) -> Updates:
        return concat([piece for part in entering(collection) for piece in part.pieces()] or [empty({})])

    closing = Closing(MINIMUM, MINIMUM, max(upper, FIRST), updates, lambda _: False)
    try:
        found = Pass(flows, lambda _: (), entering, closing, steps, first=True, spent=spent).run()
    except DataError as problem:
        raise in_words(problem, [flow.plan for flow in flows.values()]) from None
    if not last:
        return found
    return {name: (_moved(output, upper - 1), _moved(errors, upper - 1)) for name, (output, errors) in found.items()}


def per_round(made: Updates) -> tuple[int, ...]:
    """How many updates each round of the outermost loop has made, up to the last one that made any."""
    return tuple(np.bincount(made.columns[ROUND].to_numpy()).tolist()) if len(made) else ()


def _at_once(parts: Sequence[Part]) -> Sequence[Part] | None:
    """The updates of parts as if they had come at one time, with their indexes; None: so many of them cancel that they
    are added up, or some are in files. Nodes add equal updates of one time up, so it need not be done before."""
    if not all(part.in_memory for part in parts):
        return None
    runs, gone = cast("Sequence[Run]", parts), 0
    for run in runs:
        diff = run.updates.diff
        one = diff[:1] if diff.strides == (0,) else diff  # of a constant, which stands for all
        gone += int(np.count_nonzero(one < 0)) * (len(diff) // max(1, len(one)))
    return None if gone * _CANCEL > sum(map(len, runs)) else [run.at_once() for run in runs]


def _netted(updates: Updates) -> Updates:
    return consolidate(Updates(updates.columns, constant(MINIMUM, len(updates)), updates.diff))


def _moved(consolidated: Updates, time: int) -> Updates:
    """As `_at`, for consolidated updates. Those of one time have no equal rows."""
    if len(consolidated) and (consolidated.time != consolidated.time[0]).any():
        return _at(consolidated, time)
    return Updates(consolidated.columns, np.maximum(consolidated.time, time), consolidated.diff)


def _at(updates: Updates, time: int) -> Updates:
    """The updates, those before a time at that time."""
    return consolidate(Updates(updates.columns, np.maximum(updates.time, time), updates.diff))


def _closed(parts: Sequence[Part], upper: int) -> Sequence[Part]:
    """The parts without times that have not closed."""
    found = list[Part]()
    for part in parts if all(part.latest < upper for part in parts) else [part.alone() for part in parts]:
        if part.latest < upper:
            found.append(part)
        else:
            found += [make_run(piece, upper) for piece in part.pieces(high=upper)]
    return found

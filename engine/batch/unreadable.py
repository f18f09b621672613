"""The times at which a view cannot be read, because a row of it, or of a view that it reads, fails then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from halfjoin.engine.arrange.part import Part
from halfjoin.engine.updates.consolidate import consolidate, groups
from halfjoin.engine.updates.updates import Ints, Mask, Updates, bits, concat
from halfjoin.errors import DataError
from halfjoin.planner.names import with_columns, with_names
from halfjoin.planner.plan import Node

if TYPE_CHECKING:
    from halfjoin.engine.batch.state import State


class Failure(NamedTuple):
    """The first time in a range at which a view cannot be read, and the error that a read raises then."""

    time: int
    error: DataError


class Standing(NamedTuple):
    """Why a view's own errors prevent a read as of `upper - 1`; None if it has no errors then."""

    upper: int
    reason: DataError | None


def with_inputs(state: State, names: Iterable[str]) -> list[str]:
    """The collections, and the views and nodes below them, whose errors they share."""
    found: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            if name in state.maintained:
                inner = state.maintained[name].dataflow.plan.collections
                waiting += [one for one in inner if one in state.maintained]
    return list(found)


def title(state: State, name: str) -> str:
    """The name of a view, or a description of a node, for people."""
    return name if state.maintained[name].plan is not None else f"a part of {', '.join(state.node_users(name))}"


def told(state: State, name: str, why: DataError, time: int) -> DataError:
    """An error of a view or node at a time, in words of the user's: recursive queries have their names."""
    node, own = state.maintained[name].dataflow.plan, state.maintained[name].plan
    nodes = [state.maintained[one].dataflow.plan for one in (name, *node.collections) if one in state.maintained]
    nodes += [] if own is None else own.below  # with the names of this view, if it shares them
    return in_words(why, nodes, node).with_(view=title(state, name), time=time)


def in_words(why: DataError, nodes: Iterable[Node], failing: Node | None = None) -> DataError:
    """An error with the user's names of recursive queries, and of what the failing node reads."""
    nodes = list(nodes)

    def words(text: str) -> str:
        text = with_names(text, nodes)
        return text if failing is None else with_columns(text, failing, nodes)

    return why.with_(reason=words(why.reason), row=why.row and words(why.row))


def reason(errors: Updates) -> DataError | None:
    """The error that errors amount to, given all their updates up to a time; None if they cancel."""
    try:
        found = consolidate(errors, by_time=False)  # the error of a row with a negative count has a negative count too
    except DataError as problem:
        return problem.with_()  # without its traceback, which would hold on to the rows
    if not len(found):
        return None
    text, row = found.columns["error"][0].as_py(), found.columns["row"][0].as_py()
    return DataError(text, row=row or None, more=len(found) - 1)


def failing(state: State, name: str) -> int:
    """How many rows of a view or node fail as of `upper - 1`, with those of no view below."""
    view = state.maintained[name]
    if not len(view.errors):
        return 0
    known = view.standing
    why = reason(view.errors.up_to(state.upper - 1)) if known is None or known.upper != state.upper else known.reason
    return 0 if why is None else 1 + why.more


def first_failure(state: State, name: str, low: int, high: int) -> Failure | None:
    """A view's first failure in the closed times `[low, high)`."""
    views = [one for one in with_inputs(state, [name]) if one in state.maintained]
    found = (_own(state, one, low, high)[0] for one in views if len(state.maintained[one].errors))
    return _first(one for one in found if one is not None) if low < high else None


def closing(state: State, upper: int, errors: Mapping[str, Part]) -> tuple[dict[str, Failure], dict[str, Standing]]:
    """Each view's first failure in the times that a batch closes, and each view's standing afterwards.

    `errors` are the errors staged for the batch. A view without errors costs nothing; one whose errors do not change
    costs almost nothing.
    """
    failures, standing, low = dict[str, Failure](), dict[str, Standing](), state.upper
    if not errors and not any(view.errors.held or view.errors.cold for view in state.maintained.values()):
        return failures, standing
    for name, view in state.maintained.items():
        own = None
        if upper > low and (len(view.errors) or name in errors):
            known = view.standing
            if known is None or known.upper != low or name in errors or len(view.errors.closing(low, upper)):
                own, why = _own(state, name, low, upper, errors.get(name))
            else:
                why = known.reason
                own = None if why is None else Failure(low, told(state, name, why, low))
            standing[name] = Standing(upper, why)
        if own is None and not failures:
            continue
        below = (failures.get(inner) for inner in view.dataflow.plan.collections)
        if (first := _first(one for one in (own, *below) if one is not None)) is not None:
            failures[name] = first
    return failures, standing


def _first(failures: Iterable[Failure]) -> Failure | None:
    """The failure with the least time; ties are broken by the error's text, so the answer is always the same."""
    return min(failures, key=lambda one: (one.time, str(one.error)), default=None)


def _own(
    state: State, name: str, low: int, high: int, staged: Part | None = None
) -> tuple[Failure | None, DataError | None]:
    """The first failure in `[low, high)` from a view's own errors, and why it cannot be read as of `high - 1`."""
    errors = state.maintained[name].errors
    runs = [*errors.runs, *([] if staged is None else [staged])]
    since_low = [piece for run in runs for piece in run.pieces(low, high)]
    every = concat([errors.up_to(low - 1), *since_low]).not_before(low)
    if not len(every):
        return None, None
    times, failing = _steps(every)
    if not failing.any():
        return None, None
    first = int(times[failing][0])
    why = reason(every.filter(every.time <= first)) or DataError("a row of it fails")
    return Failure(first, told(state, name, why, first)), reason(every) if failing[-1] else None


def _steps(errors: Updates) -> tuple[Ints, Mask]:
    """The times of the updates, and whether any error exists from each time to the next."""
    numbers = groups(list(errors.columns.values()), len(errors))
    order = np.lexsort((errors.time, numbers))
    number, time, diff = numbers[order], errors.time[order], errors.diff[order]
    exact = diff.astype(object) if bits(diff) + len(diff).bit_length() > 63 else diff
    running = np.cumsum(exact)
    fresh = np.concatenate([[True], number[1:] != number[:-1]])
    begins = np.flatnonzero(fresh)
    base = np.concatenate([[0], running[begins[1:] - 1]])
    there: Mask = (running - np.repeat(base, np.diff(np.append(begins, len(number))))) != 0
    last = np.append(fresh[1:] | (time[1:] != time[:-1]), True)  # updates of one time take effect together
    number, time, there = number[last], time[last], there[last]
    before = np.concatenate([[False], there[:-1] & (number[1:] == number[:-1])])
    times, position = np.unique(time, return_inverse=True)
    count = np.zeros(len(times), np.int64)
    np.add.at(count, position, there.astype(np.int64) - before)
    return times, np.cumsum(count) > 0

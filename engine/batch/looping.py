"""Takes a loop through a batch or a fill: what enters it, and what was there before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from halfjoin.engine.arrange.run import Part, make_run
from halfjoin.engine.batch.flows import Inner
from halfjoin.engine.batch.state import State, Versions
from halfjoin.engine.join.dataflow import Closing, RunsOf
from halfjoin.engine.linear.failures import of_view
from halfjoin.engine.loop.rounds import Made, Pass
from halfjoin.engine.updates.updates import MINIMUM, Updates, concat, empty
from halfjoin.errors import DataError
from halfjoin.planner.plan import Version


def loop_changes(state: State, name: str, lookup: Versions) -> dict[str, Made]:
    """The output and error updates of each node of a loop for what a batch closes."""
    closing = lookup.closing

    def base(collection: str) -> Sequence[Part]:
        found = lookup(collection, Version.BEFORE)
        return found if collection in flows else _closed(found, closing.before)  # a loop takes what closes, no more

    def entering(collection: str) -> Sequence[Part]:
        updates = closing.updates(collection)
        return [make_run(updates, closing.after)] if len(updates) else []

    flows = state.loop(name)
    try:
        return Pass(flows, base, entering, closing).run()
    except DataError as problem:  # the loop stays as it was: its views are unknown
        return {one: (empty(flow.schema), of_view(str(problem), closing.before)) for one, flow in flows.items()}


def loop_fill(flows: Mapping[str, Inner], lookup: RunsOf, upper: int) -> dict[str, Made]:
    """The output and error updates of each node of a loop for the whole history below `upper`."""

    def entering(collection: str) -> Sequence[Part]:
        return _closed(lookup(collection, Version.AFTER), upper)

    def updates(collection: str) -> Updates:
        return concat([piece for part in entering(collection) for piece in part.pieces()] or [empty({})])

    closing = Closing(MINIMUM, MINIMUM, upper, updates, lambda _: False)
    return Pass(flows, lambda _: (), entering, closing, first=True).run()


def _closed(parts: Sequence[Part], upper: int) -> Sequence[Part]:
    """The parts without times that have not closed."""
    found = list[Part]()
    for part in parts:
        if part.latest < upper:
            found.append(part)
        else:
            found += [make_run(piece, upper) for piece in part.pieces(high=upper)]
    return found

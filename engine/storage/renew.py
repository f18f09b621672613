"""Compute the errors of an older warehouse anew. They have an older form, in which the newer one cannot cancel them."""

from __future__ import annotations

import logging
from dataclasses import replace

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.batch.flows import alone
from halfjoin.engine.batch.runner import LOCAL
from halfjoin.engine.batch.state import State
from halfjoin.engine.storage.filling import fill_nodes
from halfjoin.errors import HalfjoinError

_log = logging.getLogger("halfjoin")


def make_errors_anew(state: State) -> None:
    """Compute the errors of all views anew from their inputs' history. Errors in an older form would stay when their
    rows go."""
    for name, view in list(state.views.items()):
        if not len(view.errors):
            continue
        assert view.plan is not None  # every view has a plan
        old, inputs = view.errors, [state.collection(name) for name in view.plan.collections]
        since = max([old.since, *(collection.since for collection in inputs)])
        made = Collection(old.name, old.schema, old.retain, since)
        try:
            over, _ = fill_nodes(state, view.plan, since, LOCAL, None)
            for _, errors in alone(view.dataflow).fill(over.before_and_after({}), state.upper):
                made.publish(make_run(errors.not_before(since), state.upper))
        except HalfjoinError as problem:  # for example, a user's function is missing
            _log.warning("%s may stay when the failing rows are gone; create the view again: %s", old.name, problem)
            continue
        state.maintained[name] = replace(view, errors=made, standing=None)

"""From a kept catalog to a state: collections that load when first needed, views planned again from their text."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from halfjoin.catalog.models import Document
from halfjoin.engine.arrange.collection import Cold, Collection
from halfjoin.engine.arrange.memory import Memory
from halfjoin.engine.arrange.run import Part, make_run
from halfjoin.engine.batch.enter import enter_index, enter_table, enter_view
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.unreadable import with_inputs
from halfjoin.engine.storage.journal import Kept
from halfjoin.errors import HalfjoinError

_log = logging.getLogger("halfjoin")

# A kept collection's updates, all that there are now, by its id; and what is closed.
Fetch = Callable[[int, Collection, int], Sequence[Part]]


@dataclass(frozen=True, slots=True)
class OnDisk:
    """Where a collection is kept."""

    id: int
    collection: Collection
    fetch: Fetch
    upper: Callable[[], int]

    def load(self) -> Sequence[Part]:
        """All the updates, as of now."""
        return self.fetch(self.id, self.collection, self.upper())


def restore(
    document: Document, kept: Mapping[tuple[str, str], Kept], upper: int, retain: int, memory: Memory, fetch: Fetch
) -> tuple[State, dict[int, Collection]]:
    """The state of a warehouse, and its collections by their ids; nothing is loaded.

    Raises:
        StorageError: a view means something else to this version of halfjoin.
    """
    state = State(retain, upper=upper, memory=memory)
    catalog, by_id = state.catalog, dict[int, Collection]()
    catalog.functions.update(document.functions)

    def attach(kind: str, collection: Collection, name: str) -> None:
        found = kept[kind, name]
        collection.since = max(found.since, upper - max(collection.retain, 1))
        by_id[found.id] = collection
        collection.stored = OnDisk(found.id, collection, fetch, lambda: state.upper)
        if found.rows:
            collection.cold = Cold(found.rows, found.latest)

    def enter_indexes(name: str) -> None:
        for index in document.indexes:
            if index.collection == name:
                catalog.add(index)
                enter_index(state, index)

    for table in document.tables:
        catalog.add(table)
        attach("tables", enter_table(state, table), table.name)
        enter_indexes(table.name)
    for view in document.views:
        catalog.add(view)
        if view.materialized:
            maintained = enter_view(state, view)
            attach("views", maintained.contents, view.name)
            attach("errors", maintained.errors, view.name)
            enter_indexes(view.name)
    state.keep_promises()
    for name, maintained in state.views.items():
        errors = maintained.errors
        errors.since = max(kept["errors", name].since, upper - max(errors.retain, 1))
    for name, maintained in state.views.items():
        contents = maintained.contents
        contents.since = max([contents.since, *(state.views[one].errors.since for one in with_inputs(state, [name]))])
    for sink in document.sinks:
        catalog.add(sink)
    catalog.former_sinks = document.former_sinks
    return state, by_id


def make_errors_anew(state: State) -> None:
    """The errors of all views, from their inputs' history: for a warehouse whose errors are told apart in another way,
    and so would stay when their rows go."""
    for name, view in list(state.views.items()):
        if not len(view.errors):
            continue
        old, inputs = view.errors, [state.collection(name) for name in view.dataflow.plan.collections]
        since = max([old.since, *(collection.since for collection in inputs)])
        made = Collection(old.name, old.schema, old.retain, since)
        try:
            for _, errors in view.dataflow.fill(state.before_and_after({})):
                made.publish(make_run(errors.not_before(since), state.upper))
        except HalfjoinError as problem:  # a function of the user's is not there, say
            _log.warning("%s may stay when the failing rows are gone; create the view again: %s", old.name, problem)
            continue
        state.views[name] = replace(view, errors=made, standing=None)

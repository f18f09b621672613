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
from halfjoin.engine.batch.runner import LOCAL
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.unreadable import with_inputs
from halfjoin.engine.storage.filling import fill_nodes
from halfjoin.engine.storage.journal import NODES, Kept
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
        found = kept.get((kind, name))
        if found is None and kind == NODES:
            return  # an older version planned the views in another way: the node is still to be filled
        found = kept[kind, name] if found is None else found
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
            entered = enter_view(state, view)
            for name, maintained in entered.items():
                attach(NODES if maintained.plan is None else "views", maintained.contents, name)
                if maintained.contents.stored is not None:
                    attach("errors", maintained.errors, name)
            enter_indexes(view.name)
    state.keep_promises()
    for name, maintained in state.maintained.items():
        errors = maintained.errors
        if errors.stored is not None:
            errors.since = max(kept["errors", name].since, upper - max(errors.retain, 1))
    for name, maintained in state.maintained.items():
        contents, inputs = maintained.contents, with_inputs(state, [name])
        contents.since = max([contents.since, *(state.maintained[one].errors.since for one in inputs)])
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
        assert view.plan is not None  # as of every view
        old, inputs = view.errors, [state.collection(name) for name in view.plan.collections]
        since = max([old.since, *(collection.since for collection in inputs)])
        made = Collection(old.name, old.schema, old.retain, since)
        try:
            over, _ = fill_nodes(state, view.plan, since, LOCAL, None)
            for _, errors in view.dataflow.fill(over.before_and_after({}), state.upper):
                made.publish(make_run(errors.not_before(since), state.upper))
        except HalfjoinError as problem:  # a function of the user's is not there, say
            _log.warning("%s may stay when the failing rows are gone; create the view again: %s", old.name, problem)
            continue
        state.maintained[name] = replace(view, errors=made, standing=None)

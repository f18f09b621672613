"""Make a state from a kept catalog: collections load when first needed, views are planned again from their text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from halfjoin.catalog.models import Document
from halfjoin.engine.arrange.collection import Cold, Collection
from halfjoin.engine.arrange.run import Part
from halfjoin.engine.batch.enter import enter_index, enter_table, enter_view
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.unreadable import with_inputs
from halfjoin.engine.storage.journal import NODES, Kept

# All updates of a kept collection as of now. Arguments: its id, the collection, `upper`.
Fetch = Callable[[int, Collection, int], Sequence[Part]]


@dataclass(frozen=True, slots=True)
class OnDisk:
    """Loads a kept collection from disk."""

    id: int
    collection: Collection
    fetch: Fetch
    upper: Callable[[], int]

    def load(self) -> Sequence[Part]:
        """All its updates as of now."""
        return self.fetch(self.id, self.collection, self.upper())


def restore(
    state: State, document: Document, kept: Mapping[tuple[str, str], Kept], fetch: Fetch
) -> dict[int, Collection]:
    """Enter the catalog into an empty state. Returns the collections by their ids. Loads no rows.

    Raises:
        StorageError: a view means something else to this version of halfjoin.
    """
    catalog, by_id, upper = state.catalog, dict[int, Collection](), state.upper
    catalog.functions.update(document.functions)
    catalog.aggregates.update(document.aggregates)
    catalog.reductions.update(document.reductions)
    catalog.incarnations.update(document.incarnations)
    catalog.nodes.update(document.nodes)
    catalog.schemas, catalog.comments = document.schemas, dict(document.comments)
    catalog.enums.update({one.named: one for one in document.enums})
    catalog.domains.update({one.name: one for one in document.domains})
    catalog.sequences.update({one.name: one for one in document.sequences})

    def attach(kind: str, collection: Collection, name: str) -> None:
        found = kept.get((kind, name))
        if found is None and kind == NODES:
            return  # an older version planned the views differently: the node must still be filled
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
    return by_id

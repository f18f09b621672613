"""Make a state from a kept catalog: collections load when first needed, views are planned again from their text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import Document, View
from halfjoin.engine.arrange.collection import Cold, Collection, Loaded
from halfjoin.engine.arrange.coming import Coming
from halfjoin.engine.batch.enter import enter_index, enter_table, enter_view
from halfjoin.engine.batch.state import State
from halfjoin.engine.batch.unreadable import with_inputs
from halfjoin.engine.storage.journal import NODES, Kept
from halfjoin.errors import HalfjoinError, StorageError, UnknownName
from halfjoin.nesting import bounded
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.bind.meaning import differs, reads_otherwise, without_schemas
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.relation import Scan, parts_inside
from halfjoin.version import MEANING

# All updates of a kept collection as of now. Arguments: its id, the collection, `upper`, and those of `Stored.load`.
Fetch = Callable[[int, Collection, int, bool, bool], Loaded]
Bring = Callable[[Coming, int], bool]  # `Stored.bring`; the second argument is `upper`


@dataclass(frozen=True, slots=True)
class OnDisk:
    """Loads a kept collection from disk."""

    id: int
    collection: Collection
    fetch: Fetch
    upper: Callable[[], int]
    bring_behind: Bring

    def load(self, *, leave: bool = False, wait: bool = True) -> Loaded:
        """All its updates as of now."""
        return self.fetch(self.id, self.collection, self.upper(), leave, wait)

    def bring(self, coming: Coming) -> bool:
        """Load parts behind the batches."""
        return self.bring_behind(coming, self.upper())


@bounded()
def restore(
    state: State, document: Document, kept: Mapping[tuple[str, str], Kept], waiting: Mapping[int, Cold], fetch: Fetch,
    bring: Bring,
) -> dict[int, Collection]:
    """Enter the catalog into an empty state. Returns the collections by their ids. Loads no rows.

    Raises:
        StorageError: a view means something else to this version of halfjoin, and cannot be filled anew.
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
        collection.stored = OnDisk(found.id, collection, fetch, lambda: state.upper, bring)
        collection.cold = found.cold(waiting.get(found.id))

    def enter_indexes(name: str) -> None:
        for index in document.indexes:
            if index.collection == name:
                catalog.add(index)
                enter_index(state, index)

    for table in document.tables:
        catalog.add(table)
        attach("tables", enter_table(state, table), table.name)
        enter_indexes(table.name)
    anew = set[str]()  # views that an earlier version evaluated otherwise: they stay empty until they are filled
    for view in document.views:
        if document.meaning < MEANING:
            view = _bound_before(view, catalog)
        catalog.add(view)
        if view.materialized:
            query = parse_query(view.text)
            other = reads_otherwise(query, catalog, view.text, document.meaning)
            relation = bind(query, catalog, view.text)
            reads = {part.collection for part in parts_inside(relation) if isinstance(part, Scan)}
            entered = enter_view(state, view, relation)
            if reads & anew or other or differs(relation, document.meaning) or catalog.views[view.name] != view:
                anew.add(view.name)
                _check_sinks(view, document)
            for name, maintained in entered.items():
                if view.name not in anew:
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
    for source in document.sources:
        catalog.add(source)
    catalog.former_sinks = document.former_sinks
    return by_id


def _bound_before(view: View, catalog: Catalog) -> View:
    """A view of an older version, without the schemas of its columns if one of them is that of no table: the version
    did not look at them."""
    if without_schemas(view.text) == view.text:
        return view
    try:
        bind(parse_query(view.text), catalog, view.text)
    except UnknownName:
        plain = {"text": without_schemas(view.text), "base": view.base and without_schemas(view.base)}
        return view.model_copy(update=plain)
    except HalfjoinError:  # a plain view may have what no kept one may
        pass
    return view


def _check_sinks(view: View, document: Document) -> None:
    sinks = [sink.name for sink in document.sinks if sink.collection == view.name]
    if sinks:
        raise StorageError(
            f"another version of halfjoin evaluated the materialized view {view.name} otherwise, and the sink "
            f"{sinks[0]} has its rows",
            remedy="open the warehouse with that version, drop the sink, and create it again with this version",
        )

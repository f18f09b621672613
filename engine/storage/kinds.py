"""List the collections of a state that are kept, by kind and name as in the folders, and what is staged for them."""

from __future__ import annotations

from collections.abc import Iterator

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.batch.stage import Staged
from halfjoin.engine.batch.state import State
from halfjoin.engine.storage.journal import NODES
from halfjoin.sql.expr import Column


def parts(state: State, staged: Staged) -> Iterator[tuple[Part, str, str]]:
    """The staged parts, with the kind and the name of their collection."""
    for name, part in staged.runs.items():
        yield part, kind_of(state, name), name
    for name, part in staged.errors.items():
        yield part, "errors", name


def kind_of(state: State, name: str) -> str:
    """The kind of collection that holds a table's, a view's or a node's contents."""
    if name in state.tables:
        return "tables"
    return NODES if state.maintained[name].plan is None else "views"


def collection_of(state: State, kind: str, name: str) -> Collection:
    """The collection of that kind and name."""
    return state.maintained[name].errors if kind == "errors" else state.collection(name)


def collections(state: State) -> list[tuple[str, str, Collection]]:
    """The kind, name and collection of everything that is kept."""
    found = [("tables", name, collection) for name, collection in state.tables.items()]
    for name, view in state.maintained.items():
        found += [(kind_of(state, name), name, view.contents), ("errors", name, view.errors)]
    return found


def sort_columns(collection: Collection) -> tuple[str, ...]:
    """The columns that sort the files: those of the primary key as declared, else the key of the first arrangement
    whose key consists of columns."""
    if collection.order:
        return collection.order
    for key in collection.arrangements:
        names = tuple(expr.name for expr in key.keys if isinstance(expr, Column))
        if key.through is None and names and len(names) == len(key.keys):
            return names
    return ()

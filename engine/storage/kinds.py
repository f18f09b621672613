"""What is kept of a state: its collections by kind and name, as folders have them, and what is staged for them."""

from __future__ import annotations

from collections.abc import Iterator

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.run import Part
from halfjoin.engine.batch.stage import Staged
from halfjoin.engine.batch.state import State
from halfjoin.engine.storage.journal import NODES
from halfjoin.sql.expr import Column


def parts(state: State, staged: Staged) -> Iterator[tuple[Part, str, str]]:
    """What is staged, with the kind and the name of its collection."""
    for name, part in staged.runs.items():
        yield part, kind_of(state, name), name
    for name, part in staged.errors.items():
        yield part, "errors", name


def kind_of(state: State, name: str) -> str:
    """The kind of a table's, view's or node's contents."""
    if name in state.tables:
        return "tables"
    return NODES if state.maintained[name].plan is None else "views"


def collection_of(state: State, kind: str, name: str) -> Collection:
    """The collection of that kind and name."""
    return state.maintained[name].errors if kind == "errors" else state.collection(name)


def collections(state: State) -> list[tuple[str, str, Collection]]:
    """Kind, name and collection of everything that is kept."""
    found = [("tables", name, collection) for name, collection in state.tables.items()]
    for name, view in state.maintained.items():
        found += [(kind_of(state, name), name, view.contents), ("errors", name, view.errors)]
    return found


def sort_columns(collection: Collection) -> tuple[str, ...]:
    """The columns that files are sorted by: those of the primary key as declared, else of the first arrangement that is
    on columns."""
    if collection.order:
        return collection.order
    for key in collection.arrangements:
        names = tuple(expr.name for expr in key.keys if isinstance(expr, Column))
        if key.through is None and names and len(names) == len(key.keys):
            return names
    return ()

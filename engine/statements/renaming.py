"""RENAME of tables and views."""

from __future__ import annotations

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import Table, View
from halfjoin.engine.batch.state import State
from halfjoin.engine.spark.runners import Runners
from halfjoin.engine.statements.definitions import create_view, drop_view
from halfjoin.engine.statements.reshaping import put
from halfjoin.errors import Conflict
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.statements import CreateView, Rename


def rename(state: State, runners: Runners, statement: Rename) -> None:
    """Carry out RENAME TO of a table or view. Foreign keys follow.

    Raises:
        UnknownName: nothing has the name. Conflict: a view, an index or a sink reads it, or the new name is taken.
    """
    catalog = state.catalog
    if statement.if_exists and statement.name not in catalog.names():
        return
    kind = statement.kind if statement.name not in catalog.views else _kind(catalog.views[statement.name])
    found = catalog.find(kind if statement.kind != "materialized view" else statement.kind, statement.name)
    refuse_readers(catalog, statement.name)
    if statement.to in catalog.names():
        raise Conflict(f"{statement.to} exists already", remedy="choose another name", name=statement.to, code="42P07")
    if isinstance(found, View):
        view = CreateView(statement.to, parse_query(found.text), found.text, (), found.materialized, found.retain)
        create_view(state, runners, view, found.text)
        drop_view(state, found)
        return
    assert isinstance(found, Table)
    keys = tuple(one.model_copy(update={"table": statement.to}) if one.table == found.name else one
                 for one in found.foreign_keys)  # fmt: skip
    named = found.key_name or (f"{found.name}_pkey" if found.primary_key else "")
    put(state, found, found.model_copy(update={"name": statement.to, "foreign_keys": keys, "key_name": named}),
         lambda rows: rows)  # fmt: skip
    for one in [one for one in catalog.sequences.values() if one.owner == found.name]:
        catalog.sequences[one.name] = one.model_copy(update={"owner": statement.to})
    for name, table in catalog.tables.items():
        theirs = tuple(one.model_copy(update={"table": statement.to}) if one.table == found.name else one
                       for one in table.foreign_keys)  # fmt: skip
        catalog.tables[name] = table.model_copy(update={"foreign_keys": theirs})


def refuse_readers(catalog: Catalog, name: str, word: str = "rename") -> None:
    """Refuse to change what views, indexes or sinks name.

    Raises:
        Conflict: one does.
    """
    readers = [view.name for view in catalog.views.values() if name in view.reads]
    readers += [f"sink {sink.name}" for sink in catalog.sinks.values() if sink.collection == name]
    readers += [f"index {index.name}" for index in catalog.indexes.values() if index.collection == name]
    if readers:
        raise Conflict(f"{name} is read by {', '.join(readers)}", remedy=f"drop what reads it, {word}, create it again",
                       name=name, holder=", ".join(readers), code="2BP01")  # fmt: skip


def _kind(view: View) -> str:
    return "materialized view" if view.materialized else "view"

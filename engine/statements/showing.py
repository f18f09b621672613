"""SHOW: tables, views, indexes, sinks, and the columns of one of them."""

from __future__ import annotations

import pyarrow as pa

from halfjoin.catalog.catalog import Catalog, Item, kind_of
from halfjoin.catalog.models import Table, View
from halfjoin.engine.batch.state import State
from halfjoin.engine.sinks.sinks import Sinks
from halfjoin.engine.statements.creating import create_statement
from halfjoin.errors import UnknownName


def show(state: State, sinks: Sinks | None, what: str, name: str | None) -> pa.Table:
    """The answer to SHOW: a table of names and their properties."""
    catalog = state.catalog
    match what:
        case "tables":
            tables = list(catalog.tables.values())
            return pa.table({
                "name": pa.array([table.name for table in tables], pa.string()),
                "primary_key": pa.array([", ".join(table.primary_key) for table in tables], pa.string()),
            })
        case "views" | "materialized views":
            views = [view for view in catalog.views.values() if view.materialized or what == "views"]
            return pa.table({
                "name": pa.array([view.name for view in views], pa.string()),
                "materialized": pa.array([view.materialized for view in views], pa.bool_()),
                "definition": pa.array([view.text for view in views], pa.string()),
            })
        case "indexes":
            indexes = [index for index in catalog.indexes.values() if name in (None, index.collection)]
            rows = [(index.name, index.collection, ", ".join(index.keys)) for index in indexes]
            rows += [(one.name, table.name, ", ".join(one.columns)) for table in catalog.tables.values()
                     if name in (None, table.name) for one in table.unique if one.index]  # fmt: skip
            return pa.table({key: pa.array([row[place] for row in rows], pa.string())
                             for place, key in enumerate(("name", "on", "key"))})
        case "comments":
            return pa.table({key: pa.array([row[place] for row in comments(catalog)], pa.string())
                             for place, key in enumerate(("kind", "name", "comment"))})
        case "create":
            text = create_statement(catalog, str(name))
            return pa.table({"name": pa.array([name], pa.string()), "create_statement": pa.array([text], pa.string())})
        case "sinks":
            return _show_sinks(state, sinks)
        case _:
            if name not in catalog.names():
                raise UnknownName("table or view", str(name), catalog.names())
            found = catalog.tables.get(name) or catalog.views[name]
            return pa.table({
                "name": pa.array([column.name for column in found.columns], pa.string()),
                "type": pa.array([str(column.type) for column in found.columns], pa.string()),
                "nullable": pa.array([not column.not_null for column in found.columns], pa.bool_()),
            })


def comments(catalog: Catalog) -> list[tuple[str, str, str]]:
    """All comments: of what kind, its name, the text."""
    found: list[tuple[str, str, str]] = []
    items: list[Item] = [*catalog.tables.values(), *catalog.views.values(), *catalog.indexes.values(),
                         *catalog.sinks.values(), *catalog.sources.values()]  # fmt: skip
    for item in items:
        found.append((kind_of(item), item.name, item.comment))
        if isinstance(item, Table | View):
            found += [("column", f"{item.name}.{column.name}", column.comment) for column in item.columns]
        if isinstance(item, Table):
            found += [("constraint", f"{item.name}.{name}", text) for name, text in item.constraint_comments.items()]
    for key, text in catalog.comments.items():
        kind, _, name = key.partition(" ")
        found.append((kind, name, text))
    return [row for row in found if row[2]]


def _show_sinks(state: State, sinks: Sinks | None) -> pa.Table:
    """The sinks and their progress, which only the engine that writes knows."""
    defined = list(state.catalog.sinks.values())
    status = [None if sinks is None else sinks.status(sink.name) for sink in defined]
    return pa.table({
        "name": pa.array([sink.name for sink in defined], pa.string()),
        "from": pa.array([sink.collection for sink in defined], pa.string()),
        "into": pa.array([sink.target for sink in defined], pa.string()),
        "upper": pa.array([None if one is None else one.upper for one in status], pa.int64()),
        "waiting": pa.array([None if one is None else one.waiting for one in status], pa.int64()),
        "error": pa.array([None if one is None else one.error for one in status], pa.string()),
    })

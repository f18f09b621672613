"""Which views read a column of a table."""

from __future__ import annotations

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import Table, View
from halfjoin.errors import HalfjoinError
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.parse.parse import parse_query


def readers_of_column(catalog: Catalog, table: Table, name: str) -> list[View]:
    """The views that are others, or none, without the column; in order of creation."""
    without, found = catalog.copy(), []
    left = tuple(column for column in table.columns if column.name != name)
    key = () if name in table.primary_key else table.primary_key
    without.tables[table.name] = table.model_copy(update={"columns": left, "primary_key": key})
    for view in catalog.views.values():
        try:
            columns = [(one.name, one.type) for one in bind(parse_query(view.text), without, view.text).columns]
        except HalfjoinError:
            columns = []
        if columns != [(one.name, one.type) for one in view.columns]:
            del without.views[view.name]
            found.append(view)
    return found

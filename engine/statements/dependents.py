"""What depends on a table: views that read a column, and tables that refer to it."""

from __future__ import annotations

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import Table, View
from halfjoin.errors import HalfjoinError, UnsupportedSQL
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.statements import Truncate


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


def truncated(catalog: Catalog, statement: Truncate) -> list[str]:
    """The tables that TRUNCATE empties.

    Raises:
        UnknownName: one does not exist. UnsupportedSQL: another table refers to one, and the statement does not say
            CASCADE.
    """
    names = [catalog.table(name).name for name in statement.tables]
    for name in names:  # it grows
        for other in catalog.tables.values():
            if other.name not in names and any(key.table == name for key in other.foreign_keys):
                if not statement.cascade:
                    raise UnsupportedSQL(f"cannot truncate {name}: a foreign key of {other.name} refers to it",
                                         remedy=f"TRUNCATE {name}, {other.name}, or TRUNCATE {name} CASCADE",
                                         code="0A000")  # fmt: skip
                names.append(other.name)
    return names

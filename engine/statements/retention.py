"""ALTER ... SET (RETAIN HISTORY FOR ...): how long the history of a table or materialized view stays readable."""

from __future__ import annotations

from halfjoin.engine.batch.state import State
from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.definitions import AlterRetention


def alter_retention(state: State, statement: AlterRetention) -> None:
    """Retain history for another length. What is forgotten already does not come back.

    Raises:
        UnknownName: there is no such table or view. UnsupportedSQL: it is a plain view.
    """
    catalog, name, asked = state.catalog, statement.name, {"retain": statement.retain}
    if (table := catalog.tables.get(name)) is not None:
        catalog.tables[name] = table.model_copy(update=asked)
    elif (view := catalog.views.get(name)) is not None:
        if not view.materialized:
            raise UnsupportedSQL("a plain view holds no history", remedy="retain that of the tables it reads")
        catalog.views[name] = view.model_copy(update=asked)
    elif not statement.if_exists:
        raise UnknownName("table or view", name, catalog.names(), code="42P01")
    state.keep_promises()

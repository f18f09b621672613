"""VACUUM and ANALYZE, which tools for PostgreSQL send: the engine does by itself what they ask for."""

from __future__ import annotations

from halfjoin.engine.batch.state import State
from halfjoin.errors import UnknownName
from halfjoin.sql.statements import Maintain

NOTHING = {
    "vacuum": "VACUUM has nothing to do: history is compacted between batches",
    "analyze": "ANALYZE has nothing to do: the sizes that plans are made from are always known",
}


def maintain(state: State, statement: Maintain) -> str:
    """Check the tables and views that the statement names; why there is nothing to do.

    Raises:
        UnknownName: there is no such table, view or column.
    """
    catalog = state.catalog
    for name, columns in statement.tables:
        if name not in catalog.names():
            raise UnknownName("table or view", name, catalog.names())
        known = [column.name for column in catalog.columns(name) or ()]
        for column in columns:
            if known and column not in known:
                raise UnknownName("column", column, known)
    return NOTHING[statement.kind]

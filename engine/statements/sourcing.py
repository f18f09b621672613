"""CREATE SOURCE and ALTER SOURCE: they change definitions; who reads the sources follows. SHOW SOURCES."""

from __future__ import annotations

import logging
import uuid

import pyarrow as pa

from halfjoin.catalog.models import Source
from halfjoin.engine.batch.state import State
from halfjoin.engine.feeds.delivery import ERROR_COLUMNS
from halfjoin.engine.feeds.kinds import kind_named
from halfjoin.engine.feeds.options import options_of
from halfjoin.engine.feeds.source import Opening
from halfjoin.engine.statements.definitions import create_table
from halfjoin.engine.statements.stats import SourceStats
from halfjoin.engine.statements.tables import check_schema
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.sql.parse.type_names import type_named
from halfjoin.sql.statements import AlterSource, ColumnDef, CreateSource, CreateTable

_log = logging.getLogger("halfjoin")


def create_source(state: State, statement: CreateSource) -> None:
    """Create a source, and the table of its bad records if it is to have one.

    Raises:
        UnsupportedSQL, UnknownName: the kind, an option or a table is not right.
        Conflict: the name is in use, or that of the table of bad records by a table with other columns.
    """
    name, catalog = statement.name, state.catalog
    check_schema(name, catalog)
    there = catalog.sources.get(name)
    if there is not None and statement.if_not_exists:
        if (there.kind, there.options, there.into, bool(there.errors)) != (
                statement.kind, dict(statement.options), statement.into, statement.errors == "table"):  # fmt: skip
            _log.warning("CREATE SOURCE IF NOT EXISTS: %s exists with another definition, and stays as it is", name)
        return
    kind = kind_named(statement.kind)
    if len(set(statement.into)) < len(statement.into):
        raise UnsupportedSQL(f"the source {name} names a table twice")
    id, options = uuid.uuid4().hex, options_of(kind, statement.options)
    tables = tuple(catalog.table(one) for one in statement.into)
    if kind.check is not None:
        kind.check(Opening(name, id, options, tables))
    errors = f"{name}_errors" if statement.errors == "table" else ""
    catalog.add(Source(name=name, kind=kind.name, options=dict(statement.options), into=statement.into, id=id,
                       errors=errors))  # fmt: skip
    if errors:
        _add_errors(state, errors)


def _add_errors(state: State, name: str) -> None:
    """Create the table of bad records, unless an earlier source of that name has left it."""
    columns = tuple(ColumnDef(column, type_named(text)) for column, text in ERROR_COLUMNS.items())
    found = state.catalog.tables.get(name)
    if found is None:
        create_table(state, CreateTable(name, columns))
    elif [(one.name, one.type) for one in found.columns] != [(one.name, one.type) for one in columns]:
        raise Conflict(f"{name} is to have the records that the source cannot read, but is another table",
                       remedy="rename it, or choose another name for the source", name=name, code="42P07")  # fmt: skip


def alter_source(state: State, statement: AlterSource) -> None:
    """Pause or resume a source.

    Raises:
        UnknownName: there is no such source.
    """
    sources = state.catalog.sources
    if statement.name not in sources:
        if statement.if_exists:
            return
        raise UnknownName("source", statement.name, sources)
    sources[statement.name] = sources[statement.name].model_copy(update={"paused": statement.paused})


def show_sources(found: list[SourceStats]) -> pa.Table:
    """The answer to SHOW SOURCES."""
    def texts(values: list[str | None]) -> pa.Array:
        return pa.array(values, pa.string())

    return pa.table({
        "name": texts([one.name for one in found]),
        "kind": texts([one.kind for one in found]),
        "into": texts([", ".join(one.into) for one in found]),
        "options": texts([one.options for one in found]),
        "state": texts([one.state for one in found]),
        "position": texts([one.position for one in found]),
        "rows": pa.array([one.rows for one in found], pa.int64()),
        "bad": pa.array([one.bad for one in found], pa.int64()),
        "lag": texts([None if one.lag is None else f"{one.lag} {one.unit}" for one in found]),
        "error": texts([one.error for one in found]),
    })

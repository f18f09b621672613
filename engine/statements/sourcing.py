"""CREATE SOURCE and ALTER SOURCE: they change definitions; who reads the sources follows. SHOW SOURCES."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, replace

import pyarrow as pa

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import Source
from halfjoin.engine.batch.state import State
from halfjoin.engine.feeds.delivery import ERROR_COLUMNS
from halfjoin.engine.feeds.kinds import kind_named
from halfjoin.engine.feeds.options import options_of
from halfjoin.engine.feeds.source import Definition, Opening
from halfjoin.engine.statements.definitions import Means, create_table, define
from halfjoin.engine.statements.naming import name_things
from halfjoin.engine.statements.stats import SourceStats
from halfjoin.engine.statements.tables import check_schema
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.sql.definitions import AlterSource, ColumnDef, CreateSource, CreateTable
from halfjoin.sql.named import CreateDomain, CreateEnum, CreateSchema
from halfjoin.sql.parse.parse import parse
from halfjoin.sql.parse.type_names import type_named

_SHOWN = 80  # characters of a position
_log = logging.getLogger("halfjoin")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A source to create, with the `tables` that it feeds and what must be `made` for it unless it is there."""

    statement: CreateSource
    tables: tuple[str, ...]
    made: tuple[Definition, ...] = ()


def wanted(state: State, statement: CreateSource) -> Wanted:
    """What a statement asks for. A kind that makes its tables is asked for them now, once.

    Raises:
        UnsupportedSQL, UnknownName: the kind, an option or a table is not right.
    """
    kind = kind_named(statement.kind)
    if kind.times is None and state.clock == "own":
        raise UnsupportedSQL(f"the rows of a source FROM {kind.name} have no times, and this warehouse has its own",
                             remedy="read it into a warehouse with clock='wall'")
    options = options_of(kind, statement.options)
    statement = replace(statement, options=options.kept(statement.options))
    if statement.name in state.catalog.sources or kind.tables is None:
        return Wanted(statement, statement.into)
    made, tables, more = kind.tables(options, statement.into)
    return Wanted(replace(statement, options={**statement.options, **more}), tuple(tables), tuple(made))


def create_source(state: State, means: Means, wanted: Wanted) -> None:
    """Create a source, and the table of its bad records if it is to have one.

    Raises:
        UnsupportedSQL, UnknownName: the kind, an option or a table is not right.
        Conflict: the name is in use, or that of the table of bad records by a table with other columns.
    """
    statement, catalog = wanted.statement, state.catalog
    name = statement.name
    check_schema(name, catalog)
    there = catalog.sources.get(name)
    if there is not None and statement.if_not_exists:
        same = there.into == statement.into or not statement.into
        if not same or (there.kind, there.options, bool(there.errors)) != (
                statement.kind, {**there.options, **statement.options}, statement.errors == "table"):  # fmt: skip
            _log.warning("CREATE SOURCE IF NOT EXISTS: %s exists with another definition, and stays as it is", name)
        return
    kind = kind_named(statement.kind)
    into = wanted.tables
    if not into:
        raise UnsupportedSQL(f"the source {name} has no tables", remedy="name them after INTO")
    if len(set(into)) < len(into):
        raise UnsupportedSQL(f"the source {name} names a table twice")
    lacking = [one for one in wanted.made if not _is_there(catalog, one)]
    for one in lacking:
        if one.problem is not None:
            raise one.problem
    for one in lacking:
        _make(state, means, one)
    id, options = uuid.uuid4().hex, options_of(kind, statement.options)
    tables = tuple(catalog.table(one) for one in into)
    if kind.check is not None:
        kind.check(Opening(name, id, options, tables))
    errors = f"{name}_errors" if statement.errors == "table" else ""
    if errors in into:  # one batch cannot hold both: the bad records would take the place of the rows
        raise Conflict(f"{errors} is to have the records that the source cannot read, so the source cannot feed it",
                       remedy="choose another name for the source", name=errors, code="42P07")  # fmt: skip
    catalog.add(Source(name=name, kind=kind.name, options=dict(statement.options), into=into, id=id,
                       errors=errors))  # fmt: skip
    if errors:
        _add_errors(state, errors)


def _is_there(catalog: Catalog, wanted: Definition) -> bool:
    """Whether there is something of that name."""
    return wanted.name in (*catalog.names(), *catalog.enums, *catalog.domains, *catalog.schemas)


def _make(state: State, means: Means, wanted: Definition) -> None:
    """Carry out a statement that makes what a source needs."""
    for statement in parse(wanted.text):
        if isinstance(statement, CreateTable):
            define(state, means, statement, wanted.text)
        else:
            assert isinstance(statement, CreateEnum | CreateDomain | CreateSchema)
            name_things(state, statement)


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


def _shortened(position: str | None) -> str | None:
    """A position as a line shows it; `Engine.stats()` has all of it."""
    return position if position is None or len(position) <= _SHOWN else f"{position[: _SHOWN - 3]}..."


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
        "position": texts([_shortened(one.position) for one in found]),
        "rows": pa.array([one.rows for one in found], pa.int64()),
        "bad": pa.array([one.bad for one in found], pa.int64()),
        "lag": texts([None if one.lag is None else f"{one.lag} {one.unit}" for one in found]),
        "error": texts([one.error for one in found]),
    })

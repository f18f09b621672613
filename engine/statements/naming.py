"""CREATE TYPE, DOMAIN, SCHEMA and SEQUENCE, ALTER SEQUENCE, and COMMENT ON."""

from __future__ import annotations

from dataclasses import replace

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import ColumnModel, Index, Sink, Source, Table, View
from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.domains import alter_domain
from halfjoin.engine.statements.sequences import alter_sequence, create_sequence
from halfjoin.engine.statements.tables import check_schema
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.sql.bind.constraints import bind_default
from halfjoin.sql.bind.named_types import composite, condition, rowless_type
from halfjoin.sql.named import (
    AlterDomain,
    AlterSequence,
    Comment,
    CreateComposite,
    CreateDomain,
    CreateEnum,
    CreateSchema,
    CreateSequence,
)
from halfjoin.sql.types import Kind, SqlType

Named = (CreateEnum | CreateComposite | CreateDomain | CreateSchema | CreateSequence | Comment | AlterSequence
         | AlterDomain)  # fmt: skip
RESERVED = ("public", "information_schema", "pg_catalog")


def name_things(state: State, statement: Named) -> None:
    """Carry out one of these statements.

    Raises:
        Conflict: the name is taken.
        UnknownName: what the statement names does not exist.
        UnsupportedSQL: a condition or a default is not valid.
    """
    match statement:
        case CreateEnum(name, labels):
            _check_free(state.catalog, name)
            state.catalog.enums[name] = SqlType(Kind.ENUM, named=name, labels=labels)
        case CreateComposite(name, fields):
            _check_free(state.catalog, name)
            state.catalog.enums[name] = composite(name, fields, state.catalog)
        case CreateDomain():
            _create_domain(state.catalog, statement)
        case CreateSchema():
            _create_schema(state.catalog, statement)
        case CreateSequence():
            create_sequence(state.catalog, statement)
        case AlterSequence():
            alter_sequence(state.catalog, statement)
        case AlterDomain():
            alter_domain(state, statement)
        case Comment():
            _comment(state.catalog, statement)


def _check_free(catalog: Catalog, name: str) -> None:
    """Check that no type has the name of a new one."""
    check_schema(name, catalog)
    if name in catalog.enums or name in catalog.domains:
        raise Conflict(f"type {name} already exists", remedy="drop it first", name=name, code="42710")


def _create_domain(catalog: Catalog, statement: CreateDomain) -> None:
    given = statement.domain
    _check_free(catalog, given.name)
    below = catalog.domain(given.type.named) if given.type.kind is Kind.NAMED else None
    domain = replace(given, type=rowless_type(given.type, catalog, "a domain"))
    if below is not None:
        domain = replace(domain, not_null=domain.not_null or below.not_null, default=domain.default or below.default,
                         base=below.name)  # fmt: skip
    names = [name for name, _ in given.checks if name]
    checks = list(below.checks if below else ())
    own = given.name.rpartition(".")[2]
    for name, text in given.checks:
        condition(text, domain.type, catalog)
        numbered = (f"{own}_check{n or ''}" for n in range(len(given.checks) + len(names) + 1))
        name = name or next(one for one in numbered if one not in names)
        names.append(name)
        checks.append((name, text))
    if domain.default is not None:
        bind_default(domain.default, domain.type, catalog, catalog.system())
    catalog.domains[given.name] = replace(domain, checks=tuple(checks))


def _create_schema(catalog: Catalog, statement: CreateSchema) -> None:
    name = statement.name
    if name in catalog.schemas or name in RESERVED:
        if not statement.if_not_exists:
            raise Conflict(f"schema {name} already exists", remedy="write IF NOT EXISTS", name=name, code="42P06")
        return
    if name.startswith("pg_"):
        raise UnsupportedSQL(f"unacceptable schema name {name}", remedy="a name does not begin with pg_", code="42939")
    if dotted := [one for one in (*catalog.names(), *catalog.indexes) if one.startswith(f"{name}.")]:
        raise Conflict(f"{dotted[0]} would look like a name in the schema {name}", remedy="rename it", name=name)
    catalog.schemas = (*catalog.schemas, name)


def _comment(catalog: Catalog, statement: Comment) -> None:
    kind, name, text = statement.kind, statement.name, statement.text or ""
    update = {"comment": text}
    if kind == "column":
        item: Table | View | None = catalog.tables.get(name) or catalog.views.get(name)
        if item is None:
            raise UnknownName("table or view", name, catalog.names())
        known = [column.name for column in item.columns]
        if statement.part not in known:
            raise UnknownName(f"column of {name}", statement.part, known)
        _replace(catalog, item.model_copy(update={"columns": tuple(
            _noted(column, text) if column.name == statement.part else column for column in item.columns)}))
    elif kind == "constraint":
        if (table := catalog.tables.get(name)) is None:
            raise UnknownName("table", name, catalog.tables)
        catalog.tables[name] = _with_constraint_noted(table, statement.part, text)
    elif kind in ("table", "view", "materialized view", "index", "sink", "source"):
        name = catalog.index_named(name) if kind == "index" else name
        match catalog.find(kind, name, "COMMENT ON"):
            case Index() as index:
                catalog.indexes[name] = index.model_copy(update=update)
            case Sink() as sink:
                catalog.sinks[name] = sink.model_copy(update=update)
            case Source() as source:
                catalog.sources[name] = source.model_copy(update=update)
            case found:
                _replace(catalog, found.model_copy(update=update))
    else:
        known_names = {"type": [*catalog.enums, *catalog.domains], "domain": [*catalog.domains],
                       "schema": ["public", *catalog.schemas], "sequence": [*catalog.sequences]}[kind]  # fmt: skip
        if name not in known_names:
            raise UnknownName(kind, name, known_names, code="3F000" if kind == "schema" else None)
        catalog.comments[f"{kind} {name}"] = text
        if not text:
            del catalog.comments[f"{kind} {name}"]


def _with_constraint_noted(table: Table, name: str, text: str) -> Table:
    """The table with a comment on one of its constraints."""
    if name not in table.constraint_comments:
        raise UnknownName(f"constraint of {table.name}", name, table.constraint_comments)
    update: dict[str, object] = {
        kind: tuple(one.model_copy(update={"comment": text}) if one.name == name else one
                    for one in getattr(table, kind))
        for kind in ("unique", "checks", "foreign_keys")
    }  # fmt: skip
    if name not in {one.name for one in (*table.unique, *table.checks, *table.foreign_keys)}:
        update["key_comment"] = text
    return table.model_copy(update=update)


def _noted(column: ColumnModel, text: str) -> ColumnModel:
    return column.model_copy(update={"comment": text})


def _replace(catalog: Catalog, item: Table | View) -> None:
    if isinstance(item, Table):
        catalog.tables[item.name] = item
    else:
        catalog.views[item.name] = item

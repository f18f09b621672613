"""The rows of information_schema: tables, columns, views, constraints, domains, sequences, privileges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from halfjoin.catalog.models import BITS, ColumnModel, Sequence, Table, View
from halfjoin.catalog.system.columns import system_tables
from halfjoin.catalog.system.known import Constraint, Known, Relation
from halfjoin.catalog.system.relations import Row, Rows, bounds
from halfjoin.sql.oids import pg_type
from halfjoin.sql.system import TEMPORARY
from halfjoin.sql.types import INTEGERS, Kind, SqlType

_BITS = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64, Kind.REAL: 24, Kind.DOUBLE: 53}
_MOMENTS = {Kind.DATE: 0, Kind.TIME: 6, Kind.TIMESTAMP: 6, Kind.TIMESTAMPTZ: 6, Kind.INTERVAL: 6}
_OCTETS = 1 << 30  # PostgreSQL's most bytes of a text
_RIGHTS = ("INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")


def information_schema_catalog_name(known: Known) -> Rows:
    """The database."""
    yield {"catalog_name": known.asker.database}


def schemata(known: Known) -> Rows:
    """Schemas."""
    for name in known.schemas:
        yield {"catalog_name": known.asker.database, "schema_name": name, "schema_owner": known.asker.user}


def tables(known: Known) -> Rows:
    """Tables and views, also those of the catalog."""
    for system in system_tables().values():
        schema, _, name = system.name.partition(".")
        yield _tables_row(known, schema, name, "VIEW" if system.kind == "v" else "BASE TABLE", False)
    for one in _named(known):
        kind = {"r": "BASE TABLE", "v": "VIEW", "m": "MATERIALIZED VIEW"}[one.kind]
        kind = "LOCAL TEMPORARY" if one.kind == "r" and one.schema == TEMPORARY else kind
        yield _tables_row(known, one.schema, one.name, kind, one.kind == "r")


def _tables_row(known: Known, schema: str, name: str, kind: str, insertable: bool) -> Row:
    return {**_place(known, schema, name), "table_type": kind, "is_insertable_into": _yes(insertable), "is_typed": "NO"}


def columns(known: Known) -> Rows:
    """The columns of tables and views."""
    for system in system_tables().values():
        schema, _, name = system.name.partition(".")
        for number, (column, type) in enumerate(zip(system.columns, system.types, strict=True), 1):
            yield {**_place(known, schema, name), "column_name": column.name, "ordinal_position": number,
                   "is_nullable": _yes(column.name != "oid"), "udt_catalog": known.asker.database,
                   "udt_schema": "pg_catalog", "udt_name": f"_{type[:-2]}" if type.endswith("[]") else type,
                   "dtd_identifier": str(number), **_UNSET, **_typed(column.type),
                   "data_type": "ARRAY" if type.endswith("[]") else _data_type(column.type)}
    for one in _named(known):
        for number, model in enumerate(one.columns, 1):
            yield _column(known, one, number, model)


_UNSET: Row = {"is_self_referencing": "NO", "is_identity": "NO", "identity_cycle": "NO", "is_generated": "NEVER",
               "is_updatable": "NO"}


def _column(known: Known, one: Relation, number: int, column: ColumnModel) -> Row:
    """A column. PostgreSQL says that those of a view may be NULL."""
    table, schema, name = one.kind == "r", *_udt(known, column.type)
    row = {**_place(known, one.schema, one.name), "column_name": column.name, "ordinal_position": number,
           "column_default": known.default(column), "is_nullable": _yes(not (column.not_null and table)), **_UNSET,
           "is_updatable": _yes(table), **_typed(column.type), "data_type": _data_type(column.type),
           "udt_catalog": known.asker.database, "udt_schema": schema, "udt_name": name,
           "dtd_identifier": str(number)}  # fmt: skip
    if column.domain is not None:
        schema, name = known.split(column.domain.name)
        row |= {"domain_catalog": known.asker.database, "domain_schema": schema, "domain_name": name}
    if column.generated is not None:
        row |= {"is_generated": "ALWAYS", "generation_expression": column.generated}
    if column.sequence and not column.serial and (sequence := known.catalog.sequences.get(column.sequence)) is not None:
        limits = bounds(sequence)
        row |= {"is_identity": "YES", "identity_generation": "ALWAYS" if column.always else "BY DEFAULT",
                "identity_start": str(limits["seqstart"]), "identity_increment": str(limits["seqincrement"]),
                "identity_maximum": str(limits["seqmax"]), "identity_minimum": str(limits["seqmin"])}
    return row


def _typed(type: SqlType) -> Row:
    """The sizes of a type."""
    if type.kind in (Kind.VARCHAR, Kind.CHAR):
        return {"character_maximum_length": type.precision,
                "character_octet_length": _OCTETS if type.precision is None else type.precision * 4}
    if type.kind is Kind.TEXT and not type.named:
        return {"character_octet_length": _OCTETS}
    if type.kind is Kind.NUMERIC:
        return {"numeric_precision": type.precision, "numeric_precision_radix": 10, "numeric_scale": type.scale}
    if type.kind in _BITS and not type.named:
        return {"numeric_precision": _BITS[type.kind], "numeric_precision_radix": 2,
                "numeric_scale": 0 if type.kind in INTEGERS else None}
    if type.kind not in _MOMENTS:
        return {}
    return {"datetime_precision": _MOMENTS[type.kind] if type.precision is None else type.precision}


def _data_type(type: SqlType) -> str:
    """The type's name without its length or digits."""
    if type.kind is Kind.ENUM or (type.kind is Kind.RECORD and type.named):
        return "USER-DEFINED"
    return type.named or ("ARRAY" if type.kind is Kind.ARRAY else pg_type(type).sql)


def _udt(known: Known, type: SqlType) -> tuple[str, str]:
    """The schema and the name of a type in pg_type."""
    own = type.element or type
    if own.kind is Kind.ENUM or (own.kind is Kind.RECORD and own.named):
        schema, name = known.split(own.named)
        return schema, name if type.element is None else f"_{name}"
    return "pg_catalog", pg_type(type).name


def element_types(known: Known) -> Rows:
    """The types of the elements of arrays."""
    for one in _named(known):
        for number, column in enumerate(one.columns, 1):
            if column.type.element is not None:
                schema, name = _udt(known, column.type.element)
                yield {"object_catalog": known.asker.database, "object_schema": one.schema, "object_name": one.name,
                       "object_type": "TABLE", "collection_type_identifier": str(number),
                       "data_type": _data_type(column.type.element), "udt_catalog": known.asker.database,
                       "udt_schema": schema, "udt_name": name, "dtd_identifier": f"a{number}"}


def views(known: Known) -> Rows:
    """Plain views."""
    for one in _named(known):
        if isinstance(one.item, View) and not one.item.materialized:
            yield {**_place(known, one.schema, one.name), "view_definition": one.item.text, "check_option": "NONE",
                   "is_updatable": "NO", "is_insertable_into": "NO", "is_trigger_updatable": "NO",
                   "is_trigger_deletable": "NO", "is_trigger_insertable_into": "NO"}


def view_table_usage(known: Known) -> Rows:
    """Which view reads which table."""
    for one in _named(known):
        for name in one.item.reads if isinstance(one.item, View) and not one.item.materialized else ():
            if (read := known.by_name.get(name)) is not None:
                yield {"view_catalog": known.asker.database, "view_schema": one.schema, "view_name": one.name,
                       **_place(known, read.schema, read.name)}


def table_constraints(known: Known) -> Rows:
    """The constraints of tables, and NOT NULL, which is a CHECK here."""
    kinds = {"p": "PRIMARY KEY", "u": "UNIQUE", "f": "FOREIGN KEY", "c": "CHECK"}
    for one, table in _of_tables(known):
        row = _constraint_row(known, one.name, table, kinds[one.kind])
        deferred = one.key is not None and one.key.deferred
        yield {**row, "is_deferrable": "YES", "initially_deferred": "YES"} if deferred else row
    for table, number, _ in _not_null(known):
        yield _constraint_row(known, _not_null_name(table, number), table, "CHECK")


def _constraint_row(known: Known, name: str, table: Relation, kind: str) -> Row:
    return {**_constraint(known, table.schema, name), **_place(known, table.schema, table.name),
            "constraint_type": kind, "is_deferrable": "NO", "initially_deferred": "NO", "enforced": "YES",
            "nulls_distinct": "YES" if kind == "UNIQUE" else None}


def key_column_usage(known: Known) -> Rows:
    """The columns of keys."""
    for one, table in _of_tables(known):
        for number, column in enumerate(one.columns, 1):
            place = None
            if one.key is not None and (index := known.index_of(one)) is not None:
                place = list(index.item.keys).index(one.key.references[number - 1]) + 1  # type: ignore[union-attr]
            yield {**_constraint(known, table.schema, one.name), **_place(known, table.schema, table.name),
                   "column_name": column, "ordinal_position": number, "position_in_unique_constraint": place}


def constraint_column_usage(known: Known) -> Rows:
    """The columns that constraints need; of a foreign key, those it refers to."""
    for one, table in _of_tables(known):
        of, names = (table, one.columns) if one.key is None else (known.by_name[one.key.table], one.key.references)
        if one.check is not None:
            names = tuple(c.name for c in table.columns if c.name in one.check.text)
        for name in names:
            yield {**_place(known, of.schema, of.name), "column_name": name,
                   **_constraint(known, table.schema, one.name)}


def constraint_table_usage(known: Known) -> Rows:
    """The tables that constraints need."""
    for one, table in _of_tables(known):
        of = table if one.key is None else known.by_name[one.key.table]
        if one.check is None:
            yield {**_place(known, of.schema, of.name), **_constraint(known, table.schema, one.name)}


def referential_constraints(known: Known) -> Rows:
    """Foreign keys."""
    for one, table in _of_tables(known):
        if one.key is not None:
            index, of = known.index_of(one), known.by_name[one.key.table]
            yield {**_constraint(known, table.schema, one.name), "unique_constraint_catalog": known.asker.database,
                   "unique_constraint_schema": of.schema,
                   "unique_constraint_name": None if index is None else index.name,
                   "match_option": "NONE", "update_rule": (one.key.on_update or "no action").upper(),
                   "delete_rule": (one.key.on_delete or "no action").upper()}


def check_constraints(known: Known) -> Rows:
    """The conditions of CHECK, and of NOT NULL."""
    for one in known.constraints:
        if one.check is not None:
            schema = one.table.schema if one.table is not None else one.domain.schema if one.domain else ""
            yield {**_constraint(known, schema, one.name), "check_clause": f"({one.check.text})"}
    for table, number, column in _not_null(known):
        yield {**_constraint(known, table.schema, _not_null_name(table, number)),
               "check_clause": f"{column.name} IS NOT NULL"}


def domains(known: Known) -> Rows:
    """Domains."""
    for one in known.types:
        if one.domain is not None:
            schema, name = _udt(known, one.domain.type)
            yield {"domain_catalog": known.asker.database, "domain_schema": one.schema, "domain_name": one.name,
                   "data_type": _data_type(one.domain.type), **_typed(one.domain.type),
                   "domain_default": one.domain.default, "udt_catalog": known.asker.database, "udt_schema": schema,
                   "udt_name": name, "dtd_identifier": "1"}


def domain_constraints(known: Known) -> Rows:
    """The conditions of domains."""
    for one in known.constraints:
        if one.domain is not None:
            yield {**_constraint(known, one.domain.schema, one.name), "domain_catalog": known.asker.database,
                   "domain_schema": one.domain.schema, "domain_name": one.domain.name, "is_deferrable": "NO",
                   "initially_deferred": "NO"}


def column_domain_usage(known: Known) -> Rows:
    """Which column has which domain."""
    for one in _named(known):
        for column in one.columns:
            if column.domain is not None:
                schema, name = known.split(column.domain.name)
                yield {"domain_catalog": known.asker.database, "domain_schema": schema, "domain_name": name,
                       **_place(known, one.schema, one.name), "column_name": column.name}


def sequences(known: Known) -> Rows:
    """Sequences that are no identity of a column."""
    serials = {column.sequence for one in known.relations for column in one.columns if column.serial}
    for one in known.relations:
        if isinstance(one.item, Sequence) and (one.item.column or not one.item.owner or one.item.name in serials):
            limits = bounds(one.item)
            yield {"sequence_catalog": known.asker.database, "sequence_schema": one.schema, "sequence_name": one.name,
                   "data_type": one.item.type, "numeric_precision": BITS[one.item.type],
                   "numeric_precision_radix": 2, "numeric_scale": 0,
                   "start_value": str(limits["seqstart"]), "minimum_value": str(limits["seqmin"]),
                   "maximum_value": str(limits["seqmax"]), "increment": str(limits["seqincrement"]),
                   "cycle_option": "YES" if one.item.cycle else "NO"}


def enabled_roles(known: Known) -> Rows:
    """The one role."""
    yield {"role_name": known.asker.user}


def table_privileges(known: Known) -> Rows:
    """Who asks may do everything that can be done."""
    for one in _named(known):
        for right in _RIGHTS if one.kind == "r" else ("SELECT",):
            yield {**_grant(known, right), **_place(known, one.schema, one.name),
                   "with_hierarchy": _yes(right == "SELECT")}


def column_privileges(known: Known) -> Rows:
    """As `table_privileges`, of each column."""
    for one in _named(known):
        for column in one.columns:
            for right in ("INSERT", "SELECT", "UPDATE", "REFERENCES") if one.kind == "r" else ("SELECT",):
                yield {**_grant(known, right), **_place(known, one.schema, one.name), "column_name": column.name}


def character_sets(known: Known) -> Rows:
    """The one encoding."""
    yield {"character_set_name": "UTF8", "character_repertoire": "UCS", "form_of_use": "UTF8",
           "default_collate_catalog": known.asker.database, "default_collate_schema": "pg_catalog",
           "default_collate_name": "C"}


def _named(known: Known) -> Iterator[Relation]:
    """Tables and views."""
    return (one for one in known.relations if isinstance(one.item, Table | View))


def _of_tables(known: Known) -> Iterator[tuple[Constraint, Relation]]:
    return ((one, one.table) for one in known.constraints if one.table is not None)


def _not_null(known: Known) -> Iterator[tuple[Relation, int, ColumnModel]]:
    for one in _named(known):
        for number, column in enumerate(one.columns, 1) if isinstance(one.item, Table) else ():
            if column.not_null:
                yield one, number, column


def _not_null_name(table: Relation, number: int) -> str:
    """The name that PostgreSQL shows: numbers of the schema, the table and the column."""
    return f"2200_{table.oid}_{number}_not_null"


def _place(known: Known, schema: str, name: str) -> Row:
    return {"table_catalog": known.asker.database, "table_schema": schema, "table_name": name}


def _constraint(known: Known, schema: str, name: str) -> Row:
    return {"constraint_catalog": known.asker.database, "constraint_schema": schema, "constraint_name": name}


def _grant(known: Known, right: str) -> Row:
    return {"grantor": known.asker.user, "grantee": known.asker.user, "privilege_type": right, "is_grantable": "YES"}


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


INFORMATION_VIEWS: Mapping[str, Callable[[Known], Rows]] = {
    "role_table_grants": table_privileges, "role_column_grants": column_privileges,
    **{one.__name__: one for one in (
        information_schema_catalog_name, schemata, tables, columns, element_types, views, view_table_usage,
        table_constraints, key_column_usage, constraint_column_usage, constraint_table_usage, referential_constraints,
        check_constraints, domains, domain_constraints, column_domain_usage, sequences, enabled_roles,
        table_privileges, column_privileges, character_sets)},
}  # fmt: skip

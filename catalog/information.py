"""information_schema: what the catalog knows, as rows. Columns are those of PostgreSQL's views of these names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from halfjoin.catalog.models import ColumnModel, ForeignKey, Table, View
from halfjoin.catalog.models import Sequence as SequenceModel
from halfjoin.sql.expr import Column
from halfjoin.sql.types import INTEGER, INTEGERS, STRINGS, TEXT, Kind, SqlType

Row: TypeAlias = tuple[object, ...]
Named: TypeAlias = dict[str, object]  # a row by its columns; those that are not there are NULL
DATABASE, SCHEMA = "halfjoin", "public"
DATA_TYPES = {
    Kind.VARCHAR: "character varying", Kind.CHAR: "character", Kind.TIME: "time without time zone",
    Kind.TIMESTAMP: "timestamp without time zone", Kind.TIMESTAMPTZ: "timestamp with time zone", Kind.ARRAY: "ARRAY",
}  # fmt: skip
_NAME = ("constraint_catalog", "constraint_schema", "constraint_name")
_PLACE = ("table_catalog", "table_schema", "table_name")
VIEWS: dict[str, tuple[str, ...]] = {
    "schemata": ("catalog_name", "schema_name", "schema_owner", "default_character_set_catalog",
                 "default_character_set_schema", "default_character_set_name", "sql_path"),
    "tables": (*_PLACE, "table_type", "self_referencing_column_name", "reference_generation",
               "user_defined_type_catalog", "user_defined_type_schema", "user_defined_type_name", "is_insertable_into",
               "is_typed", "commit_action"),
    "columns": (*_PLACE, "column_name", "ordinal_position", "column_default", "is_nullable", "data_type",
                "character_maximum_length", "character_octet_length", "numeric_precision", "numeric_precision_radix",
                "numeric_scale", "datetime_precision", "interval_type", "interval_precision", "character_set_catalog",
                "character_set_schema", "character_set_name", "collation_catalog", "collation_schema",
                "collation_name", "domain_catalog", "domain_schema", "domain_name", "udt_catalog", "udt_schema",
                "udt_name", "scope_catalog", "scope_schema", "scope_name", "maximum_cardinality", "dtd_identifier",
                "is_self_referencing", "is_identity", "identity_generation", "identity_start", "identity_increment",
                "identity_maximum", "identity_minimum", "identity_cycle", "is_generated", "generation_expression",
                "is_updatable"),
    "table_constraints": (*_NAME, *_PLACE, "constraint_type", "is_deferrable", "initially_deferred", "enforced",
                          "nulls_distinct"),
    "key_column_usage": (*_NAME, *_PLACE, "column_name", "ordinal_position", "position_in_unique_constraint"),
    "referential_constraints": (*_NAME, "unique_constraint_catalog", "unique_constraint_schema",
                                "unique_constraint_name", "match_option", "update_rule", "delete_rule"),
    "check_constraints": (*_NAME, "check_clause"),
    "views": (*_PLACE, "view_definition", "check_option", "is_updatable", "is_insertable_into", "is_trigger_updatable",
              "is_trigger_deletable", "is_trigger_insertable_into"),
}  # fmt: skip
_NUMBERS = ("ordinal_position", "character_maximum_length", "character_octet_length", "numeric_precision",
            "numeric_precision_radix", "numeric_scale", "datetime_precision", "interval_precision",
            "maximum_cardinality", "position_in_unique_constraint")  # fmt: skip
_UDT = {
    Kind.SMALLINT: "int2", Kind.INTEGER: "int4", Kind.BIGINT: "int8", Kind.REAL: "float4", Kind.DOUBLE: "float8",
    Kind.BOOLEAN: "bool", Kind.CHAR: "bpchar",
}  # fmt: skip
_BITS = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64, Kind.REAL: 24, Kind.DOUBLE: 53}
_LONGEST = 1 << 30  # bytes of a text, in PostgreSQL


class Known(NamedTuple):
    """The tables and views by name."""

    tables: Mapping[str, Table]
    views: Mapping[str, View]
    schemas: Sequence[str] = ()
    sequences: Mapping[str, SequenceModel] = {}

    def place(self, name: str) -> tuple[str, str, str]:
        """The database, the schema and the bare name."""
        schema, dot, own = name.partition(".")
        return (DATABASE, schema, own) if dot and schema in self.schemas else (DATABASE, SCHEMA, name)


def information(catalog: Known, name: str) -> tuple[tuple[Column, ...], list[Row]] | None:
    """The columns and rows of a view of information_schema; None if there is none of that name."""
    if name not in VIEWS:
        return None
    columns = tuple(Column(one, INTEGER if one in _NUMBERS else TEXT) for one in VIEWS[name])
    rows = _ROWS[name](catalog)
    return columns, [tuple(row.get(column) for column in VIEWS[name]) for row in rows]


def data_type(type: SqlType) -> str:
    """The type's name without its length or digits."""
    if type.kind is Kind.ENUM:
        return "USER-DEFINED"
    return DATA_TYPES.get(type.kind, str(type).partition("(")[0])


def _at(names: tuple[str, ...], values: Iterable[object]) -> Named:
    return dict(zip(names, values, strict=True))


def _schemata(catalog: Known) -> Iterator[Named]:
    for name in (SCHEMA, *catalog.schemas, "information_schema"):
        yield {"catalog_name": DATABASE, "schema_name": name, "schema_owner": DATABASE}


def _tables(catalog: Known) -> Iterator[Named]:
    for table in catalog.tables:
        yield _at(_PLACE, catalog.place(table)) | {"table_type": "BASE TABLE", "is_insertable_into": "YES",
                                                   "is_typed": "NO"}  # fmt: skip
    for view in catalog.views.values():
        kind = "MATERIALIZED VIEW" if view.materialized else "VIEW"
        yield _at(_PLACE, catalog.place(view.name)) | {"table_type": kind, "is_insertable_into": "NO", "is_typed": "NO"}


def _columns(catalog: Known) -> Iterator[Named]:
    named: Iterable[Table | View] = (*catalog.tables.values(), *catalog.views.values())
    for item in named:
        for number, column in enumerate(item.columns, 1):
            yield (_at(_PLACE, catalog.place(item.name)) | _typed(column.type, catalog)
                   | _column(number, column, catalog, free=isinstance(item, View)))  # fmt: skip


def _column(number: int, column: ColumnModel, catalog: Known, *, free: bool) -> Named:
    """A column; those of a view are `free`: PostgreSQL says that they may be NULL, and no statement changes them."""
    made: Named = {
        "column_name": column.name, "ordinal_position": number, "column_default": column.default,
        "is_nullable": "NO" if column.not_null and not free else "YES", "dtd_identifier": str(number),
        "is_self_referencing": "NO", "is_generated": "NEVER" if column.generated is None else "ALWAYS",
        "generation_expression": column.generated, "is_updatable": "NO" if free else "YES", "is_identity": "NO",
        "identity_cycle": "NO",
    }  # fmt: skip
    if column.domain is not None:
        made |= _at(("domain_catalog", "domain_schema", "domain_name"), catalog.place(column.domain.name))
    sequence = catalog.sequences.get(column.sequence)
    if sequence is not None:
        most = (1 << (_BITS[column.type.kind] - 1)) - 1
        made |= {
            "is_identity": "YES", "identity_generation": "ALWAYS" if column.always else "BY DEFAULT",
            "identity_start": str(sequence.start), "identity_increment": str(sequence.step),
            "identity_maximum": str(most), "identity_minimum": "1",
        }  # fmt: skip
    return made


def _typed(type: SqlType, catalog: Known) -> Named:
    """What the columns of a type have in common."""
    kind, digits = type.kind, type.precision
    long = digits if kind in (Kind.VARCHAR, Kind.CHAR) else None
    octets = (None if kind not in STRINGS else _LONGEST if long is None else 4 * long)
    made: Named = {"data_type": data_type(type), "character_maximum_length": long, "character_octet_length": octets}
    made |= _at(("udt_catalog", "udt_schema", "udt_name"), (DATABASE, "pg_catalog", _udt(type)))
    if kind is Kind.ENUM:
        made |= _at(("udt_catalog", "udt_schema", "udt_name"), catalog.place(type.named))
    if kind is Kind.NUMERIC:
        made |= {"numeric_precision": digits, "numeric_precision_radix": 10, "numeric_scale": type.scale}
    elif kind in _BITS:
        scale = 0 if kind in INTEGERS else None
        made |= {"numeric_precision": _BITS[kind], "numeric_precision_radix": 2, "numeric_scale": scale}
    elif kind is Kind.DATE:
        made["datetime_precision"] = 0
    elif kind in (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL):
        made["datetime_precision"] = 6 if digits is None else digits
    return made


def _udt(type: SqlType) -> str:
    """The name that PostgreSQL gives a type inside."""
    if type.element is not None:
        return f"_{_udt(type.element)}"
    return type.named or _UDT.get(type.kind, type.kind.name.lower())


def _constraints(catalog: Known) -> Iterator[Named]:
    for table in catalog.tables.values():
        indexes = {one.name for one in table.unique if one.index}
        kinds = {name: "UNIQUE" for name in table.keys if name not in indexes}
        if table.primary_key:
            kinds[next(iter(table.keys))] = "PRIMARY KEY"
        kinds |= {one.name: "CHECK" for one in table.checks} | {one.name: "FOREIGN KEY" for one in table.foreign_keys}
        later = {one.name for one in table.foreign_keys if one.deferred}
        for name, kind in kinds.items():
            deferred = "YES" if name in later else "NO"
            yield _constraint(catalog, table, name) | _at(_PLACE, catalog.place(table.name)) | {
                "constraint_type": kind, "is_deferrable": deferred, "initially_deferred": deferred, "enforced": "YES",
                "nulls_distinct": "YES" if kind == "UNIQUE" else None,
            }  # fmt: skip


def _constraint(catalog: Known, table: Table, name: str) -> Named:
    return _at(_NAME, (*catalog.place(table.name)[:2], name))


def _keys(catalog: Known) -> Iterator[Named]:
    for table in catalog.tables.values():
        there = {one.name: one for one in table.foreign_keys}
        for name, columns in (*table.keys.items(), *((one.name, one.columns) for one in table.foreign_keys)):
            key = _referred(catalog, there[name])[1] if name in there else ()
            for number, column in enumerate(columns, 1):
                place = key.index(there[name].references[number - 1]) + 1 if name in there else None
                yield _constraint(catalog, table, name) | _at(_PLACE, catalog.place(table.name)) | {
                    "column_name": column, "ordinal_position": number, "position_in_unique_constraint": place,
                }  # fmt: skip


def _referred(catalog: Known, key: ForeignKey) -> tuple[str, tuple[str, ...]]:
    """The name and the columns of the key that a foreign key refers to."""
    keys = catalog.tables[key.table].keys
    return next((name, columns) for name, columns in keys.items() if sorted(columns) == sorted(key.references))


def _references(catalog: Known) -> Iterator[Named]:
    for table in catalog.tables.values():
        for key in table.foreign_keys:
            place = catalog.place(key.table)[:2]
            names = ("unique_constraint_catalog", "unique_constraint_schema", "unique_constraint_name")
            yield _constraint(catalog, table, key.name) | _at(names, (*place, _referred(catalog, key)[0])) | {
                "match_option": "NONE", "update_rule": (key.on_update or "no action").upper(),
                "delete_rule": (key.on_delete or "no action").upper(),
            }  # fmt: skip


def _checks(catalog: Known) -> Iterator[Named]:
    for table in catalog.tables.values():
        for one in table.checks:
            yield _constraint(catalog, table, one.name) | {"check_clause": one.text}


def _views(catalog: Known) -> Iterator[Named]:
    never = dict.fromkeys(VIEWS["views"][5:], "NO")
    for view in catalog.views.values():
        yield _at(_PLACE, catalog.place(view.name)) | {"view_definition": view.text, "check_option": "NONE"} | never


_ROWS: dict[str, Callable[[Known], Iterator[Named]]] = {
    "schemata": _schemata, "tables": _tables, "columns": _columns, "views": _views, "table_constraints": _constraints,
    "key_column_usage": _keys, "referential_constraints": _references, "check_constraints": _checks,
}  # fmt: skip

"""information_schema: what the catalog knows, as rows. Columns are those of PostgreSQL's views of these names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from halfjoin.catalog.models import ColumnModel, Table, View
from halfjoin.sql.expr import Column
from halfjoin.sql.types import INTEGER, INTEGERS, SECOND_DIGITS, SECONDS, TEXT, Kind, SqlType

Row: TypeAlias = tuple[object, ...]
DATABASE, SCHEMA = "halfjoin", "public"
DATA_TYPES = {
    Kind.VARCHAR: "character varying", Kind.CHAR: "character", Kind.TIME: "time without time zone",
    Kind.TIMESTAMP: "timestamp without time zone", Kind.TIMESTAMPTZ: "timestamp with time zone", Kind.ARRAY: "ARRAY",
}  # fmt: skip
_PLACE = ("table_catalog", "table_schema", "table_name")
VIEWS: dict[str, tuple[str, ...]] = {
    "schemata": ("catalog_name", "schema_name"),
    "tables": (*_PLACE, "table_type", "is_insertable_into"),
    "columns": (*_PLACE, "column_name", "ordinal_position", "column_default", "is_nullable", "data_type",
                "character_maximum_length", "numeric_precision", "numeric_scale", "datetime_precision", "is_generated",
                "generation_expression"),
    "table_constraints": ("constraint_catalog", "constraint_schema", "constraint_name", *_PLACE, "constraint_type"),
    "key_column_usage": ("constraint_catalog", "constraint_schema", "constraint_name", *_PLACE, "column_name",
                         "ordinal_position"),
    "views": (*_PLACE, "view_definition", "is_updatable"),
}  # fmt: skip
_NUMBERS = ("ordinal_position", "character_maximum_length", "numeric_precision", "numeric_scale",
            "datetime_precision")


class Known(NamedTuple):
    """The tables and views by name."""

    tables: Mapping[str, Table]
    views: Mapping[str, View]
    schemas: Sequence[str] = ()

    def place(self, name: str) -> tuple[str, str, str]:
        """The database, the schema and the bare name."""
        schema, dot, own = name.partition(".")
        return (DATABASE, schema, own) if dot and schema in self.schemas else (DATABASE, SCHEMA, name)


def information(catalog: Known, name: str) -> tuple[tuple[Column, ...], list[Row]] | None:
    """The columns and rows of a view of information_schema; None if there is none of that name."""
    if name not in VIEWS:
        return None
    columns = tuple(Column(one, INTEGER if one in _NUMBERS else TEXT) for one in VIEWS[name])
    rows = {"schemata": _schemata, "tables": _tables, "columns": _columns, "views": _views,
            "table_constraints": _constraints, "key_column_usage": _keys}[name](catalog)  # fmt: skip
    return columns, list(rows)


def data_type(type: SqlType) -> str:
    """The type's name without its length or digits."""
    if type.kind is Kind.ENUM:
        return "USER-DEFINED"
    return DATA_TYPES.get(type.kind, str(type).partition("(")[0])


def _schemata(catalog: Known) -> Iterator[Row]:
    for name in (SCHEMA, *catalog.schemas, "information_schema"):
        yield DATABASE, name


def _tables(catalog: Known) -> Iterator[Row]:
    for table in catalog.tables:
        yield *catalog.place(table), "BASE TABLE", "YES"
    for view in catalog.views.values():
        yield *catalog.place(view.name), "MATERIALIZED VIEW" if view.materialized else "VIEW", "NO"


def _columns(catalog: Known) -> Iterator[Row]:
    named: Iterable[Table | View] = (*catalog.tables.values(), *catalog.views.values())
    for item in named:
        for number, column in enumerate(item.columns, 1):
            yield *catalog.place(item.name), *_column(number, column, free=isinstance(item, View))


def _column(number: int, column: ColumnModel, *, free: bool) -> Row:
    """A column; those of a view are `free`: PostgreSQL says that they may be NULL."""
    type = column.type
    length = type.precision if type.kind in (Kind.VARCHAR, Kind.CHAR) else None
    bits = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64, Kind.REAL: 24, Kind.DOUBLE: 53}.get(type.kind)
    digits = type.precision if type.kind is Kind.NUMERIC else bits
    scale = type.scale if type.kind is Kind.NUMERIC else 0 if type.kind in INTEGERS else None
    nullable = "NO" if column.not_null and not free else "YES"
    second = 0 if type.kind is Kind.DATE else None
    if type.kind in SECONDS:
        second = SECOND_DIGITS if type.precision is None else type.precision
    return (column.name, number, column.default, nullable, data_type(type), length, digits, scale, second,
            "NEVER" if column.generated is None else "ALWAYS", column.generated)  # fmt: skip


def _constraints(catalog: Known) -> Iterator[Row]:
    for table in catalog.tables.values():
        indexes = {one.name for one in table.unique if one.index}
        kinds = {name: "UNIQUE" for name in table.keys if name not in indexes}
        if table.primary_key:
            kinds[next(iter(table.keys))] = "PRIMARY KEY"
        kinds |= {one.name: "CHECK" for one in table.checks} | {one.name: "FOREIGN KEY" for one in table.foreign_keys}
        for name, kind in kinds.items():
            yield *catalog.place(table.name)[:2], name, *catalog.place(table.name), kind


def _keys(catalog: Known) -> Iterator[Row]:
    for table in catalog.tables.values():
        for name, columns in (*table.keys.items(), *((one.name, one.columns) for one in table.foreign_keys)):
            for number, column in enumerate(columns, 1):
                yield *catalog.place(table.name)[:2], name, *catalog.place(table.name), column, number


def _views(catalog: Known) -> Iterator[Row]:
    for view in catalog.views.values():
        yield *catalog.place(view.name), view.text, "NO"

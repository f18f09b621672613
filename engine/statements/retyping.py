"""ALTER COLUMN ... TYPE: the column with another type, and its values of all times as USING or a cast makes them.

A view that reads the column would be another view: the statement is refused, as PostgreSQL refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator

from halfjoin.catalog.catalog import Catalog, kind_of
from halfjoin.catalog.models import ColumnModel, ForeignKey, Table
from halfjoin.engine.intake.generated import values
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.statements.dependents import readers_of_column
from halfjoin.engine.statements.renaming import refuse_sinks
from halfjoin.engine.statements.reshaping import Rows
from halfjoin.engine.statements.tables import check_columns, check_key_types
from halfjoin.engine.updates.updates import Updates
from halfjoin.errors import Conflict, DataError, InvalidRow, UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind.constraints import bind_using, casting, names_read
from halfjoin.sql.bind.named_types import resolved
from halfjoin.sql.definitions import AlterAction
from halfjoin.sql.expr import Expr
from halfjoin.sql.functions.coercion import same_values
from halfjoin.sql.functions.fallible import cast_fallible
from halfjoin.sql.types import INTEGERS, SECONDS, STRINGS, Kind, SqlType


def with_type(catalog: Catalog, table: Table, column: ColumnModel, action: AlterAction) -> tuple[Table, Rows | None]:
    """The table with another type of a column, and what happens to its rows (None: nothing).

    Raises:
        UnsupportedSQL: the type cannot change. Conflict: a view reads the column.
    """
    assert action.type is not None
    type = resolved(action.type, catalog)
    if type == column.type and action.to is None:
        return table, None
    refuse_sinks(catalog, table.name)
    if column.sequence and type.kind not in INTEGERS:
        raise UnsupportedSQL(f"column {column.name} is an identity column, whose type is smallint, integer or bigint",
                             remedy="write DROP IDENTITY first", code="22023")  # fmt: skip
    if any(other.generated is not None and column.name in names_read(other.generated) for other in table.columns):
        raise UnsupportedSQL(f"a generated column reads the column {column.name}", remedy="drop it first", code="0A000")
    value = _value(table, column, type, action.to)
    casts = [functions.cast(column.column, type, explicit=explicit) for explicit in (False, True)] if _keeps(
        column.type, type) else []  # fmt: skip
    keeps = value in casts
    if not keeps:
        _refuse_readers(catalog, table, column)
    unique = (one if keeps or column.name not in one.columns else one.model_copy(update={"lasting": False})
              for one in table.unique)  # fmt: skip
    made = table.model_copy(update={"unique": tuple(unique), "columns": tuple(
        one.model_copy(update={"type": type}) if one.name == column.name else one for one in table.columns)})
    check_columns(made, catalog, retyped=column.name)
    for other, key in keys_with(catalog, made, column.name):
        check_key_types(other, made if key.table == made.name else catalog.tables[key.table], key.columns,
                        key.references)  # fmt: skip
    return made, _remade(table, column, type, value)


def keys_with(catalog: Catalog, table: Table, column: str) -> Iterator[tuple[Table, ForeignKey]]:
    """The foreign keys that have a column of a table, or refer to it; each with its own table."""
    for other in (table, *(one for one in catalog.tables.values() if one.name != table.name)):
        for key in other.foreign_keys:
            if (other is table and column in key.columns) or (key.table == table.name and column in key.references):
                yield other, key


def _refuse_readers(catalog: Catalog, table: Table, column: ColumnModel) -> None:
    if column.generated is not None:
        raise UnsupportedSQL(f"the values of the generated column {column.name} would change", code="42611",
                             remedy="DROP COLUMN, and ADD COLUMN with the new type")  # fmt: skip
    if views := readers_of_column(catalog, table, column.name):
        view = views[0]
        raise Conflict(f"cannot alter the type of column {column.name}, which the {kind_of(view)} {view.name} reads",
                       name=table.name, holder=view.name, remedy="drop it first", code="0A000")  # fmt: skip


def _value(table: Table, column: ColumnModel, type: SqlType, using: str | None) -> Expr:
    """What the values of the column become."""
    if using is not None:
        return bind_using(using, [one.column for one in table.columns], type, Catalog.knowing(table), table.name)
    with casting(f"column {column.name}", type, f"write USING {column.name}::{type}"):
        return functions.cast(column.column, type)


def _remade(table: Table, column: ColumnModel, type: SqlType, value: Expr) -> Rows:
    scalar, target = compile(value), arrow_type(type)

    def rows(updates: Updates) -> Updates:
        try:
            made = values(table, scalar, updates).cast(target)
        except DataError as problem:
            raise problem.with_(remedy="rows of the past that can still be read count, too; else ADD COLUMN, and fill "
                                "it with UPDATE") from None  # fmt: skip
        if column.not_null and not column.had_nulls and made.null_count:
            raise InvalidRow(f"column {column.name} of {table.name} contains NULLs", table=table.name,
                             column=column.name, code="23502")  # fmt: skip
        return updates.with_columns({column.name: made})

    return rows


def _keeps(source: SqlType, target: SqlType) -> bool:
    """Whether a value of one type is the same value of the other."""
    if source.kind in STRINGS and target.kind in STRINGS and Kind.CHAR not in (source.kind, target.kind):
        return target.precision is None or (source.precision is not None and source.precision <= target.precision)
    if (source.kind in INTEGERS and target.kind in INTEGERS) or target.kind is Kind.NUMERIC:
        scales = (source.scale or 0) <= (target.scale or 0) if source.kind is Kind.NUMERIC else True
        exact = source.kind in (*INTEGERS, Kind.NUMERIC)
        return exact and scales and not cast_fallible(source, target)
    if source.kind is target.kind and source.kind in SECONDS:
        return same_values(source, target)
    return (source.kind, target.kind) == (Kind.REAL, Kind.DOUBLE)

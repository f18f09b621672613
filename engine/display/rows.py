"""The first rows and columns of an Arrow table as HTML."""

from __future__ import annotations

import pyarrow as pa

from halfjoin.engine.display.html import note, table
from halfjoin.engine.scalar.arrow_types import sql_type
from halfjoin.engine.scalar.texts import texts
from halfjoin.errors import HalfjoinError

ROWS, COLUMNS = 20, 30  # the most that are shown


def rows_html(rows: pa.Table, most: int = ROWS) -> str:
    """The first rows, with PostgreSQL's texts of their values, and how many more there are."""
    shown = rows.select(range(min(rows.num_columns, COLUMNS))).slice(0, most)
    columns = [_texts(column) for column in shown.columns]
    right = [_is_number(column.type) for column in shown.columns]
    left_out = []
    if rows.num_rows > most:
        left_out.append(f"{rows.num_rows - most:,} more rows")
    if rows.num_columns > COLUMNS:
        left_out.append(f"{rows.num_columns - COLUMNS:,} more columns")
    return table(shown.column_names, zip(*columns, strict=True), right) + note(", ".join(left_out))


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    """The values of a column as texts. Types that SQL does not have are shown as Python prints them."""
    if pa.types.is_null(column.type):
        return [None] * len(column)
    try:
        found: list[str | None] = texts(column, sql_type(column.type)).to_pylist()
    except (HalfjoinError, pa.ArrowException):
        return [None if value is None else str(value) for value in column.to_pylist()]
    return found


def _is_number(type: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type))

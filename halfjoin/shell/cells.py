"""The values of Arrow columns as texts, as PostgreSQL's psql shows them."""

from __future__ import annotations

import pyarrow as pa

from halfjoin.engine.scalar.arrow_types import sql_type
from halfjoin.engine.scalar.texts import texts as written


def cells(rows: pa.Table) -> list[tuple[str | None, ...]]:
    """The rows as texts; None is NULL. Each column is printed as a whole."""
    if not rows.num_columns:
        return [()] * rows.num_rows
    return list(zip(*(texts(column).to_pylist() for column in rows.columns), strict=True))


def texts(column: pa.ChunkedArray) -> pa.Array:
    """A column's values as PostgreSQL prints them; a boolean is `t` or `f`."""
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), pa.string())
    return written(column, sql_type(column.type))

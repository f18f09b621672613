"""The values of Arrow columns as texts, as PostgreSQL's psql shows them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.arrow_types import sql_type
from halfjoin.engine.scalar.casts_text import to_text
from halfjoin.sql.types import BOOLEAN, TEXT


def cells(rows: pa.Table) -> list[tuple[str | None, ...]]:
    """The rows as texts; None is NULL. Each column is printed as a whole."""
    if not rows.num_columns:
        return [()] * rows.num_rows
    return list(zip(*(texts(column).to_pylist() for column in rows.columns), strict=True))


def texts(column: pa.ChunkedArray) -> pa.Array:
    """A column's values as PostgreSQL prints them; a boolean is `t` or `f`."""
    values = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_null(values.type):
        return values.cast(pa.string())
    kind = sql_type(values.type)
    if kind == BOOLEAN:
        return pc.if_else(values, "t", "f")
    printed = to_text(kind, TEXT)
    return values if printed is None else printed(values)

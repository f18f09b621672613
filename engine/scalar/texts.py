"""The values of a column as texts, as PostgreSQL prints them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.casts_text import to_text
from halfjoin.sql.types import TEXT, Kind, SqlType


def texts(values: pa.ChunkedArray, type: SqlType) -> pa.Array:
    """Values of a type as PostgreSQL's output functions write them. A char(n) has its blanks."""
    made = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(made, pa.ChunkedArray):
        made = pa.concat_arrays(made.chunks) if made.num_chunks else pa.array([], made.type)
    if type.kind is Kind.BOOLEAN:
        return pc.if_else(made, "t", "f")
    if type.kind is Kind.CHAR and type.precision is not None:
        return pc.utf8_rpad(made, type.precision, " ")
    printed = to_text(type, TEXT)
    return made if printed is None else printed(made)

"""The values of a column as texts, as PostgreSQL prints them."""

from __future__ import annotations

import pyarrow as pa

from halfjoin.engine.scalar.casts_text import part_text
from halfjoin.sql.types import SqlType


def texts(values: pa.ChunkedArray, type: SqlType) -> pa.Array:
    """Values of a type as PostgreSQL's output functions write them. A char(n) has its blanks."""
    made = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(made, pa.ChunkedArray):
        made = pa.concat_arrays(made.chunks) if made.num_chunks else pa.array([], made.type)
    return part_text(type)(made)

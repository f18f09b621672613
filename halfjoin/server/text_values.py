"""Columns of an answer in PostgreSQL's text format, whole columns at a time."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.texts import texts
from halfjoin.sql.types import SqlType


def text_values(values: pa.Array, type: SqlType) -> pa.Array:
    """The values as bytes, as PostgreSQL's output functions write them; NULL stays NULL."""
    made = texts(values, type)
    return pc.cast(made, pa.binary())

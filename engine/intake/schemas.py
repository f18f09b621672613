"""The columns of anything that holds rows, as an Arrow schema: for a table that is to be like it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from halfjoin.errors import HalfjoinError


def schema_of(like: Any) -> pa.Schema:
    """The Arrow schema of a pyarrow Schema or Table, a pandas, polars or Spark DataFrame, or rows as dicts.

    Raises:
        HalfjoinError: it has no columns.
    """
    if isinstance(like, pa.Schema):
        return like
    if isinstance(getattr(like, "schema", None), pa.Schema):
        return like.schema
    if hasattr(like, "to_records") and hasattr(like, "iloc"):  # pandas: its index is no column, unless it has a name
        named = [name for name in like.index.names if name is not None]
        return pa.Schema.from_pandas(like, preserve_index=bool(named)).remove_metadata()
    if hasattr(like, "isStreaming"):  # a Spark DataFrame, classic or Connect
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(like.schema)
    if hasattr(like, "__arrow_c_schema__"):
        return pa.schema(like)
    if hasattr(like, "__arrow_c_stream__"):
        return pa.table(like).schema
    if isinstance(like, list) and like and isinstance(like[0], dict):
        return pa.Table.from_pylist(like).schema
    raise HalfjoinError(f"{type(like).__name__} has no columns",
                        remedy="give a pyarrow Schema or Table, or a DataFrame")  # fmt: skip

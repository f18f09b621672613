"""The columns of anything that holds rows, as an Arrow schema: for a table that is to be like it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any

import pyarrow as pa

from halfjoin.errors import HalfjoinError

_UNNAMED = re.compile(r"__index_level_\d+__")  # how pandas names what has no name, in Arrow and in Parquet


def counts_rows(name: str) -> bool:
    """Whether a column is an index of pandas without a name, which is no column of the rows."""
    return _UNNAMED.fullmatch(name) is not None


def schema_of(like: Any) -> pa.Schema:
    """The Arrow schema of a pyarrow Schema or Table, a pandas, polars or Spark DataFrame, rows as dicts, or a dict of
    columns.

    Raises:
        HalfjoinError: it has no columns, or one without an Arrow type.
    """
    try:
        return _schema(like)
    except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError) as problem:
        raise HalfjoinError(f"the columns of the {type(like).__name__} have no Arrow types: {problem}",
                            remedy="cast what Arrow does not know, such as polars' Int128, or write CREATE TABLE"
                            ) from None  # fmt: skip


def _schema(like: Any) -> pa.Schema:
    if isinstance(like, pa.Schema):
        return like
    if any(kind.__module__.startswith("pyspark.sql.") for kind in type(like).__mro__):
        return _of_spark(like)  # before others: a frame of Spark Connect takes any attribute for a column
    if not hasattr(like, "collect_schema") and isinstance(getattr(like, "schema", None), pa.Schema):
        return like.schema
    if hasattr(like, "to_records") and hasattr(like, "iloc"):  # pandas: its index is no column, unless it has a name
        return _of_pandas(like)
    if hasattr(like, "__arrow_c_schema__"):
        return pa.schema(like)
    if hasattr(like, "__arrow_c_stream__"):
        return pa.table(like).schema
    if isinstance(like, list) and like and all(isinstance(row, dict) for row in like):
        return pa.schema([(str(name), type_of(str(name), values)) for name, values in values_by_name(like).items()])
    if isinstance(like, Mapping) and like:
        return pa.schema([(str(name), type_of(str(name), values)) for name, values in like.items()])
    remedy = "collect it first" if hasattr(like, "collect") else "give a pyarrow Schema or Table, or a DataFrame"
    raise HalfjoinError(f"{type(like).__name__} has no columns", remedy=remedy)


def values_by_name(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """The values of each column that some row has; None where a row does not have it."""
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(chain.from_iterable(rows))}


def _of_pandas(frame: Any) -> pa.Schema:
    """The columns of a frame, then the levels of its index that have a name which no column has."""
    columns = [(str(name), frame.iloc[:, number]) for number, name in enumerate(frame.columns)]
    given = {name for name, _ in columns}
    columns += [(str(name), frame.index.get_level_values(number).to_series())
                for number, name in enumerate(frame.index.names) if name is not None and str(name) not in given]
    return pa.schema([(name, type_of(name, values if values.dtype == object else values.iloc[:0]))
                      for name, values in columns])  # fmt: skip


def _of_spark(frame: Any) -> pa.Schema:
    """The columns of a Spark DataFrame, classic or Connect. No row is computed, so it may be a stream's. Spark's own
    function for it is internal: what must be given to it differs between releases."""
    from pyspark.sql import types as spark

    fields = [spark.StructField(one.name, spark.DayTimeIntervalType(), one.nullable)
              if isinstance(one.dataType, spark.CalendarIntervalType) else one for one in frame.schema]  # fmt: skip
    return frame.sparkSession.createDataFrame([], spark.StructType(fields)).toArrow().schema


def type_of(name: str, values: Any) -> pa.DataType:
    """The Arrow type of a column of pandas or Python; only that of Python's objects depends on the values.

    Raises:
        HalfjoinError: the values have no type in common.
    """
    try:
        if hasattr(values, "__arrow_c_stream__") and not hasattr(values, "iloc"):  # of polars
            return pa.chunked_array(values).type
        return pa.array(values, from_pandas=True).type
    except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError) as problem:
        raise HalfjoinError(f"the column {name} has no Arrow type: {problem}",
                            remedy="give its values one type"
                            + (f", as with frame.astype({{{name!r}: 'string'}})" if hasattr(values, "dtype") else "")
                            + ", or write CREATE TABLE") from None  # fmt: skip

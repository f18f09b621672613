"""The errors of what is given in place of rows: they say how to give the same as rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

import pyarrow as pa

from halfjoin.errors import InvalidRow


def no_rows(table: str, given: Any) -> InvalidRow:
    """The error of something that is no rows."""
    name = type(given).__name__
    remedy = None
    if name == "Series":
        remedy = f"give its column a name: {{'column': the {name}}}"
    elif hasattr(given, "collect"):
        remedy = "collect it first"
    elif hasattr(given, "to_table"):  # a dataset of Arrow, or its scanner
        remedy = f"give the {name}'s to_table()"
    elif isinstance(given, Iterator):
        remedy = "give a list of the rows, or pa.RecordBatchReader.from_batches(schema, ...) of batches"
    elif getattr(getattr(given, "dtype", None), "names", None):  # structs of NumPy
        remedy = "give a pandas.DataFrame of it"
    return InvalidRow(f"rows must be a pyarrow Table, a list of dicts, or anything with __arrow_c_stream__, not {name}",
                      remedy=remedy, table=table)  # fmt: skip


def no_row(table: str, number: int, given: Any) -> InvalidRow:
    """The error of something in a list that is no row."""
    remedy = None
    if isinstance(given, pa.RecordBatch | pa.Table):
        remedy = "give pa.Table.from_batches(...) of batches, and pa.concat_tables(...) of tables"
    elif is_dataclass(given):
        remedy = "give dataclasses.asdict(...) of each"
    elif hasattr(given, "_asdict"):
        remedy = "give the _asdict() of each"
    elif hasattr(given, "asDict"):  # a row of Spark
        remedy = "give the asDict() of each"
    elif hasattr(given, "model_dump"):  # a model of pydantic
        remedy = "give the model_dump() of each"
    elif hasattr(given, "keys"):  # a row of sqlite3, or of another driver
        remedy = "give dict(...) of each"
    elif isinstance(given, tuple | list):
        remedy = "give {'column': value, ...} for each"
    return InvalidRow(f"a row must be a dict, not {type(given).__name__}", remedy=remedy, table=table, row=number)

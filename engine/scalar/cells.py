"""One value of a column, as errors name it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from halfjoin.engine.scalar.arrow_types import sql_type
from halfjoin.engine.scalar.texts import texts


def cell(column: pa.Array | pa.ChunkedArray, row: int) -> Any:
    """The Python value in a row. Dates of years for which Python has none are PostgreSQL's texts, also in arrays and
    rows. A text of a refused row that is not UTF-8 is its bytes, and what has such a text is None.

    >>> cell(pa.array([3_652_425 + 10_000], pa.date32()), 0)
    '11997-05-19'
    """
    value = column[row]
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return None if pa.types.is_nested(value.type) else value.cast(pa.binary()).as_py()
    except (OverflowError, ValueError):
        if pa.types.is_struct(value.type):
            return {field.name: cell(pa.array([value[place]], field.type), 0) for place, field in enumerate(value.type)}
        if pa.types.is_list(value.type) and pa.types.is_nested(value.type.value_type):
            return cells(value.values)  # it need not be an array of SQL: one that is refused may have NULLs for arrays
        return texts(pa.array([value], column.type), sql_type(column.type))[0].as_py()


def cells(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of all rows, as `cell` gives them."""
    try:
        return list(column.to_pylist())
    except (UnicodeDecodeError, OverflowError, ValueError):
        return [cell(column, row) for row in range(len(column))]

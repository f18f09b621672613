"""The user's own table functions: a pure function from a batch of arguments to a batch of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.columns import convert
from halfjoin.engine.tables.exploded import Exploded
from halfjoin.engine.updates import DIFF, TIME, Ints
from halfjoin.sql.errors import DataError, InvalidRow
from halfjoin.sql.types import SqlType

ROW = "__row"


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A registered function and the columns it promises."""

    name: str
    function: Callable[[pa.RecordBatch], Any]
    returns: Mapping[str, SqlType]


def call_user_function(user: UserFunction, arguments: list[pa.Array], length: int) -> Exploded:
    """Call it on a RecordBatch of columns `0`, `1`, ... and check what comes back.

    Raises:
        DataError: it raised, or gave other columns than it promised, or a `__row` that is not an argument row.
    """
    batch = pa.RecordBatch.from_arrays(arguments, names=[str(i) for i in range(len(arguments))])
    try:
        made = user.function(batch)
    except Exception as problem:
        raise DataError(f"table function {user.name} failed: {type(problem).__name__}: {problem}") from problem
    if not hasattr(made, "column") or ROW not in made.schema.names:
        raise DataError(f"table function {user.name} must return a RecordBatch with a column {ROW}")
    rows = _ints(user, made, ROW)
    if len(rows) and (rows.min() < 0 or rows.max() >= length):
        raise DataError(f"table function {user.name} gave {ROW} outside 0..{length - 1}")
    columns = [_column(user, made, name, kind) for name, kind in user.returns.items()]
    time = _ints(user, made, TIME) if TIME in made.schema.names else None
    diff = _ints(user, made, DIFF) if DIFF in made.schema.names else None
    order = np.argsort(rows, kind="stable")
    if (order[1:] > order[:-1]).all():
        return Exploded(rows, tuple(columns), time, diff)
    indices = pa.array(order)
    return Exploded(
        rows[order],
        tuple(column.take(indices) for column in columns),
        None if time is None else time[order],
        None if diff is None else diff[order],
    )


def _column(user: UserFunction, made: pa.RecordBatch, name: str, kind: SqlType) -> pa.Array:
    if name not in made.schema.names:
        raise DataError(f"table function {user.name} did not return its column {name}")
    column = made.column(name)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    try:
        return convert(user.name, name, kind, column)
    except InvalidRow as problem:
        raise DataError(f"table function {problem}") from problem


def _ints(user: UserFunction, made: pa.RecordBatch, name: str) -> Ints:
    column = made.column(name)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    try:
        if column.null_count or not (pa.types.is_integer(column.type) or len(column) == 0):
            raise TypeError
        values: Ints = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    except (TypeError, pa.ArrowInvalid):
        raise DataError(f"table function {user.name}: column {name} must be integers without NULL") from None
    return values

"""Calls the user's table functions: pure functions from a batch of arguments to a batch of results.

If a function fails for a row, that row becomes an error. A failed call does not say which row it failed for. So the
function is called again on halves of the batch, and on halves of those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from halfjoin.engine.linear.tables.exploded import Exploded
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.columns import convert
from halfjoin.engine.updates.updates import DIFF, MINIMUM, TIME, Ints, constant
from halfjoin.errors import DataError, InvalidRow
from halfjoin.sql.types import RESULT_ROWS, SqlType

ROW = "__row"


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A registered function, and the columns that it promises to return. `what`: the words before its name in
    errors."""

    name: str
    function: Callable[[pa.RecordBatch], Any]
    returns: Mapping[str, SqlType]
    what: str = "table function"

    def __str__(self) -> str:
        return f"{self.what} {self.name}"


@dataclass(frozen=True, slots=True)
class GroupFunction:
    """A registered aggregate that sees all rows of a group, and the type that it promises to return.

    `function` gets the group's distinct argument rows (columns `0`, `1`, ...), and how often each is there (int64).
    """

    name: str
    function: Callable[[pa.RecordBatch, Ints], Any]
    returns: SqlType


@dataclass(frozen=True, slots=True)
class ReduceFunction:
    """A registered reduce, and the columns that it promises to return.

    `function` gets the rows of a group and their counts (`__diff`). `vectorised`: it gets those of many groups at once,
    and the number of each row's group (`__group`), which it returns as well.
    """

    name: str
    function: Callable[[pa.RecordBatch], Any]
    returns: Mapping[str, SqlType]
    vectorised: bool = False
    what: str = "reduce"

    def __str__(self) -> str:
        return f"{self.what} {self.name}"


def call_user_function(user: UserFunction, arguments: list[pa.Array], length: int) -> Exploded:
    """Call the function on a RecordBatch with columns `0`, `1`, ... and check its result.

    A row fails if the function raises for it, returns other columns than it promised, returns a `__row` that is not an
    argument row, or returns more than `RESULT_ROWS` rows.
    """
    batch = pa.RecordBatch.from_arrays(arguments, names=[str(i) for i in range(len(arguments))])
    parts: list[tuple[int, Exploded]] = []
    failed: list[int] = []
    messages: list[str] = []
    waiting = [(0, length)]
    while waiting:
        start, stop = waiting.pop()
        try:
            parts.append((start, _call(user, batch.slice(start, stop - start))))
        except DataError as problem:
            if stop - start <= 1:
                failed.append(start)
                messages.append(str(problem))
            else:
                middle = (start + stop) // 2
                waiting += [(middle, stop), (start, middle)]
    if len(parts) == 1 and not failed:
        return parts[0][1]
    made = _joined(user, parts)  # also if no row fails alone: a function may refuse many rows at once
    return Exploded(made.rows, made.columns, made.time, made.diff, np.array(failed, np.int64), messages)


def _call(user: UserFunction, batch: pa.RecordBatch) -> Exploded:
    try:
        made = user.function(batch)
    except MemoryError:
        raise
    except DataError as problem:
        raise DataError(f"{user} {problem}") from problem
    except Exception as problem:
        raise DataError(f"{user} failed: {type(problem).__name__}: {problem}") from problem
    if not hasattr(made, "column") or ROW not in made.schema.names:
        raise DataError(f"{user} must return a RecordBatch with a column {ROW}")
    rows, length = integers_of(user, made, ROW), len(batch)
    if len(rows) and (rows.min() < 0 or rows.max() >= length):
        raise DataError(f"{user} gave {ROW} outside 0..{length - 1}")
    if len(rows) > RESULT_ROWS and int(np.bincount(rows).max()) > RESULT_ROWS:
        raise DataError(f"{user} made more than {RESULT_ROWS:,} rows of one")
    columns = [column_of(user, made, name, kind) for name, kind in user.returns.items()]
    time = integers_of(user, made, TIME) if TIME in made.schema.names else None
    diff = integers_of(user, made, DIFF) if DIFF in made.schema.names else None
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


def _joined(user: UserFunction, parts: list[tuple[int, Exploded]]) -> Exploded:
    """The joined results of pieces of a batch. `parts` has, in order, each piece's first row and its result."""
    if not parts:
        return Exploded(np.zeros(0, np.int64), tuple(pa.nulls(0, arrow_type(kind)) for kind in user.returns.values()))
    rows = np.concatenate([start + part.rows for start, part in parts])
    columns = [pa.concat_arrays(list(pieces)) for pieces in zip(*(part.columns for _, part in parts), strict=True)]
    times = [constant(MINIMUM, len(part.rows)) if part.time is None else part.time for _, part in parts]
    diffs = [constant(1, len(part.rows)) if part.diff is None else part.diff for _, part in parts]
    return Exploded(rows, tuple(columns), np.concatenate(times), np.concatenate(diffs))


def column_of(user: UserFunction | ReduceFunction, made: pa.RecordBatch, name: str, kind: SqlType) -> pa.Array:
    """A column that a function returned, in the type that it promised.

    Raises:
        DataError: it is missing, or has a value of another type.
    """
    if name not in made.schema.names:
        raise DataError(f"{user} did not return its column {name}")
    column = made.column(name)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    try:
        return convert(user.name, name, kind, column)
    except InvalidRow as problem:
        raise DataError(f"{user.what} {problem.with_(remedy=None)}", remedy=problem.remedy) from problem


def integers_of(user: UserFunction | ReduceFunction, made: pa.RecordBatch, name: str) -> Ints:
    """A column of integers that a function returned.

    Raises:
        DataError: it has something else.
    """
    column = made.column(name)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    try:
        if column.null_count or not (pa.types.is_integer(column.type) or len(column) == 0):
            raise TypeError
        values: Ints = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    except (TypeError, pa.ArrowInvalid):
        raise DataError(f"{user}: column {name} must be integers without NULL") from None
    return values

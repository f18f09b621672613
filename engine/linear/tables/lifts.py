"""The two functions of a user's aggregate that adds up, as table functions that give one row for each row.

The lift takes the arguments, as Arrow arrays, and gives the columns that are added up. The result takes the sums, as
numpy arrays under the columns' names, and gives the values. Both see only rows without NULL; for other rows they give
NULL, so such a row does not count, and a sum over no rows has no value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from halfjoin.engine.linear.tables.user import ROW, UserFunction
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.errors import DataError, HalfjoinError
from halfjoin.sql.types import BIGINT, DOUBLE, SqlType
from halfjoin.sql.user_aggregate import UserAggregate, lift_of, result_of

Columns = Mapping[str, Any]


def lift_function(name: str, lift: Callable[..., Columns], sums: Mapping[str, SqlType]) -> UserFunction:
    """The lift of the aggregate `name` as a table function."""
    return UserFunction(lift_of(name), OfRows(lambda batch: _lifted(lift, batch), sums), sums, "the")


def result_function(defined: UserAggregate, result: Callable[..., Any]) -> UserFunction:
    """The result of an aggregate as a table function."""
    names, returns = [name for name, _ in defined.sums], {"value": defined.returns}

    def call(batch: pa.RecordBatch) -> Columns:
        given = (column.to_numpy() for column in batch.columns)
        return {"value": result(**dict(zip(names, given, strict=True)))}

    return UserFunction(result_of(defined.name), OfRows(call, returns), returns, "the")


def sums_of(name: str, lift: Callable[..., Columns], takes: tuple[SqlType, ...]) -> dict[str, SqlType]:
    """The columns that a lift gives, with their types: what it returns for no rows.

    Raises:
        HalfjoinError: it fails, or returns something else than columns of integers or floats.
    """
    batch = pa.RecordBatch.from_arrays([pa.nulls(0, arrow_type(type)) for type in takes], names=list(map(str, takes)))
    form = "return a dict of numpy or Arrow arrays of integers or floats, one value for each row"
    try:
        made = {column: as_array(values) for column, values in _lifted(lift, batch).items()}
    except Exception as problem:
        raise HalfjoinError(f"the lift of {name} failed for no rows: {type(problem).__name__}: {problem}",
                            remedy=form) from problem  # fmt: skip
    found = {}
    for column, array in made.items():
        if not (pt.is_integer(array.type) or pt.is_floating(array.type)) or not column or column.startswith("__"):
            raise HalfjoinError(f"the lift of {name} gives a column {column!r} of type {array.type}", remedy=form)
        found[column] = BIGINT if pt.is_integer(array.type) else DOUBLE
    if not found:
        raise HalfjoinError(f"the lift of {name} gives no columns", remedy=form)
    return found


@dataclass(frozen=True, slots=True)
class OfRows:
    """A function of a RecordBatch that gives columns, as a table function that gives one row for each row.

    `call` is only called for rows without NULL. `columns`: what it returns.
    """

    call: Callable[[pa.RecordBatch], Columns]
    columns: Mapping[str, SqlType]

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns, NULL for a row in which an argument is NULL; and `__row`."""
        known = np.ones(len(batch), np.bool_)
        for column in batch.columns:
            if column.null_count:
                known &= column.is_valid().to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(known)
        made = self._made(batch if len(rows) == len(batch) else batch.take(pa.array(rows)))
        if len(rows) < len(batch):
            places = pa.array(np.cumsum(known) - 1, mask=~known)
            made = {name: array.take(places) for name, array in made.items()}
        return pa.RecordBatch.from_pydict({ROW: pa.array(np.arange(len(batch))), **made})

    def _made(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        if not len(batch):
            return {name: pa.nulls(0, arrow_type(type)) for name, type in self.columns.items()}
        given = self.call(batch)
        if set(given) != set(self.columns):
            raise DataError(f"gives the columns {', '.join(given)} instead of {', '.join(self.columns)}")
        made = {name: as_array(given[name]) for name in self.columns}
        for name, array in made.items():
            if len(array) != len(batch):
                raise DataError(f"gives {len(array)} values of {name} for {len(batch)} rows")
        return made


def _lifted(lift: Callable[..., Columns], batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """What a lift returns, with integers for booleans."""
    made = lift(*batch.columns)
    if not isinstance(made, Mapping):
        raise DataError(f"returns a {type(made).__name__}, not a dict of columns")
    arrays = {name: as_array(values) for name, values in made.items()}
    for name, array in arrays.items():
        if array.null_count:
            raise DataError(f"gives NULL in its column {name}")
    return {name: array.cast(pa.int64()) if pt.is_boolean(array.type) else array for name, array in arrays.items()}


def as_array(values: Any) -> pa.Array:
    """What a function returned, as one Arrow array."""
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    return values if isinstance(values, pa.Array) else pa.array(values)

"""Rows that a statement is given, as a table that it reads and nobody else sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from halfjoin.catalog.models import ColumnModel, Table
from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.batch.readable import closed
from halfjoin.engine.batch.state import State
from halfjoin.engine.system.counted import Counted
from halfjoin.engine.updates.updates import Updates, constant
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Column


def with_rows(state: State, name: str, columns: Sequence[Column], rows: pa.Table) -> State:
    """The state with a table of these rows, for the rest of the statement."""
    names = [column.name for column in columns]
    if len(set(names)) < len(names):
        raise UnsupportedSQL("two columns of RETURNING in WITH have the same name", remedy="give one an alias")
    start, upper, catalog = closed(state), max(state.upper, 1), state.catalog.copy()
    models = tuple(ColumnModel(name=column.name, type=column.type) for column in columns)
    catalog.tables[name] = Table(name=name, columns=models)
    arrays = {column: _whole(array) for column, array in zip(names, rows.columns, strict=True)}
    count = rows.num_rows
    schema = {column: array.type for column, array in arrays.items()}
    run = make_run(Updates(arrays, constant(upper - 1, count), constant(1, count)), upper)
    made = Collection(name, schema, 1, held=(run,) if len(run) else ())
    return replace(start, upper=upper, catalog=catalog, tables=Counted({**start.tables, name: made}))


def _whole(array: pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)

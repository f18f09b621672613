"""Rows of a statement as a collection beside the tables, so that expressions over them are evaluated as queries are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.expand import expand
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.batch.readable import closed
from halfjoin.engine.batch.state import State
from halfjoin.engine.system.counted import Counted
from halfjoin.engine.updates.updates import Updates, constant

SCRATCH = "\0rows"  # no table can have this name
NUMBER = "=number"


def beside(state: State, rows: Updates) -> State:
    """The state with a collection `SCRATCH` of these rows. If no time is closed yet, as if time 0 were closed."""
    start, upper = closed(state), max(state.upper, 1)
    schema = {name: column.type for name, column in rows.columns.items()}
    run = make_run(Updates(rows.columns, constant(upper - 1, len(rows)), rows.diff), upper)
    made = Collection(SCRATCH, schema, 1, held=(run,) if len(run) else ())
    return replace(start, upper=upper, tables=Counted({**start.tables, SCRATCH: made}))


def numbered(columns: Sequence[pa.Array], length: int) -> Updates:
    """Rows with their numbers as the last column. Columns are named by their positions."""
    every = [*columns, pa.array(np.arange(length))]
    return Updates({str(n): column for n, column in enumerate(every)}, constant(0, length), constant(1, length))


def singly(rows: Updates, name: str) -> Updates:
    """The rows where one of count n comes n times, each with the count 1."""
    made = expand(rows, name)
    return Updates(made.columns, constant(0, len(made)), constant(1, len(made)))

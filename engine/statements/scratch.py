"""Rows of a statement as a collection beside the tables, so that expressions over them are evaluated as queries are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.expand import expand
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.batch.readable import closed
from halfjoin.engine.batch.state import State
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.statements.evaluating import Evaluation, evaluate, run
from halfjoin.engine.system.counted import Counted
from halfjoin.engine.updates.updates import Updates, constant
from halfjoin.sql.relation import Relation
from halfjoin.sql.types import SqlType

SCRATCH = "\0rows"  # no table can have this name
NUMBER = "=number"


class _Bound(Protocol):
    @property
    def relation(self) -> Relation: ...


B = TypeVar("B", bound=_Bound)


def beside(state: State, rows: Updates) -> State:
    """The state with a collection `SCRATCH` of these rows. If no time is closed yet, as if time 0 were closed."""
    start, upper = closed(state), max(state.upper, 1)
    schema = {name: column.type for name, column in rows.columns.items()}
    run = make_run(Updates(rows.columns, constant(upper - 1, len(rows)), rows.diff), upper)
    made = Collection(SCRATCH, schema, 1, held=(run,) if len(run) else ())
    return replace(start, upper=upper, tables=Counted({**start.tables, SCRATCH: made}))


@dataclass(frozen=True, slots=True)
class OverRows(Generic[B]):
    """What is bound over a collection of rows beside the tables, and its evaluation; None: it is planned each time."""

    bound: B
    evaluation: Evaluation | None

    def of(self, state: State, columns: Sequence[pa.Array], length: int) -> Updates:
        """What it makes of rows."""
        there = beside(state, numbered(columns, length))
        if self.evaluation is None:
            return evaluate(there, self.bound.relation, None, distinct=False)
        return run(there, self.evaluation, None, distinct=False)


def nothing(types: Sequence[SqlType]) -> Updates:
    """No rows with columns of these types, and their numbers."""
    return numbered([pa.nulls(0, arrow_type(type)) for type in types], 0)


def numbered(columns: Sequence[pa.Array], length: int) -> Updates:
    """Rows with their numbers as the last column. Columns are named by their positions."""
    every = [*columns, pa.array(np.arange(length))]
    return Updates({str(n): column for n, column in enumerate(every)}, constant(0, length), constant(1, length))


def singly(rows: Updates, name: str) -> Updates:
    """The rows where one of count n comes n times, each with the count 1."""
    made = expand(rows, name)
    return Updates(made.columns, constant(0, len(made)), constant(1, len(made)))

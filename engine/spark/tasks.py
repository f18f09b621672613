"""The code inside Spark's tasks: the compiled operators of the local runner, on the batches from Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.linear.evaluate import evaluate_all
from halfjoin.engine.linear.failures import DROPPED
from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.linear.operators import compile_linear
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.scalar import compile
from halfjoin.engine.spark.layout import ERROR, ERRORS, Layout
from halfjoin.engine.spark.task_errors import TooHeavy, call
from halfjoin.engine.spark.types import encode, restore
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.consolidate import groups
from halfjoin.engine.updates.updates import DIFF, TIME, TOO_HEAVY, Updates, is_wide
from halfjoin.planner.linear import Linear
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Expr

Batches: TypeAlias = Iterator[pa.RecordBatch]
OnUpdates: TypeAlias = Callable[[Updates, list[Updates]], tuple[Updates, list[pa.Array]]]


class Task(Protocol):
    """A picklable description of a task: from updates of one layout to updates and keys of another."""

    @property
    def inputs(self) -> Layout:
        """The layout of the batches from Spark."""

    @property
    def outputs(self) -> Layout:
        """The layout of the batches for Spark."""

    def compile(self) -> OnUpdates:
        """The function that a task applies to updates without failing rows. It appends new failing rows to a list."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Linear operators, one after the other, then the keys of the next half-join.

    A row whose key fails has no partner. The path of the input whose columns the key reads reports the error.
    """

    inputs: Layout
    outputs: Layout
    operators: tuple[Linear, ...]
    probes: tuple[Expr, ...]
    registry: Registry

    def compile(self) -> OnUpdates:
        """Compile the operators and the keys."""
        operators = [compile_linear(operator, self.registry) for operator in self.operators]
        probes = [(compile(expr), expr) for expr in self.probes]

        def run(updates: Updates, errors: list[Updates]) -> tuple[Updates, list[pa.Array]]:
            for operator in operators:
                updates = operator(updates, errors)
            if not len(updates):
                return updates, []
            keys, updates = evaluate_all(probes, updates, DROPPED)
            return updates, keys

        return run


@dataclass(frozen=True, slots=True)
class Arrange:
    """A collection's rows with the keys of an arrangement. A row with several keys comes once with each."""

    inputs: Layout
    outputs: Layout
    key: ArrangementKey
    registry: Registry

    def compile(self) -> OnUpdates:
        """Compile the keys."""
        columns = key_columns(self.key, self.registry)

        def run(updates: Updates, errors: list[Updates]) -> tuple[Updates, list[pa.Array]]:
            keys, origins = columns(updates)
            if origins is None:
                return updates, keys
            numbers = groups([pa.array(origins), *keys], len(origins))
            first = np.unique(numbers, return_index=True)[1]
            indices = pa.array(first)
            return updates.take(origins[first]), [key.take(indices) for key in keys]

        return run


def in_tasks(task: Task) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`."""
    return partial(call, partial(_run, cloudpickle.dumps(task)))


def updates_of(batch: Any, layout: Layout) -> Updates:
    """A batch or table from Spark as updates. It must not have failing rows."""
    columns = {name: restore(array_of(batch, i), kind) for i, (name, kind) in enumerate(layout.columns)}
    time, diff = (array_of(batch, name).to_numpy() for name in (TIME, DIFF))
    return Updates(columns, time, diff)


def gathered(batches: Batches, rows: int = limits.TASK_ROWS) -> Iterator[pa.Table]:
    """Join Spark's batches into larger ones, of at least `rows` rows except the last."""
    waiting: list[pa.RecordBatch] = []
    length = 0
    for batch in batches:
        waiting.append(batch)
        length += len(batch)
        if length >= rows:
            yield pa.Table.from_batches(waiting)
            waiting, length = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _run(pickled: bytes, batches: Batches) -> Batches:
    task, run = _compiled(pickled)
    for table in gathered(batches):
        if task.inputs.errors:
            yield from passing(table, task.outputs)
            table = table.filter(table.column(ERROR).is_null())
        errors: list[Updates] = []
        if len(table):
            updates, keys = run(updates_of(table, task.inputs), errors)
            if len(updates):
                yield from outgoing(updates, keys, task.outputs)
        for failed in errors:
            yield from failing(failed, task.outputs)


@lru_cache(maxsize=256)
def _compiled(pickled: bytes) -> tuple[Task, OnUpdates]:
    """Compile a task once in each of Spark's Python processes, which serve many tasks."""
    task: Task = pickle.loads(pickled)
    return task, task.compile()


def array_of(batch: Any, column: int | str) -> pa.Array:
    """A column of a batch or table, as one array."""
    found = batch.column(column)
    if isinstance(found, pa.ChunkedArray):
        return found.chunk(0) if found.num_chunks == 1 else found.combine_chunks()
    return found


def outgoing(updates: Updates, keys: Sequence[pa.Array], layout: Layout) -> Batches:
    """Updates with their keys, for Spark.

    Raises:
        TooHeavy: an int64 cannot hold a weight. This process then computes with unbounded integers.
    """
    if is_wide(updates.diff):
        raise TooHeavy(TOO_HEAVY)
    columns = {}
    for i, (name, kind) in enumerate(layout.columns):
        column = updates.columns[name]
        columns[f"c{i}"] = encode(column if column.type == kind else column.cast(kind))
    columns |= {f"k{i}": encode(key) for i, key in enumerate(keys)}
    yield from _batches({**columns, TIME: pa.array(updates.time), DIFF: pa.array(updates.diff)}, layout)


def failing(failed: Updates, layout: Layout) -> Batches:
    """Error updates, for Spark. Raises the same errors as `outgoing`."""
    if is_wide(failed.diff):
        raise TooHeavy(TOO_HEAVY)
    columns = dict(zip(ERRORS, (failed.columns[name] for name in ERROR_SCHEMA), strict=True))
    yield from _batches({**columns, TIME: pa.array(failed.time), DIFF: pa.array(failed.diff)}, layout)


def passing(table: pa.Table, layout: Layout) -> Batches:
    """Pass on the failing rows of earlier operators."""
    failed = table.filter(table.column(ERROR).is_valid())
    if len(failed):
        yield from _batches({name: array_of(failed, name) for name in (*ERRORS, TIME, DIFF)}, layout)


def _batches(columns: dict[str, pa.Array], layout: Layout) -> Batches:
    """Batches of the layout. Columns that are not given are NULL."""
    schema, length = layout.arrow_schema, len(columns[TIME])
    if ERROR in columns and not layout.errors:
        raise AssertionError(f"an expression failed that should not be able to fail: {columns[ERROR][0]}")
    arrays = [columns[field.name] if field.name in columns else pa.nulls(length, field.type) for field in schema]
    whole = pa.RecordBatch.from_arrays(arrays, schema=schema)
    for start in range(0, length, limits.TASK_ROWS):
        yield whole.slice(start, limits.TASK_ROWS)

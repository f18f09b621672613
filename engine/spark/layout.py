"""The columns of a stream of updates inside Spark, and how linear operators change them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from halfjoin.engine.linear.failures import SCHEMA as ERROR_SCHEMA
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.spark.types import encoded, spark_type
from halfjoin.engine.updates.updates import DIFF, TIME
from halfjoin.planner.fallibility import step_fallible
from halfjoin.planner.linear import Explode, Extend, Keep, Linear, Step, Temporal
from halfjoin.sql.types import BIGINT

Frame: TypeAlias = Any  # a Spark DataFrame, classic or Connect

# The columns of a failing row that travels with the stream: those of the error collection.
ERRORS = {f"__{name}": kind for name, kind in ERROR_SCHEMA.items()}
ERROR = next(iter(ERRORS))  # NULL in rows that do not fail


@dataclass(frozen=True, slots=True)
class Layout:
    """A stream's columns: names and Arrow types in order, types of its keys, and whether failing rows travel along.

    In Spark the columns are `c0`, `c1`, ... and the keys `k0`, `k1`, ..., because Spark does not distinguish names that
    differ only in case. After them come `ERRORS` if failing rows travel along, then `__time` and `__diff`. A failing
    row has values only in `ERRORS`, `__time` and `__diff`.
    """

    columns: tuple[tuple[str, pa.DataType], ...]
    keys: tuple[pa.DataType, ...] = ()
    errors: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names in the plan."""
        return tuple(name for name, _ in self.columns)

    def position(self, name: str) -> int:
        """The position of a column."""
        return self.names.index(name)

    @property
    def tail(self) -> tuple[str, ...]:
        """The names after the columns and keys."""
        return (*ERRORS, TIME, DIFF) if self.errors else (TIME, DIFF)

    @property
    def in_spark(self) -> tuple[str, ...]:
        """All names in Spark."""
        columns = (f"c{i}" for i in range(len(self.columns)))
        return (*columns, *(f"k{i}" for i in range(len(self.keys))), *self.tail)

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of batches that tasks return."""
        kinds = [*(encoded(kind) for _, kind in self.columns), *map(encoded, self.keys)]
        kinds += ERRORS.values() if self.errors else []
        return pa.schema(list(zip(self.in_spark, [*kinds, pa.int64(), pa.int64()], strict=True)))

    @property
    def struct(self) -> StructType:
        """The same schema in Spark's types."""
        kinds = [*(spark_type(kind) for _, kind in self.columns), *map(spark_type, self.keys)]
        kinds += map(spark_type, ERRORS.values()) if self.errors else []
        kinds += [spark_type(pa.int64())] * 2
        return StructType([StructField(name, kind) for name, kind in zip(self.in_spark, kinds, strict=True)])

    def through(self, operators: Iterable[Linear]) -> Layout:
        """The layout after linear operators, one after the other. Without keys."""
        columns, errors = dict(self.columns), self.errors
        for operator in operators:
            for step in operator.steps:
                columns = _after(columns, step)
            errors = errors or may_report(operator)
        return Layout(tuple(columns.items()), (), errors)

    def joined(self, schema: Mapping[str, pa.DataType], fetch: Sequence[tuple[str, str]]) -> Layout:
        """The layout with the columns that a half-join adds. Without keys."""
        return Layout((*self.columns, *((new, schema[name]) for name, new in fetch)), (), self.errors)


def may_report(operator: Linear) -> bool:
    """Whether an operator may turn a row into an error."""
    return operator.reports is not None and any(map(step_fallible, operator.steps))


def may_multiply(operator: Linear) -> bool:
    """Whether an operator may turn one row into several."""
    return any(isinstance(step, Explode | Temporal) for step in operator.steps)


def _after(columns: dict[str, pa.DataType], step: Step) -> dict[str, pa.DataType]:
    match step:
        case Extend(items):
            return {**columns, **{column.name: arrow_type(expr.type) for column, expr in items}}
        case Keep(names):
            return {name: columns[name] for name in names}
        case Explode(outputs=outputs, ordinality=ordinality):
            added = {column.name: arrow_type(column.type) for column in outputs}
            return {**columns, **added, **({ordinality.name: arrow_type(BIGINT)} if ordinality else {})}
        case _:
            return columns

"""Give contents as a Spark DataFrame: updates summed up to a time, each row as often as its count."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from halfjoin.engine.arrange.expand import expand
from halfjoin.engine.spark.frames import summed
from halfjoin.engine.spark.layout import ERROR, ERRORS, Frame, Layout
from halfjoin.engine.spark.session import quiet
from halfjoin.engine.spark.tasks import Batches, gathered, updates_of
from halfjoin.engine.spark.types import encode, spark_type
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.intervals import changed
from halfjoin.engine.updates.updates import DIFF, TIME
from halfjoin.errors import DataError


def contents(frame: Frame, layout: Layout, time: int, name: str) -> Frame:
    """Turn a frame of updates into rows with the columns' own names and types. Lazy, like all DataFrames.

    Its evaluation raises the errors of `Engine.read`: an expression that fails for a row, a negative count.
    """
    there = summed(frame.where(F.col(TIME) <= F.lit(time)), layout, by_time=False)
    there = there.withColumn(TIME, F.lit(time).cast("bigint")).select(*layout.in_spark)
    struct = spark.StructType([spark.StructField(column, _shown_type(kind)) for column, kind in layout.columns])
    with quiet():
        return there.mapInArrow(partial(_expanded, layout, time, name), struct)


def _expanded(layout: Layout, time: int, name: str, batches: Batches) -> Batches:
    for table in gathered(batches):
        if layout.errors:
            _raise_first(table, time, name)
            table = table.filter(table.column(ERROR).is_null())
        rows = expand(updates_of(table, layout), name).columns
        arrays = [_shown(rows[column]) for column in layout.names]
        whole = pa.RecordBatch.from_arrays(arrays, names=list(layout.names))
        for start in range(0, len(whole), limits.TASK_ROWS):
            yield whole.slice(start, limits.TASK_ROWS)


def changes(frame: Frame, layout: Layout) -> Frame:
    """Give a frame of updates the columns' own names and types, with `__time` and `__diff`."""
    struct = spark.StructType([spark.StructField(column, _shown_type(kind)) for column, kind in layout.columns])
    struct = struct.add(TIME, spark.LongType()).add(DIFF, spark.LongType())
    if all(_shown_type(kind) == spark_type(kind) for _, kind in layout.columns):
        return frame.toDF(*struct.names)
    with quiet():
        return frame.mapInArrow(partial(_as_shown, layout), struct)


def _as_shown(layout: Layout, batches: Batches) -> Batches:
    for table in gathered(batches):
        updates = updates_of(table, layout)
        columns = {name: _shown(updates.columns[name]) for name in layout.names}
        arrays = [*columns.values(), pa.array(updates.time), pa.array(updates.diff)]
        yield pa.RecordBatch.from_arrays(arrays, names=[*columns, TIME, DIFF])


def _raise_first(table: pa.Table, time: int, name: str) -> None:
    failed = table.filter(table.column(ERROR).is_valid())
    if len(failed):
        error, row, _ = (failed.column(column)[0].as_py() for column in ERRORS)
        raise DataError(error, view=name, time=time, row=row or None)


def _shown_type(kind: pa.DataType) -> spark.DataType:
    """The type that users see. A time of day is text (`23:59:59.000000`): few Spark sessions have a type for it."""
    if pt.is_list(kind):
        return spark.ArrayType(_shown_type(kind.value_type))
    if pt.is_struct(kind):
        return spark.StructType([spark.StructField(field.name, _shown_type(field.type)) for field in kind])
    return spark.StringType() if pt.is_time(kind) else spark_type(kind)


def _shown(column: pa.Array) -> pa.Array:
    return encode(changed(column, _with_text(column.type)))


def _with_text(kind: pa.DataType) -> pa.DataType:
    """The type with texts in place of times of day."""
    if pt.is_list(kind):
        return pa.list_(_with_text(kind.value_type))
    if pt.is_struct(kind):
        return pa.struct([(field.name, _with_text(field.type)) for field in kind])
    return pa.string() if pt.is_time(kind) else kind

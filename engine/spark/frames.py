"""Handle updates as Spark DataFrames: read them from files, map them with tasks, unite and sum them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from halfjoin.engine.spark.files import AS_WRITTEN, located
from halfjoin.engine.spark.layout import ERRORS, Frame, Layout
from halfjoin.engine.spark.session import quiet
from halfjoin.engine.spark.task_errors import packed
from halfjoin.engine.spark.tasks import Task, in_tasks
from halfjoin.engine.spark.types import has_floats, spark_type
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.updates import DIFF, TIME, TOO_MANY
from halfjoin.errors import DataError


def read(session: Any, runs: Iterable[StoredRun], schema: Mapping[str, pa.DataType], names: Sequence[str]) -> Frame:
    """Read columns of updates from files that tasks see, as `c0`, `c1`, ..., `__time`, `__diff`. Names may repeat."""
    files = [str(run.place / file.name) for run in runs for file in run.files]
    different = list(dict.fromkeys(names))
    fields = [StructField(name, spark_type(schema[name])) for name in different]
    struct = StructType([*fields, StructField(TIME, LongType()), StructField(DIFF, LongType())])
    with quiet():
        reader = session.read.schema(struct).options(**AS_WRITTEN)
        frame = reader.parquet(*map(located, files)) if files else session.createDataFrame([], struct)
    # By position, because a name may have a meaning in SQL.
    frame = frame.toDF(*(f"x{i}" for i in range(len(different))), TIME, DIFF)
    return frame.selectExpr(*(f"x{different.index(name)} AS c{i}" for i, name in enumerate(names)), TIME, DIFF)


def mapped(frame: Frame, task: Task) -> Frame:
    """Apply a task to every batch of a frame."""
    with quiet():
        return frame.mapInArrow(in_tasks(task), task.outputs.struct)


def summed(frame: Frame, layout: Layout, *, by_time: bool = True) -> Frame:
    """Sum the diffs of equal rows (of one time) and drop zeros. Sums are exact, as in `updates.consolidate`.

    The floats of a group are equal but may look different (-0.0 and 0.0). One of them, unchanged, stands for all.
    """
    names = [name for name in layout.in_spark if name != DIFF and (by_time or name != TIME)]
    floats = [f"c{i}" for i, (_, kind) in enumerate(layout.columns) if has_floats(kind)]
    given = [F.expr(f"first({name}) AS {name}_given") for name in floats]
    halves = [F.expr(f"sum(shiftright({DIFF}, 32)) AS __upper"), F.expr(f"sum({DIFF} & 4294967295L) AS __lower")]
    groups = frame.groupBy(*names).agg(*halves, *given).where("__upper <> 0 OR __lower <> 0")
    groups = groups.withColumn("__upper", F.expr("__upper + shiftright(__lower, 32)"))
    total = _PIECES if by_time else f"if({_FITS}, {_TOTAL}, raise_error('{_TOO_MANY}'))"
    kept = (f"{name}_given AS {name}" if name in floats else name for name in names)
    return groups.selectExpr(*kept, f"{total} AS {DIFF}").where(f"{DIFF} <> 0")


# A sum from its halves, after the lower one carries into the upper one; and its pieces, if int64 cannot hold it.
_FITS = "__upper BETWEEN -2147483648L AND 2147483647L"
_TOTAL = "shiftleft(__upper, 32) | (__lower & 4294967295L)"
_EXACT = "(cast(__upper AS decimal(20, 0)) * 4294967296BD + cast(__lower & 4294967295L AS decimal(20, 0)))"
_MOST = "if(__upper > 0, 9223372036854775807L, -9223372036854775807L - 1L)"
_TOO_MANY = f"DataError: {TOO_MANY} {packed(DataError(TOO_MANY))}"  # for people, and for `unpacked`
_PIECES = (
    f"explode(if({_FITS}, array({_TOTAL}), concat("
    f"array_repeat({_MOST}, cast({_EXACT} div {_MOST} AS int)), array(cast({_EXACT} % {_MOST} AS bigint)))))"
)


def union(frames: Iterable[Frame]) -> Frame:
    """All rows of frames of one layout."""
    return reduce(lambda one, other: one.union(other), frames)


def not_before(frame: Frame, since: int) -> Frame:
    """Updates whose times are not below `since`: earlier ones become `since`."""
    return frame.withColumn(TIME, F.greatest(F.col(TIME), F.lit(since).cast("bigint")))


def arranged(frame: Frame, layout: Layout, wanted: Layout) -> Frame:
    """Put columns into the wanted order, with the keys and the columns for failing rows."""
    if layout == wanted:
        return frame
    columns = [f"c{layout.position(name)} AS c{i}" for i, name in enumerate(wanted.names)]
    columns += [f"k{i}" for i in range(len(wanted.keys))]
    if wanted.errors and not layout.errors:
        columns += [f"{null(kind)} AS {name}" for name, kind in ERRORS.items()]
        return frame.selectExpr(*columns, TIME, DIFF)
    return frame.selectExpr(*columns, *wanted.tail)


def null(kind: pa.DataType) -> str:
    """NULL of a type, in SQL."""
    return f"CAST(NULL AS {spark_type(kind).simpleString()})"

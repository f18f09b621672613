"""Carry Arrow types through Spark: a type that Spark lacks travels as an integer or as bytes.

A column goes to Spark by `encode` and comes back by `restore`. In between values keep their equality, so Spark may
join and group by them. Spark's own meaning of a type plays no part: no time zone of a session, no rounding.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyspark.sql import functions as F
from pyspark.sql import types as spark

from halfjoin.engine.storage.parquet import file_type
from halfjoin.engine.updates.intervals import of_struct, to_struct
from halfjoin.engine.updates.structs import with_members
from halfjoin.errors import InvalidRow

_PLAIN = {
    pa.bool_(): spark.BooleanType(),
    pa.int16(): spark.ShortType(),
    pa.int32(): spark.IntegerType(),
    pa.int64(): spark.LongType(),
    pa.float32(): spark.FloatType(),
    pa.float64(): spark.DoubleType(),
    pa.string(): spark.StringType(),
    pa.binary(): spark.BinaryType(),
    pa.date32(): spark.DateType(),
    pa.timestamp("us"): spark.TimestampNTZType(),
    pa.timestamp("us", "UTC"): spark.TimestampType(),
}


# The types that columns of rows may have. Others have no type in Arrow, or values that SQL's types cannot hold.
_TAKEN = frozenset({
    "boolean", "byte", "short", "integer", "long", "float", "double", "decimal", "string", "char", "varchar", "binary",
    "date", "time", "timestamp", "timestamp_ntz", "daytimeinterval", "interval", "void",
})  # fmt: skip


def check_columns(table: str, struct: spark.StructType) -> None:
    """Refuse a frame's columns whose types no table's column takes, before a task meets them.

    Raises:
        InvalidRow: with the column, and its type in Spark's words.
    """
    for field in struct.fields:
        kind = field.dataType
        while isinstance(kind, spark.ArrayType):
            kind = kind.elementType
        if isinstance(kind, spark.MapType):  # a jsonb column takes it
            kind = spark.StructType([spark.StructField(field.name, part) for part in (kind.keyType, kind.valueType)])
        if isinstance(kind, spark.StructType):
            check_columns(table, kind)
            continue
        # NULL is a value of every type. A list of NULLs is not a value of any type.
        empty = kind != field.dataType and isinstance(kind, spark.NullType)
        if empty or (not isinstance(kind, spark.DecimalType) and _name(kind) not in _TAKEN):
            raise InvalidRow(f"a column of Spark's type {field.dataType.simpleString()} is not taken",
                             remedy="cast it to the type of the table's column", table=table, column=field.name)


def for_arrow(frame: Any) -> Any:
    """A frame that `toArrow` can carry: it has texts in place of intervals of months, days and microseconds, and the
    fields of structs may be NULL, as pyarrow refuses a struct that is NULL and has fields that may not be."""
    names, kinds = frame.columns, [field.dataType for field in frame.schema.fields]
    wanted = [_carried(kind) for kind in kinds]
    if wanted == kinds:
        return frame
    plain = frame.toDF(*(f"c{i}" for i in range(len(names))))  # a name may have a meaning
    return plain.select(*(F.col(f"c{i}").cast(kind) for i, kind in enumerate(wanted))).toDF(*names)


def _carried(kind: spark.DataType) -> spark.DataType:
    if isinstance(kind, spark.ArrayType):
        return spark.ArrayType(_carried(kind.elementType), kind.containsNull)
    if isinstance(kind, spark.MapType):
        return spark.MapType(_carried(kind.keyType), _carried(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, spark.StructType):
        return spark.StructType([spark.StructField(one.name, _carried(one.dataType)) for one in kind])
    return spark.StringType() if isinstance(kind, spark.CalendarIntervalType) else kind


def _name(kind: spark.DataType) -> str:
    """The name of the type, without its length or fields."""
    return str(kind.typeName()).split("(")[0]


def encoded(kind: pa.DataType) -> pa.DataType:
    """The Arrow type of a column of type `kind` on its way through Spark.

    It is the type in a collection's files, or bytes for types that only expressions have.
    """
    if pt.is_list(kind):
        return pa.list_(encoded(kind.value_type))
    if pt.is_struct(kind):
        return pa.struct([(field.name, encoded(field.type)) for field in kind])
    if pt.is_decimal(kind) and not _fits(kind):
        return pa.binary()
    return file_type(kind)


def spark_type(kind: pa.DataType) -> spark.DataType:
    """Spark's type of the encoded column."""
    kind = encoded(kind)
    if pt.is_list(kind):
        return spark.ArrayType(spark_type(kind.value_type))
    if pt.is_struct(kind):
        return spark.StructType([spark.StructField(field.name, spark_type(field.type)) for field in kind])
    if pt.is_decimal(kind):
        return spark.DecimalType(kind.precision, kind.scale)
    return _PLAIN[kind]


def encode(column: pa.Array) -> pa.Array:
    """A column in the form in which Spark carries it."""
    kind, wanted = column.type, encoded(column.type)
    if wanted == kind:
        return column
    if pt.is_list(kind):
        return _list(column, encode(column.flatten()))
    if pt.is_struct(kind):
        return with_members(column, wanted, lambda member, _: encode(member))
    if pt.is_interval(kind):
        return to_struct(column)
    if pt.is_time(kind):
        return column.view(wanted)
    return column.view(pa.binary(_width(kind))).cast(wanted)


def restore(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The column of type `kind` that `encode` was given, from what Spark or a file returns."""
    if column.type == kind:
        return column
    if pt.is_list(kind):
        if not pt.is_list(column.type):
            column = column.cast(pa.list_(column.type.value_type))
        return _list(column, restore(column.flatten(), kind.value_type))
    if pt.is_struct(kind):
        return with_members(column, kind, restore)
    if pt.is_timestamp(kind) or pt.is_time(kind):
        return column.view(kind)  # the same number, whatever its zone label
    if pt.is_interval(kind):
        return of_struct(column)
    if encoded(kind) != kind:
        return column.cast(pa.binary(_width(kind))).view(kind)
    return column.cast(kind)


def has_floats(kind: pa.DataType) -> bool:
    """Whether two values of the type can be equal and yet look different (zeros, NaNs)."""
    if pt.is_struct(kind):
        return any(has_floats(field.type) for field in kind)
    return has_floats(kind.value_type) if pt.is_list(kind) else bool(pt.is_floating(kind))


def _fits(kind: pa.DataType) -> bool:
    return bool(pt.is_decimal128(kind) and 0 <= kind.scale <= kind.precision)


def _width(kind: pa.DataType) -> int:
    return int(kind.bit_width) // 8


def _list(column: pa.Array, values: pa.Array) -> pa.Array:
    """The lists of `column` with other values: one for each of its elements."""
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    return pa.ListArray.from_arrays(offsets, values, mask=column.is_null())

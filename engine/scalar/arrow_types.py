"""Maps SQL types to Arrow types and back, and reads the values of extension types."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pyarrow as pa

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql import types as sql
from halfjoin.sql.types import STORED_DIGITS, Kind, SqlType

_ARROW: dict[Kind, Any] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.SMALLINT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.REAL: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.VARCHAR: pa.string(),
    Kind.CHAR: pa.string(),
    Kind.UUID: pa.string(),
    Kind.JSON: pa.string(),
    Kind.JSONB: pa.string(),
    Kind.ENUM: pa.string(),
    Kind.BYTEA: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time64("us"),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    Kind.INTERVAL: pa.month_day_nano_interval(),
    Kind.MZ_TIMESTAMP: pa.int64(),
    Kind.UNKNOWN: pa.string(),
}


@lru_cache(maxsize=4096)
def arrow_type(type: SqlType) -> Any:
    """The Arrow type that holds values of the SQL type."""
    if type.kind is Kind.ARRAY:
        assert type.element is not None
        return pa.list_(arrow_type(type.element))
    if type.kind is Kind.RECORD:
        return pa.struct([(name, arrow_type(field)) for name, (_, field) in
                          zip(sql.field_names(type), type.fields, strict=True)])  # fmt: skip
    if type.kind is Kind.NUMERIC:
        precision, scale = type.precision or STORED_DIGITS, type.scale or 0
        return decimal_type(precision, scale)
    return _ARROW[type.kind]


def decimal_type(precision: int, scale: int) -> Any:
    """The narrower of Arrow's two decimal types that fits: 16 bytes up to 38 digits, 32 bytes above."""
    return pa.decimal128(precision, scale) if precision <= STORED_DIGITS else pa.decimal256(precision, scale)


_EXTENSIONS = {"arrow.uuid": sql.UUID, "arrow.bool8": sql.BOOLEAN, "arrow.json": sql.JSONB}


def sql_type(type: Any) -> SqlType:
    """The SQL type for the values of an Arrow type. 8-bit and unsigned integers get the next wider type.

    Raises:
        UnsupportedSQL: the Arrow type has no SQL type.
    """
    t = pa.types
    lists = (t.is_list, t.is_large_list, t.is_fixed_size_list, t.is_list_view, t.is_large_list_view)
    if any(matches(type) for matches in lists):
        return sql.array(sql_type(type.value_type))
    if t.is_dictionary(type) or t.is_run_end_encoded(type):
        return sql_type(type.value_type)
    if isinstance(type, pa.BaseExtensionType) and type.extension_name in _EXTENSIONS:
        return _EXTENSIONS[type.extension_name]
    if t.is_decimal(type):
        return sql.numeric(type.precision, type.scale)
    if t.is_uint64(type):
        return sql.numeric(20, 0)
    for matches, kind in (
        (t.is_boolean, sql.BOOLEAN), (lambda x: t.is_int8(x) or t.is_uint8(x) or t.is_int16(x), sql.SMALLINT),
        (lambda x: t.is_uint16(x) or t.is_int32(x), sql.INTEGER),
        (lambda x: t.is_uint32(x) or t.is_int64(x), sql.BIGINT),
        (lambda x: t.is_float16(x) or t.is_float32(x), sql.REAL), (t.is_float64, sql.DOUBLE), (t.is_null, sql.TEXT),
        (lambda x: t.is_string(x) or t.is_large_string(x) or t.is_string_view(x), sql.TEXT),
        (lambda x: t.is_binary(x) or t.is_large_binary(x) or t.is_binary_view(x), sql.BYTEA),
        (t.is_fixed_size_binary, sql.BYTEA),
        (t.is_date, sql.DATE), (t.is_time, sql.TIME), (t.is_interval, sql.INTERVAL), (t.is_duration, sql.INTERVAL),
    ):  # fmt: skip
        if matches(type):
            return kind
    if t.is_timestamp(type):
        return sql.TIMESTAMP if type.tz is None else sql.TIMESTAMPTZ
    remedy = "cast the column before you submit it"
    if t.is_map(type):
        remedy = "write CREATE TABLE with a column of type jsonb, which takes maps"
    if t.is_struct(type):
        remedy = ("CREATE TYPE pair AS (a integer, b text), and CREATE TABLE t (r pair): its columns take structs; or "
                  "CREATE TABLE with a column of type jsonb, which takes them, too")  # fmt: skip
    raise UnsupportedSQL(f"Arrow type {type} has no SQL type", remedy=remedy)


def storage(array: pa.ExtensionArray) -> pa.Array:
    """The values of an extension type as Arrow keeps them.

    Raises:
        TypeError: they are pandas' periods, kept as the number of months, say, since 1970.
    """
    if of_period(array) is not None:
        raise TypeError("a number that stands for a period")
    return array.storage.cast(pa.bool_()) if array.type.extension_name == "arrow.bool8" else array.storage


def of_period(given: Any) -> str | None:
    """The remedy for pandas' periods; None for other values."""
    period = isinstance(given, pa.ExtensionArray) and given.type.extension_name == "pandas.period"
    return "turn periods into timestamps first, with .dt.to_timestamp()" if period else None

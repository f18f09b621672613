"""Columns of Arrow as values in Avro's binary encoding, all rows of a column at once.

A record in Avro is its fields' bytes one behind the other, so a row is what its columns' bytes are when they are
joined. (https://avro.apache.org/docs/1.12.0/specification/#binary-encoding)
"""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.casts_text import to_text
from halfjoin.engine.updates.updates import Ints
from halfjoin.sql.types import TEXT, Kind, SqlType

_WHOLE = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.MZ_TIMESTAMP)
_LOGICAL = {
    Kind.DATE: {"type": "int", "logicalType": "date"}, Kind.TIME: {"type": "long", "logicalType": "time-micros"},
    Kind.TIMESTAMP: {"type": "long", "logicalType": "local-timestamp-micros"},
    Kind.TIMESTAMPTZ: {"type": "long", "logicalType": "timestamp-micros"},
    Kind.UUID: {"type": "string", "logicalType": "uuid"},
}  # fmt: skip
_PLAIN = {
    Kind.BOOLEAN: "boolean", Kind.SMALLINT: "int", Kind.INTEGER: "int", Kind.BIGINT: "long", Kind.REAL: "float",
    Kind.DOUBLE: "double", Kind.BYTEA: "bytes", Kind.MZ_TIMESTAMP: "long",
}  # fmt: skip
_NONE, _SOME, _END, _JOINED = (pa.scalar(blob, pa.binary()) for blob in (b"\0", b"\2", b"\0", b""))


def avro_type(type: SqlType, arrow: Any) -> Any:
    """The schema of a column's values, from its type and its type in Arrow. Types that Avro does not have are texts, as
    PostgreSQL prints them."""
    if type.kind is Kind.ARRAY:
        assert type.element is not None
        return {"type": "array", "items": ["null", avro_type(type.element, arrow.value_type)]}
    if type.kind is Kind.NUMERIC:
        return {"type": "bytes", "logicalType": "decimal", "precision": arrow.precision, "scale": arrow.scale}
    return _LOGICAL.get(type.kind) or _PLAIN.get(type.kind, "string")


def avro_values(column: Any, type: SqlType, *, nullable: bool) -> Any:
    """The encoded values of a column. Those of a nullable one are a union of null and the type."""
    if not nullable:
        assert not column.null_count
        return _encoded(column, type)
    some = pc.binary_join_element_wise(_SOME, _encoded(column, type), _JOINED)
    return pc.if_else(column.is_null(), _NONE, some)


def longs(numbers: Ints) -> Any:
    """Whole numbers as Avro writes them: the sign in the lowest bit, then 7 bits a byte, the lowest first."""
    left = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    parts, more = [], np.ones(len(left), np.bool_)
    used = []
    while more.any():
        used.append(more)
        rest = left >> np.uint64(7)
        parts.append((left & np.uint64(0x7F)).astype(np.uint8) | np.where(rest > 0, np.uint8(0x80), np.uint8(0)))
        left, more = rest, more & (rest > 0)
    if not parts:
        return pa.array([], pa.binary())
    return _blobs(np.stack(parts, axis=1), np.stack(used, axis=1))


def _encoded(column: Any, type: SqlType) -> Any:
    """The encoded values; anything for one that is NULL."""
    kind = type.kind
    if kind is Kind.ARRAY:
        assert type.element is not None
        return _arrays(column, type.element)
    if kind is Kind.BOOLEAN:
        return _fixed(pc.fill_null(column, False).cast(pa.uint8()).to_numpy())
    if kind in (Kind.REAL, Kind.DOUBLE):
        return _fixed(pc.fill_null(column, 0).to_numpy())
    if kind is Kind.NUMERIC:
        return _with_length(_decimals(column))
    if kind in _WHOLE or kind in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        whole = column.cast(pa.int32()) if kind is Kind.DATE else column
        return longs(pc.fill_null(whole.cast(pa.int64()), 0).to_numpy())
    if kind is not Kind.BYTEA:
        printed = to_text(type, TEXT)
        column = printed(column) if printed else column
    return _with_length(column.cast(pa.binary()))


def _with_length(blobs: Any) -> Any:
    blobs = pc.fill_null(blobs, b"")
    lengths = pc.binary_length(blobs).to_numpy().astype(np.int64)
    return pc.binary_join_element_wise(longs(lengths), blobs, _JOINED)


def _arrays(column: Any, element: SqlType) -> Any:
    """Lists: one block with its count of items, then a block of none."""
    counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    items = pa.ListArray.from_arrays(offsets, avro_values(column.flatten(), element, nullable=True))
    block = pc.binary_join_element_wise(longs(counts), pc.binary_join(items, b""), _END, _JOINED)
    return pc.if_else(pa.array(counts > 0), block, _END)


def _decimals(column: Any) -> Any:
    """The unscaled numbers in two's complement, the most significant byte first, in as few bytes as possible."""
    width = column.type.bit_width // 8
    filled = column if not column.null_count else pc.fill_null(column, pa.scalar(Decimal(0), column.type))
    raw = np.frombuffer(filled.buffers()[1], np.uint8, len(filled) * width, filled.offset * width)
    digits = raw.reshape(len(filled), width)[:, ::-1]
    sign = np.where(digits[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    # A byte is left out if it and all before it are the sign, and the next one shows the sign too.
    known = (digits[:, :-1] == sign) & ((digits[:, 1:] >= 0x80) == (sign == 0xFF))
    left_out = np.logical_and.accumulate(known, axis=1)
    return _blobs(digits, np.concatenate([~left_out, np.ones((len(digits), 1), np.bool_)], axis=1))


def _fixed(values: npt.NDArray[Any]) -> Any:
    """The bytes of numbers, the least significant first."""
    if sys.byteorder == "big":
        values = values.byteswap()
    width = values.dtype.itemsize
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.binary(width), len(values), [None, buffer]).cast(pa.binary())


def _blobs(table: npt.NDArray[np.uint8], mask: npt.NDArray[np.bool_]) -> Any:
    """The bytes of each row of a table where the mask is true."""
    offsets = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(table[mask]))]
    return pa.Array.from_buffers(pa.binary(), len(table), buffers)

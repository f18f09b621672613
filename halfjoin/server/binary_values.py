"""Columns of an answer in PostgreSQL's binary format, whole columns at a time.

Numbers are big-endian. Moments count microseconds from 2000-01-01, dates days. The formats are those of PostgreSQL's
send functions, such as `int8send`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.nested_arrays import shape
from halfjoin.engine.scalar.values import raw
from halfjoin.engine.updates.intervals import fields
from halfjoin.server.binary_numeric import numeric_values
from halfjoin.server.text_values import text_values
from halfjoin.sql.oids import pg_type
from halfjoin.sql.system import OID, VECTORS
from halfjoin.sql.types import SMALLINT, Kind, SqlType, innermost

EPOCH_DAYS = 10957  # from 1970-01-01 to 2000-01-01
EPOCH_MICROS = EPOCH_DAYS * 86_400_000_000
Bytes = npt.NDArray[np.uint8]


def binary_values(values: pa.Array, type: SqlType) -> pa.Array:
    """The values as bytes: an array of binary, or of fixed-size binary for types of one size. NULL stays NULL."""
    if not len(values):  # the elements of arrays that have none
        return pa.array([], pa.binary())
    if type.named == "oid":
        return _fixed(raw(values).astype(">u4").view(np.uint8).reshape(len(values), 4), values)
    if type.named in VECTORS:
        return _vector(values, OID if type.named == "oidvector" else SMALLINT)
    if type.kind in _FIXED:
        made = np.ascontiguousarray(_FIXED[type.kind](values))
        return _fixed(made.view(np.uint8).reshape(len(values), -1), values)
    match type.kind:
        case Kind.NUMERIC:
            return numeric_values(text_values(values, type))
        case Kind.INTERVAL:
            return _fixed(_interval(values), values)
        case Kind.UUID:
            return _fixed(_uuid(values), values)
        case Kind.BYTEA:
            return values.cast(pa.binary())
        case Kind.JSONB:
            return pc.binary_join_element_wise(b"\x01", text_values(values, type), b"")
        case Kind.ARRAY:
            assert type.element is not None
            return _array(values, type.element)
        case Kind.RECORD:
            return _rows(values, type)
    return text_values(values, type)


def _numbers(dtype: str, offset: int = 0) -> Callable[[Any], Any]:
    return lambda values: (raw(values) - offset if offset else raw(values)).astype(dtype)


def _counts(dtype: str, arrow: Any, offset: int) -> Callable[[Any], Any]:
    """Dates and times as the whole numbers that Arrow holds, counted from PostgreSQL's epoch."""
    return lambda values: (raw(values.view(arrow)).astype(np.int64) - offset).astype(dtype)


_FIXED: dict[Kind, Callable[[Any], Any]] = {
    Kind.BOOLEAN: lambda values: raw(values.cast(pa.uint8())).astype("u1"),
    Kind.SMALLINT: _numbers(">i2"),
    Kind.INTEGER: _numbers(">i4"),
    Kind.BIGINT: _numbers(">i8"),
    Kind.MZ_TIMESTAMP: _numbers(">i8"),
    Kind.REAL: _numbers(">f4"),
    Kind.DOUBLE: _numbers(">f8"),
    Kind.DATE: _counts(">i4", pa.int32(), EPOCH_DAYS),
    Kind.TIME: _counts(">i8", pa.int64(), 0),
    Kind.TIMESTAMP: _counts(">i8", pa.int64(), EPOCH_MICROS),
    Kind.TIMESTAMPTZ: _counts(">i8", pa.int64(), EPOCH_MICROS),
}


def _fixed(made: Bytes, values: pa.Array) -> pa.Array:
    """The rows of a matrix of bytes as values, NULL where these are."""
    width = made.shape[1] if made.ndim == 2 and made.shape[1] else 1
    mask = values.is_valid().buffers()[1] if values.null_count else None
    data = pa.py_buffer(np.ascontiguousarray(made).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(values), [mask, data])


def _interval(values: pa.Array) -> Bytes:
    months, days, micros = fields(values)
    made = np.zeros(len(values), [("micros", ">i8"), ("days", ">i4"), ("months", ">i4")])
    made["micros"], made["days"], made["months"] = micros, days, months
    return made.view(np.uint8).reshape(len(values), 16)


def _uuid(values: pa.Array) -> Bytes:
    digits = pc.replace_substring(pc.fill_null(values, "0" * 32), "-", "").cast(pa.binary(32))
    chars = np.frombuffer(digits.buffers()[1], np.uint8)[digits.offset * 32 :][: len(values) * 32].reshape(-1, 16, 2)
    nibbles = np.where(chars >= ord("a"), chars - ord("a") + 10, chars - ord("0")).astype(np.uint8)
    return (nibbles[:, :, 0] << 4 | nibbles[:, :, 1]).astype(np.uint8)


def sized(values: pa.Array) -> pa.Array:
    """Each value behind its length, as four bytes; NULL is the length -1. The result has no NULL."""
    if isinstance(values.type, pa.FixedSizeBinaryType):
        width = values.type.byte_width
        body = np.frombuffer(values.buffers()[1], np.uint8)[values.offset * width :][: len(values) * width]
        made = np.empty((len(values), 4 + width), np.uint8)
        made[:, :4] = np.frombuffer(struct.pack(">i", width), np.uint8)
        made[:, 4:] = body.reshape(-1, width)
        if not values.null_count:
            return pa.FixedSizeBinaryArray.from_buffers(pa.binary(4 + width), len(values), [None, pa.py_buffer(made)])
        values = values.cast(pa.binary())
    lengths = raw(pc.fill_null(pc.binary_length(values), -1)).astype(">i4")
    heads = pa.FixedSizeBinaryArray.from_buffers(pa.binary(4), len(values), [None, pa.py_buffer(lengths.tobytes())])
    return pc.binary_join_element_wise(heads.cast(pa.binary()), pc.fill_null(values, b""), b"")


def _rows(values: pa.Array, type: SqlType) -> pa.Array:
    """The number of members, then for each the number of its type and the value behind its length."""
    parts: list[Any] = [struct.pack(">i", len(type.fields))]
    for part, (_, field) in zip(values.flatten(), type.fields, strict=True):
        parts += [struct.pack(">I", pg_type(field).oid), sized(binary_values(part, field)).cast(pa.binary())]
    made = pc.binary_join_element_wise(*parts, b"")
    return pc.if_else(values.is_valid(), made, pa.scalar(None, pa.binary()))


def _vector(values: pa.Array, element: SqlType) -> pa.Array:
    """A text of numbers with blanks between them, as the array that it is for clients. It begins at 0."""
    whole = pa.int16() if element == SMALLINT else pa.int64()
    numbers = [None if one is None else [int(part) for part in one.split()] for one in values.to_pylist()]
    return _array(pa.array(numbers, pa.list_(whole)), element, first=0)


def _array(values: pa.Array, element: SqlType, first: int = 1) -> pa.Array:
    """A header of 12 bytes and 8 for each dimension (none, if it is empty), then the elements behind their lengths."""
    valid = values.is_valid()
    lengths, element = shape(values), innermost(element)
    items, counts = values, np.prod(lengths, axis=1)
    while pa.types.is_list(items.type):
        items = items.flatten()
    ends = np.concatenate([[0], np.cumsum(counts)])
    nulls = np.concatenate([[0], np.cumsum(raw(items.is_null().cast(pa.uint8())))])
    parts = sized(binary_values(items, element)).cast(pa.binary())
    offsets = np.frombuffer(parts.buffers()[1], np.int32)[parts.offset : parts.offset + len(parts) + 1]
    offsets = offsets if len(parts) else np.zeros(1, np.int32)
    buffers = [None, pa.py_buffer(offsets[ends].copy()), parts.buffers()[2]]
    bodies = pa.Array.from_buffers(pa.binary(), len(values), buffers)
    heads = np.zeros((len(values), 3 + 2 * lengths.shape[1]), ">i4")
    heads[:, 0], heads[:, 1] = lengths.shape[1], nulls[ends[1:]] > nulls[ends[:-1]]
    heads[:, 2], heads[:, 3::2], heads[:, 4::2] = pg_type(element).oid, lengths, first
    size = pa.binary(4 * heads.shape[1])
    full = pa.FixedSizeBinaryArray.from_buffers(size, len(values), [None, pa.py_buffer(heads.tobytes())])
    nothing = np.array([0, 0, pg_type(element).oid], ">i4").tobytes()
    head = pc.if_else(pa.array(counts > 0), full.cast(pa.binary()), pa.scalar(nothing, pa.binary()))
    return pc.if_else(valid, pc.binary_join_element_wise(head, bodies, b""), pa.scalar(None, pa.binary()))

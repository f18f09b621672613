"""Rows that a client sends in the binary format of COPY, as columns.

Where a value begins is known only when the length of the one before it is read. So the places of values are found row
by row, but rows whose values have the same lengths as those before are found together. Values are taken with numpy.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.casts_text import from_text
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.intervals import intervals
from halfjoin.errors import InvalidRow
from halfjoin.server.binary_input import text_of
from halfjoin.server.binary_values import EPOCH_DAYS, EPOCH_MICROS
from halfjoin.sql.oids import pg_type
from halfjoin.sql.types import STRINGS, Kind, SqlType, of_any_length

_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_FIXED: dict[Kind, Any] = {
    Kind.BOOLEAN: "u1", Kind.SMALLINT: ">i2", Kind.INTEGER: ">i4", Kind.BIGINT: ">i8", Kind.REAL: ">f4",
    Kind.DOUBLE: ">f8", Kind.DATE: ">i4", Kind.TIME: ">i8", Kind.TIMESTAMP: ">i8", Kind.TIMESTAMPTZ: ">i8",
    Kind.INTERVAL: [("micros", ">i8"), ("days", ">i4"), ("months", ">i4")],
}  # fmt: skip
_MISSES = 16
_MOST = (1 << 31) - 1  # bytes of one Arrow array
_OFFSETS = {Kind.DATE: EPOCH_DAYS, Kind.TIMESTAMP: EPOCH_MICROS, Kind.TIMESTAMPTZ: EPOCH_MICROS}
Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int64]


def read_rows(data: bytes, types: Sequence[SqlType]) -> pa.Table:
    """The rows of a stream.

    Raises:
        InvalidRow: it is not in the binary format, a row has another number of values, or a value is not of its type.
    """
    if data[:11] != _SIGNATURE or len(data) < 19:
        raise wrong("COPY file signature not recognized")
    flags, extension = struct.unpack_from(">Ii", data, 11)
    at = 19 + extension
    if flags or extension < 0 or at > len(data):
        raise wrong("COPY file header is not supported")
    flat = np.frombuffer(data, np.uint8)
    starts, lengths = _places(data, flat, at, len(types))
    columns = [_column(flat, starts[:, n], lengths[:, n], type) for n, type in enumerate(types)]
    return pa.Table.from_arrays(columns, names=[str(n) for n in range(len(types))])


def _places(data: bytes, flat: Bytes, at: int, width: int) -> tuple[Ints, Ints]:
    """For each row and column: where the value begins, and its length; -1 for NULL."""
    starts, lengths = [np.zeros((0, width), np.int64)], [np.zeros((0, width), np.int64)]
    misses = 0  # rows that were the only ones of their kind, so that looking for more is given up
    while (found := _row(data, at, width)) is not None:
        size = found[-1]
        offsets, row = np.array(found[:width], np.int64), np.array(found[width:-1], np.int64)
        rows = _alike(flat, at, size, offsets) if misses < _MISSES else 1
        misses = misses + 1 if rows == 1 else 0
        starts.append(at + offsets + size * np.arange(rows)[:, None])
        lengths.append(np.broadcast_to(row, (rows, width)))
        at += rows * size
    return np.concatenate(starts), np.concatenate(lengths)


def _row(data: bytes, at: int, width: int) -> list[int] | None:
    """Of the row at a place: where its values begin, their lengths, and its size in bytes; None at the end, which the
    end of the stream says as well as its marker does: ADBC sends none."""
    if at == len(data):
        return None
    try:
        (count,) = struct.unpack_from(">h", data, at)
        if count == -1:
            if at + 2 != len(data):
                raise wrong("received copy data after EOF marker")
            return None
        if count != width:
            raise wrong(f"row field count is {count}, expected {width}")
        starts, lengths, place = [], [], at + 2
        for _ in range(count):
            (length,) = struct.unpack_from(">i", data, place)
            starts.append(place + 4 - at)
            lengths.append(length)
            place += 4 + max(length, 0)
            if length < -1 or place > len(data):
                raise wrong("unexpected end of COPY data")
    except struct.error:
        raise wrong("unexpected end of COPY data") from None
    return [*starts, *lengths, place - at]


def _alike(flat: Bytes, at: int, size: int, offsets: Ints) -> int:
    """How many rows from a place on have values of the lengths that the first one has."""
    heads = np.concatenate([[0, 1], (offsets[:, None] + np.arange(-4, 0)).ravel()]).astype(np.int64)
    first, most = flat[at + heads], (len(flat) - at) // size
    alike, rows = 1, 1
    while alike < most:
        rows = min(rows * 8, most)
        same = (flat[at : at + rows * size].reshape(rows, size)[:, heads] == first).all(axis=1)
        if not same.all():
            return int(same.argmin())
        alike = rows
    return alike


def _column(flat: Bytes, starts: Ints, lengths: Ints, type: SqlType) -> pa.Array:
    """The values of a column."""
    rows, arrow, null = len(starts), arrow_type(type), lengths < 0
    if null.all():
        return pa.nulls(rows, arrow)
    if type.kind in _FIXED:
        wanted = np.dtype(_FIXED[type.kind])
        if (lengths[~null] != wanted.itemsize).any():
            raise wrong("incorrect binary data format", "22P03")
        places = np.where(null, starts[~null][0], starts)
        values = flat[places[:, None] + np.arange(wanted.itemsize)].view(wanted).reshape(rows)
        return _numbers(values, type, null)
    sizes = np.maximum(lengths, 0)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    if ends[-1] > _MOST:
        raise wrong("the values of a column are too large", "54000")
    body = flat[np.repeat(starts - ends[:-1], sizes) + np.arange(ends[-1])]
    valid = pa.array(~null).buffers()[1] if null.any() else None
    values = pa.Array.from_buffers(pa.binary(), rows, [valid, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(body)])
    if type.kind is Kind.BYTEA:
        return values
    try:
        if type.kind in (*STRINGS, Kind.ENUM):
            return values.cast(pa.string())
        oid = pg_type(type).oid
        texts = [None if one is None else text_of(one, oid, type) for one in values.to_pylist()]
        return from_text(of_any_length(type))(pa.array(texts, pa.string()))  # COPY refuses what is too long
    except pa.ArrowInvalid:
        raise wrong('invalid byte sequence for encoding "UTF8"', "22021") from None
    except Failed as problem:
        raise wrong(problem.message, "22P03") from None


def _numbers(values: Any, type: SqlType, null: NDArray[np.bool_]) -> pa.Array:
    arrow = arrow_type(type)
    if type.kind is Kind.INTERVAL:
        months, days, micros = (values[name].astype(np.int64) for name in ("months", "days", "micros"))
        return intervals(months, days, micros, null)
    numbers = values.astype(values.dtype.newbyteorder("="))
    if type.kind is Kind.BOOLEAN:
        return pa.array(numbers != 0, mask=null)
    if type.kind in _OFFSETS:
        numbers = numbers + numbers.dtype.type(_OFFSETS[type.kind])
    made = pa.array(numbers, mask=null)
    return made.view(arrow) if pa.types.is_temporal(arrow) else made


def wrong(reason: str, code: str = "22P04") -> InvalidRow:
    """The error for rows that are not in the format."""
    return InvalidRow(f"COPY: {reason}", code=code)

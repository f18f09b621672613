"""Rows of an answer as bytes of messages. They are built column by column: no loop visits a row, unless there are few.

Each value goes behind its length, the values of a row are joined, and the row goes behind a header with its length. So
the data of one Arrow array are the messages of many rows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.values import raw
from halfjoin.engine.statements.copying import bytes_of
from halfjoin.errors import DataError
from halfjoin.server.binary_values import binary_values, sized
from halfjoin.server.text_values import text_values
from halfjoin.sql.types import SqlType

FEW = 64  # rows; so few are put together one by one in less time than Arrow's functions take to begin
ROWS = 8192  # rows of one piece; a client that reads slowly holds up no more than these
MOST_BYTES = 1 << 30  # of one piece
_NULL = struct.pack(">i", -1)


def data_rows(rows: pa.Table, types: Sequence[SqlType], formats: Sequence[int]) -> Iterator[memoryview]:
    """DataRow messages, in pieces. `formats`: for each column 0 for text, 1 for binary."""
    count = struct.pack(">h", len(types))
    for piece in _pieces(rows):
        if types and piece.num_rows <= FEW:
            yield _few(b"D", _columns(piece, types, formats), count)
        else:
            yield _framed(b"D", _values(piece, types, formats), count)


def copy_data(rows: pa.Table, types: Sequence[SqlType], head: bytes = b"") -> Iterator[bytes | memoryview]:
    """CopyData messages, one a row, in the binary format of COPY. `head`: what the first of them begins with."""
    count = struct.pack(">h", len(types))
    for piece in _pieces(rows):
        made = _framed(b"d", _values(piece, types, [1] * len(types)), count)
        if head:
            (length,) = struct.unpack_from(">i", made, 1)
            yield b"d" + struct.pack(">i", length + len(head)) + head
            made, head = made[5:], b""
        yield made


def copy_lines(lines: pa.Array) -> Iterator[memoryview]:
    """CopyData messages, one a line of text; each gets its end."""
    for start in range(0, len(lines), ROWS):
        part = pc.cast(lines.slice(start, ROWS), pa.binary())
        yield _framed(b"d", pc.binary_join_element_wise(part, b"\n", b""), b"")


def _pieces(rows: pa.Table) -> Iterator[pa.Table]:
    """Parts of so many rows that their messages fit into one array."""
    if not rows.num_columns:  # Arrow cuts nothing off a table without columns
        yield rows
        return
    start = 0
    while start < rows.num_rows:
        part = rows.slice(start, ROWS)
        while part.nbytes * 4 > MOST_BYTES and part.num_rows > 1:
            part = part.slice(0, part.num_rows // 2)
        if part.nbytes * 2 > MOST_BYTES:
            raise DataError("a row is too large for a message", remedy="select fewer columns", code="54000")
        yield part
        start += part.num_rows


def _values(rows: pa.Table, types: Sequence[SqlType], formats: Sequence[int]) -> pa.Array:
    """Each row's values behind their lengths."""
    if not types:
        return pa.array([b""] * rows.num_rows, pa.binary())
    joined = _together([sized(values) for values in _columns(rows, types, formats)])
    return joined[0] if len(joined) == 1 else pc.binary_join_element_wise(*(p.cast(pa.binary()) for p in joined), b"")


def _columns(rows: pa.Table, types: Sequence[SqlType], formats: Sequence[int]) -> Iterator[pa.Array]:
    """The values of each column as bytes."""
    for column, type, format in zip(rows.columns, types, formats, strict=True):
        array = column.combine_chunks()
        array = array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)
        yield binary_values(array, type) if format else text_values(array, type)


def _few(letter: bytes, columns: Iterable[pa.Array], count: bytes) -> memoryview:
    """As `_framed`, of a few rows, with each value behind its length."""
    cells = [[_NULL if value is None else struct.pack(">i", len(value)) + value for value in values.to_pylist()]
             for values in columns]  # fmt: skip
    bodies = [count + b"".join(row) for row in zip(*cells, strict=True)]
    return memoryview(b"".join(letter + struct.pack(">i", 4 + len(body)) + body for body in bodies))


def _together(parts: Sequence[pa.Array]) -> list[pa.Array]:
    """The parts, with neighbours of fixed size joined into one of fixed size."""
    made: list[pa.Array] = []
    for part in parts:
        if made and _width(made[-1]) and _width(part):
            both = np.concatenate([_matrix(made[-1]), _matrix(part)], axis=1)
            width = both.shape[1]
            data = pa.py_buffer(np.ascontiguousarray(both))
            made[-1] = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(part), [None, data])
        else:
            made.append(part)
    return made


def _width(part: pa.Array) -> int:
    return part.type.byte_width if isinstance(part.type, pa.FixedSizeBinaryType) else 0


def _matrix(part: pa.Array) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    width = _width(part)
    flat = np.frombuffer(part.buffers()[1], np.uint8)[part.offset * width : (part.offset + len(part)) * width]
    return flat.reshape(len(part), width)


def _framed(letter: bytes, bodies: pa.Array, count: bytes) -> memoryview:
    """Messages with these bodies: the letter, the length of what follows, `count`, the body."""
    rows = len(bodies)
    width = _width(bodies)
    head = np.zeros(rows, [("letter", "S1"), ("length", ">i4"), ("count", f"S{len(count)}")] if count
                    else [("letter", "S1"), ("length", ">i4")])  # fmt: skip
    head["letter"] = letter
    head["length"] = 4 + len(count) + (width or raw(pc.binary_length(bodies)).astype(np.int64))
    size = head.dtype.itemsize
    heads = head.view(np.uint8).reshape(rows, size).copy()
    if count:
        heads[:, 5:] = np.frombuffer(count, np.uint8)
    if width:
        return memoryview(np.concatenate([heads, _matrix(bodies)], axis=1).tobytes())
    first = pa.FixedSizeBinaryArray.from_buffers(pa.binary(size), rows, [None, pa.py_buffer(heads)])
    return bytes_of(pc.binary_join_element_wise(first.cast(pa.binary()), bodies, b""))

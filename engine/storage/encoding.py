"""Encode updates as bytes: Arrow's stream format, with `__time` and `__diff` as the last two columns.

A stream is compressed as a whole, as one frame of LZ4, unless it is very small. Its first bytes tell them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from halfjoin.engine.storage.damage import naming
from halfjoin.engine.updates.intervals import changed
from halfjoin.engine.updates.updates import DIFF, TIME, Ints, Updates, concat, fitting, indices_of

# Bytes of rows to encode together: far less than a journal entry or the memory can hold.
ENTRY_BYTES = 64 << 20
_COMPRESSED_FROM = 512  # bytes of a stream; few have less. A page that is full later saves more than this takes
_LZ4 = pa.Codec("lz4")
_FRAME = bytes.fromhex("04224d18")  # how a frame begins
_END = bytes.fromhex("ffffffff00000000")  # the last message of a stream


@dataclass(frozen=True, slots=True)
class Piece:
    """Encoded updates, their number, and the last of their times."""

    rows: int
    latest: int
    data: bytes

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.data)


def encode(updates: Updates) -> Iterator[Piece]:
    """The updates in pieces, in order. No pieces if there are no updates."""
    count = len(updates)
    columns = [*updates.columns.values(), indices_of(updates.time), indices_of(updates.diff)]
    batch = pa.RecordBatch.from_arrays(columns, names=[*updates.columns, TIME, DIFF])
    rows = max(1, count)
    if batch.get_total_buffer_size() > ENTRY_BYTES:  # these buffers may have more rows than the batch
        rows = max(1, min(rows, count * ENTRY_BYTES // pa.ipc.get_record_batch_size(batch)))
    for start in range(0, count, rows):
        part = batch if rows == count else batch.slice(start, rows)
        time = updates.time[start : start + rows]
        latest = time.item(0) if time.strides == (0,) else int(time.max())  # most batches have one time
        yield Piece(len(part), latest, _stream(part))


def _stream(batch: pa.RecordBatch) -> bytes:
    """A stream of one batch. Its messages are joined here: for few rows, a writer's other work takes as long again."""
    data = b"".join((batch.schema.serialize(), batch.serialize(), _END))
    return data if len(data) < _COMPRESSED_FROM else _LZ4.compress(data, asbytes=True)


def _table(data: bytes) -> pa.Table:
    source = pa.BufferReader(data)
    return pa.ipc.open_stream(pa.CompressedInputStream(source, "lz4") if data.startswith(_FRAME) else source).read_all()


def decode(pieces: Iterable[bytes], schema: Mapping[str, pa.DataType], where: str) -> list[Updates]:
    """Decode pieces in order, and join them as far as arrays can hold them.

    Raises:
        StorageError: a piece is damaged. The error names the file with the pieces.
    """
    with naming(f"the updates in {where}"):
        tables = [_table(data) for data in pieces]
        for table in tables:
            table.validate(full=True)
        return [concat(group) for group in fitting(from_table(table, schema) for table in tables)]


def from_table(table: pa.Table, schema: Mapping[str, pa.DataType]) -> Updates:
    """A table with `__time` and `__diff` as updates whose columns have exactly the types of `schema`."""
    columns = {name: one_chunk(table.column(name), kind) for name, kind in schema.items()}
    return Updates(columns, _ints(table.column(TIME)), _ints(table.column(DIFF)))


def one_chunk(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """A column as one array of a type."""
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # a column that does not fit into one array stays in chunks
        array = pa.concat_arrays(array.chunks)
    return changed(array, kind)


def _ints(column: pa.ChunkedArray) -> Ints:
    values: Ints = one_chunk(column, pa.int64()).to_numpy(zero_copy_only=False)
    return values

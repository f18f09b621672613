"""Encode updates as bytes: Arrow's stream format, with `__time` and `__diff` as the last two columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from halfjoin.engine.storage.damage import naming
from halfjoin.engine.updates.intervals import changed
from halfjoin.engine.updates.updates import DIFF, TIME, Ints, Updates, concat, fitting, indices_of

# Bytes of rows to encode together: far less than a journal entry or the memory can hold.
ENTRY_BYTES = 64 << 20
_COMPRESSED_FROM = 8 << 10  # bytes. Fewer are on disk sooner without compression
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)  # to wake threads takes longer
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


def encode(updates: Updates, nbytes: int) -> Iterator[Piece]:
    """The updates, whose rows take so many bytes, in pieces, in order. No pieces if there are no updates."""
    count = len(updates)
    size = nbytes + 16 * count
    rows = max(1, count if size <= ENTRY_BYTES else count * ENTRY_BYTES // size)
    for start in range(0, count, rows):
        part = updates.slice(start, min(start + rows, count))
        yield Piece(len(part), int(part.time.max()), _stream(part, size >= _COMPRESSED_FROM))


def _stream(updates: Updates, compressed: bool) -> bytes:
    """The updates as a stream of one record batch. Without compression its messages are joined here: a writer's other
    work takes as long again for a few rows."""
    columns = [*updates.columns.values(), indices_of(updates.time), indices_of(updates.diff)]
    batch = pa.RecordBatch.from_arrays(columns, names=[*updates.columns, TIME, DIFF])
    if not compressed:
        return b"".join((batch.schema.serialize(), batch.serialize(), _END))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_COMPRESSED) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode(pieces: Iterable[bytes], schema: Mapping[str, pa.DataType], where: str) -> list[Updates]:
    """Decode pieces in order, and join them as far as arrays can hold them.

    Raises:
        StorageError: a piece is damaged. The error names the file with the pieces.
    """
    with naming(f"the updates in {where}"):
        tables = [pa.ipc.open_stream(data).read_all() for data in pieces]
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

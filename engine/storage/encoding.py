"""Encode updates as bytes: a message of Arrow for a record batch, with `__time` and `__diff` as the last two columns.

What the columns are is known of each collection: its `layout`. Updates with other columns, and those of a collection
without a layout, are a stream, which has a message for the columns, too. Large messages are one frame of LZ4.
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
_COMPRESSED_FROM = 2 << 10  # bytes. To write another page takes longer than to compress it
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


def layout_of(schema: Mapping[str, pa.DataType]) -> pa.Schema:
    """The columns of updates as they are kept."""
    return pa.schema([*schema.items(), (TIME, pa.int64()), (DIFF, pa.int64())])


def encode(updates: Updates, layout: pa.Schema | None = None) -> Iterator[Piece]:
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
        yield Piece(len(part), latest, _bytes(part, layout))


def _bytes(batch: pa.RecordBatch, layout: pa.Schema | None) -> bytes:
    """A stream is joined here: for few rows, a writer's other work takes as long again."""
    data: pa.Buffer = batch.serialize()
    if layout is None or not batch.schema.equals(layout):
        data = pa.py_buffer(b"".join((batch.schema.serialize(), data, _END)))
    found: bytes = data.to_pybytes() if data.size < _COMPRESSED_FROM else _LZ4.compress(data, asbytes=True)
    return found


def _table(data: bytes, layout: pa.Schema | None) -> pa.Table:
    source = pa.BufferReader(data)
    if data.startswith(_FRAME):
        source = pa.BufferReader(pa.CompressedInputStream(source, "lz4").read())
    message = pa.ipc.read_message(source)
    if message.type == "record batch":
        return pa.Table.from_batches([pa.ipc.read_record_batch(message, layout)])
    source.seek(0)
    return pa.ipc.open_stream(source).read_all()


def decode(
    pieces: Iterable[bytes], schema: Mapping[str, pa.DataType], where: str, layout: bytes | None = None
) -> list[Updates]:
    """Decode pieces in order, and join them as far as arrays can hold them. `layout` as in the journal.

    Raises:
        StorageError: a piece is damaged. The error names the file with the pieces.
    """
    with naming(f"the updates in {where}", EOFError):
        known = None if layout is None else pa.ipc.read_schema(pa.py_buffer(layout))
        tables = [_table(data, known) for data in pieces]
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

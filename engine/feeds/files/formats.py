"""The formats of files, by their names."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, BinaryIO, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.files.block import Block, Raw
from halfjoin.engine.feeds.files.csv_records import csv_blocks
from halfjoin.engine.feeds.files.json_records import json_blocks
from halfjoin.engine.feeds.files.options import ENDINGS, PACKED, FilesOptions
from halfjoin.engine.feeds.files.partitions import placed, values_of, without
from halfjoin.engine.feeds.source import POLL_ROWS
from halfjoin.errors import HalfjoinError, InvalidRow

_T = TypeVar("_T")


def blocks(name: str, file: BinaryIO, options: FilesOptions, table: Table) -> Iterator[Raw]:
    """The blocks of a file. The same file always gives the same records, with the same numbers.

    Raises:
        InvalidRow: it is not of its format. HalfjoinError: its name does not say the format, nor does the source.
    """
    inner, ending = _parted(name)
    codec = PACKED.get(ending)
    format = options.format or ENDINGS.get(ending if codec is None else _parted(inner)[1])
    if format is None:
        raise HalfjoinError(f"the name of {name} does not say its format",
                            remedy=f"add the option format, or a pattern; known endings: {', '.join(ENDINGS)}, and "
                            f"{', '.join(PACKED)} after them")  # fmt: skip
    read = {"csv": csv_blocks, "jsonl": _json, "parquet": _parquet}[format]
    values = values_of(name) if options.recursive else {}
    inside = table if options.header else without(table, values)
    if codec is None:
        found = read(file, options, inside)
    else:
        found = _unpacked(file, codec, lambda whole: read(whole, options, inside))
    return placed(found, values, table) if values else found


def _parted(name: str) -> tuple[str, str]:
    """A name without its ending, and the ending with its dot, in small letters."""
    inner, dot, ending = name.rpartition(".")
    return (inner, dot + ending.lower()) if dot else (name, "")


def _unpacked(file: BinaryIO, codec: str, read: Callable[[BinaryIO], Iterator[Raw]]) -> Iterator[Raw]:
    """The blocks of a packed file, from a temporary file, as the readers move about in what they read.

    Raises:
        InvalidRow: it is damaged, or not packed. OSError: it cannot be read.
    """
    told = _Told(file)
    with tempfile.TemporaryFile() as whole:
        stream = pa.CompressedInputStream(pa.PythonFile(told, "r"), codec)
        while part := _part(stream, told):
            whole.write(part)
        whole.seek(0)
        yield from read(whole)


def _part(stream: pa.NativeFile, told: _Told) -> bytes:
    try:
        found: bytes = stream.read(1 << 20)
    except (pa.ArrowException, OSError) as problem:
        if told.failed or isinstance(problem, MemoryError):
            raise
        raise InvalidRow(f"cannot be unpacked: {str(problem).strip()}", called="the file") from None
    return found


def _json(file: BinaryIO, options: FilesOptions, table: Table) -> Iterator[Raw]:
    return json_blocks(file, table, options.encoded(table))


class _Told(io.RawIOBase):
    """A file that notes that it could not be read, as Arrow raises the same errors for what a file has."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.failed = file, False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._tried(self._file.read, size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._tried(self._file.seek, offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def _tried(self, call: Callable[..., _T], *given: Any) -> _T:
        try:
            return call(*given)
        except BaseException:
            self.failed = True
            raise


def _parquet(file: BinaryIO, options: FilesOptions, table: Table) -> Iterator[Raw]:
    """The blocks of a Parquet file. If pages have checksums, which Spark writes, these must be right.

    Raises:
        InvalidRow: it is not Parquet, or is damaged behind the blocks so far. OSError: it cannot be read.
    """
    told, first, opened = _Told(file), 1, None
    try:
        # Spark writes moments as INT96; read as nanoseconds, those before 1677 and after 2262 would be others.
        opened = pq.ParquetFile(told, coerce_int96_timestamp_unit="us", page_checksum_verification=True)
        for batch in opened.iter_batches(POLL_ROWS):
            yield Raw(first + len(batch) - 1, partial(_block, pa.Table.from_batches([batch]), first))
            first += len(batch)
    except (pa.ArrowException, OSError) as problem:
        if told.failed or isinstance(problem, MemoryError):
            raise
        why = "is not Parquet" if opened is None else f"is damaged behind record {first - 1}"
        raise InvalidRow(f"{why}: {str(problem).strip()}", called="the file") from None


def _block(rows: pa.Table, first: int) -> Block:
    def text(row: int) -> str:
        return str({name: _shown(column[row]) for name, column in zip(rows.column_names, rows.columns, strict=True)})

    return Block(rows, np.arange(first, first + len(rows)), (), text)


def _shown(value: pa.Scalar) -> Any:
    """A value as Python's; the number that stands for it, if Python has none, such as for a moment too far away."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return getattr(value, "value", str(value.type))

"""The formats of files, by their names."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.files.block import Block, Raw
from halfjoin.engine.feeds.files.csv_records import csv_blocks
from halfjoin.engine.feeds.files.json_records import json_blocks
from halfjoin.engine.feeds.files.options import ENDINGS, FilesOptions
from halfjoin.engine.feeds.source import POLL_ROWS
from halfjoin.errors import HalfjoinError, InvalidRow


def blocks(name: str, file: BinaryIO, options: FilesOptions, table: Table) -> Iterator[Raw]:
    """The blocks of a file. The same file always gives the same records, with the same numbers.

    Raises:
        InvalidRow: it is not of its format. HalfjoinError: its name does not say the format, nor does the source.
    """
    ending = name[name.rfind(".") :].lower() if "." in name else ""
    format = options.format or ENDINGS.get(ending)
    if format is None:
        raise HalfjoinError(f"the name of {name} does not say its format",
                            remedy=f"add the option format, or a pattern; known endings: {', '.join(ENDINGS)}")
    if format == "csv":
        return csv_blocks(file, options, table)
    return json_blocks(file, table, options.encoded(table)) if format == "jsonl" else _parquet(file)


def _parquet(file: BinaryIO) -> Iterator[Raw]:
    first = 1
    try:
        for batch in pq.ParquetFile(file).iter_batches(POLL_ROWS):
            yield Raw(first + len(batch) - 1, partial(_block, pa.Table.from_batches([batch]), first))
            first += len(batch)
    except pa.ArrowInvalid as problem:
        raise InvalidRow(f"is not Parquet: {problem}", called="the file") from None


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

"""Reads CSV: texts as pyarrow cuts them, each cast to its column's type as PostgreSQL reads it."""

from __future__ import annotations

import csv
import io
import os
from codecs import BOM_UTF8
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from functools import partial
from threading import Lock
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.files.block import Bad, Block, Raw, following
from halfjoin.engine.feeds.files.csv_encoding import Bytes, Texts
from halfjoin.engine.feeds.files.options import FilesOptions
from halfjoin.engine.feeds.source import POLL_BYTES
from halfjoin.engine.scalar.casts_text import from_text
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.updates import DIFF, TIME, Ints
from halfjoin.errors import InvalidRow
from halfjoin.sql.types import BIGINT, STRINGS, Kind, SqlType

_HEADER_BYTES = 1 << 20  # enough for any header
_BAD_HEADER = "is not CSV in UTF-8: its header is not"
_UNTOLD = "columns, got"  # in Arrow's error about a record of which it could not tell `invalid_row_handler`
_AS_THEY_ARE = (*STRINGS, Kind.ENUM, Kind.JSON, Kind.JSONB)  # the engine reads these texts itself


class _Given(io.RawIOBase):
    """A file that is given to a reader of Arrow. It reads ahead in a thread of its own, also when it has failed; after
    that it must not move the place at which another one reads the file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file: BinaryIO | None = file
        self._lock = Lock()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        with self._lock:
            return b"" if self._file is None else self._file.read(size)

    def take_back(self) -> None:
        """End the file here for the reader."""
        with self._lock:
            self._file = None


def csv_blocks(file: BinaryIO, options: FilesOptions, table: Table) -> Iterator[Raw]:
    """The blocks of a CSV file.

    A record with too many or too few values is Arrow's to tell of, and Arrow cannot tell of one that is not UTF-8. Then
    the rest of the file is read as bytes, which takes longer.

    Raises:
        InvalidRow: it is not CSV in UTF-8.
    """
    start, done = file.tell(), 0
    start += len(BOM_UTF8) if file.read(len(BOM_UTF8)) == BOM_UTF8 else 0  # some programs begin a text with it
    for reading in (Texts(), Bytes()):
        file.seek(start)
        before = done
        try:
            for raw in _blocks(file, options, table, reading):
                if raw.last > before:
                    done = raw.last
                    yield following(raw, before) if before else raw
        except pa.ArrowInvalid as problem:
            if _UNTOLD not in str(problem) or isinstance(reading, Bytes):
                raise InvalidRow(f"is not CSV: {problem}", called="the file") from None
        else:
            return


def _blocks(file: BinaryIO, options: FilesOptions, table: Table, reads: Texts) -> Iterator[Raw]:
    """The blocks of a CSV file from its present place on.

    Raises:
        InvalidRow, ArrowInvalid: it is not CSV in UTF-8.
    """
    known = [column.name for column in table.columns if column.generated is None]
    names = None if options.header else [*map(reads.given, known)]
    wrong: list[Bad] = []  # of the block that is being read, and perhaps of the next one

    def note(row: Any) -> str:
        reason = f"has {row.actual_columns} values, not {row.expected_columns}"
        wrong.append((row.number, reads.shown(row.text), reason))
        return "skip"

    reading = arrow_csv.ReadOptions(use_threads=False, block_size=POLL_BYTES, column_names=names,
                                    encoding=reads.encoding)  # fmt: skip
    # A blank line is a row of one column, as in PostgreSQL's COPY. Among several columns it is no record.
    parsing = [
        arrow_csv.ParseOptions(delimiter=options.delimiter, quote_char=options.quote, newlines_in_values=True,
                               ignore_empty_lines=ignored, invalid_row_handler=note) for ignored in (True, False)
    ]  # fmt: skip
    types = dict.fromkeys(map(reads.given, (*(column.name for column in table.columns), TIME, DIFF)), pa.binary())
    converting = arrow_csv.ConvertOptions(
        column_types=types, strings_can_be_null=True, null_values=[reads.given(options.null)],
        quoted_strings_can_be_null=False,
    )  # fmt: skip
    first = 2 if options.header else 1
    start = file.tell()
    # A reader reads ahead in a thread of its own. So what finds the columns gets a copy of the beginning.
    beginning = file.read(_HEADER_BYTES)
    given = _Given(file)
    try:
        alone = len(arrow_csv.open_csv(pa.BufferReader(beginning), reading, parsing[0], converting).schema) == 1
        file.seek(start)
        wrong.clear()
        blocks = arrow_csv.open_csv(given, reading, parsing[alone], converting)
        yield from _numbered(file, options, table, reads, blocks, wrong, first)
    except pa.ArrowInvalid as problem:
        if "Empty CSV file" not in str(problem):
            raise
        _check_text(beginning)
    finally:
        given.take_back()


def _numbered(
    file: BinaryIO, options: FilesOptions, table: Table, reads: Texts, blocks: Any, wrong: list[Bad], first: int
) -> Iterator[Raw]:
    """The blocks that Arrow reads, the first record of which has the number `first`. `wrong`: what it told of records
    so far. A thread of Arrow's may add to it."""
    _check_header(blocks.schema, reads)
    for batch, rest in _looking_ahead(map(reads.values, blocks)):
        numbers = _numbers(first, len(batch), [number for number, *_ in wrong])
        last = int(numbers[-1]) if len(numbers) else first - 1
        found = [one for one in [*wrong] if one[0] <= last]
        del wrong[: len(found)]
        first = last + 1
        if not rest and len(batch) and _unterminated(file, batch.column(batch.num_columns - 1)[-1], options):
            found.append((last, "", "unterminated CSV quoted field, which has the rest of the file"))
            batch, numbers = batch[:-1], numbers[:-1]
        yield Raw(last, partial(_block, pa.Table.from_batches([batch]), numbers, found, table, options))
    if wrong:
        none = _numbers(first, 0, [])
        yield Raw(wrong[-1][0], partial(_block, blocks.schema.empty_table(), none, wrong, table, options))


def _looking_ahead(blocks: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """The batches with rows, each with whether there is another one after it."""
    held: pa.RecordBatch | None = None
    for batch in blocks:
        if not len(batch):
            continue
        if held is not None:
            yield held, True
        held = batch
    if held is not None:
        yield held, False


def _unterminated(file: BinaryIO, last: pa.Scalar, options: FilesOptions) -> bool:
    """Whether a file, which was read to its end, ends within quotes: then its last value has all that follows the
    quote, with the end of the line."""
    value, quote = last.as_py(), options.quote.encode()
    if value is None:
        return False
    written = (value if isinstance(value, bytes) else str(value).encode()).replace(quote, 2 * quote)
    file.seek(max(file.seek(0, os.SEEK_END) - len(written) - 2, 0))
    tail = file.read()
    if not written.strip(quote):  # quotes alone: those that are closed are an even number
        return (len(tail) - len(tail.rstrip(quote))) % 2 == 1
    return bool(written.strip(b"\r\n")) and tail.endswith(quote + written)


def _check_text(header: bytes) -> None:
    """Raises InvalidRow: a file that has a header alone is not UTF-8, such as a compressed one."""
    try:
        header.decode()
    except UnicodeDecodeError:
        raise InvalidRow(_BAD_HEADER, called="the file") from None


def _check_header(schema: pa.Schema, reads: Texts) -> None:
    """Raises InvalidRow: a header is not UTF-8, or names a column twice."""
    try:
        names = [*map(reads.name, schema.names)]
    except UnicodeDecodeError:
        raise InvalidRow(_BAD_HEADER, called="the file") from None
    if len({*names}) < len(names):
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise InvalidRow(f"its header has {twice} twice", called="the file")


def _numbers(first: int, count: int, wrong: list[int]) -> Ints:
    """The numbers of good records, from `first` on, among bad ones."""
    return np.setdiff1d(np.arange(first, first + count + len(wrong)), np.array(wrong, np.int64))[:count]


def _block(texts: pa.Table, numbers: Ints, wrong: list[Bad], table: Table, options: FilesOptions) -> Block:
    kinds = {column.name: column.type for column in table.columns} | {TIME: BIGINT, DIFF: BIGINT}
    reasons: dict[int, str] = {}
    texts = pa.table({name: _decoded(texts[name], name, reasons) for name in texts.column_names})
    for name in texts.column_names:
        kind = kinds.get(name)
        if kind is not None and kind.kind not in _AS_THEY_ARE:
            _refuse(texts[name], name, kind, reasons)
    good = np.setdiff1d(np.arange(len(texts)), np.array(sorted(reasons), np.int64))
    kept = texts if len(good) == len(texts) else texts.take(pa.array(good))
    columns = {name: _typed(kept[name], kinds.get(name)) for name in kept.column_names}
    bad = [*wrong, *((int(numbers[row]), _text(texts, options, row), why) for row, why in reasons.items())]
    return Block(pa.table(columns), numbers[good], sorted(bad), lambda row: _text(kept, options, row))


def _decoded(column: pa.ChunkedArray, name: str, reasons: dict[int, str]) -> pa.ChunkedArray:
    """The texts of a column. Notes the rows that are not UTF-8, so that these alone are refused."""
    if not pa.types.is_binary(column.type):
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        found: list[str | None] = []
        for row, value in enumerate(column.to_pylist()):
            try:
                found.append(None if value is None else value.decode())
            except UnicodeDecodeError:
                found.append(value.decode(errors="backslashreplace"))
                reasons.setdefault(row, f"{name}: is not UTF-8")
        return pa.chunked_array([pa.array(found, pa.string())])


def _refuse(column: pa.ChunkedArray, name: str, kind: SqlType, reasons: dict[int, str]) -> None:
    """Note the rows whose texts are not of a type, or are numerics that it would round."""
    texts, cast = column.combine_chunks(), from_text(kind)
    try:
        made = cast(texts)
    except Failed as problem:
        if problem.mask is None:
            raise InvalidRow(problem.message, column=name) from None
        rows = np.flatnonzero(problem.mask)
        said = [problem.message] * len(rows) if problem.messages is None else problem.messages
        for row, why in zip(rows, said, strict=True):
            reasons.setdefault(int(row), f"{name}: {why}")
        texts = pc.if_else(pa.array(problem.mask), pa.scalar(None, texts.type), texts)
        made = cast(texts)
    if kind.kind is Kind.NUMERIC:
        remedy = f"round it to {kind.scale} digits after the point, or give the column more of them"
        for place in _rounded(texts, made):
            reasons.setdefault(place, f"{name}: {texts[place]} is not a valid {kind}; {remedy}")


def _rounded(texts: pa.Array, made: pa.Array) -> list[int]:
    """The rows whose numerics have lost digits."""
    try:
        exact = texts.cast(pa.decimal256(76, 38))
    except pa.ArrowInvalid:  # blanks around a number, underscores, more digits
        return [row for row, (text, value) in enumerate(zip(texts.to_pylist(), made.to_pylist(), strict=True))
                if text is not None and _number(text) not in (value, None)]  # fmt: skip
    return [int(row) for row in np.flatnonzero(pc.not_equal(exact, made.cast(exact.type)).fill_null(False))]


def _number(text: str) -> Decimal | None:
    """The number of a decimal text; None for another form, such as that of a hexadecimal integer."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


def _typed(column: pa.ChunkedArray, kind: SqlType | None) -> Any:
    if kind is None or kind.kind in _AS_THEY_ARE:
        return column
    return from_text(kind)(column.combine_chunks())


def _text(texts: pa.Table, options: FilesOptions, row: int) -> str:
    """A record as CSV."""
    line = io.StringIO()
    values = [column[row].as_py() for column in texts.columns]
    csv.writer(line, delimiter=options.delimiter, quotechar=options.quote, lineterminator="").writerow(
        options.null if value is None else value for value in values)  # fmt: skip
    return line.getvalue()

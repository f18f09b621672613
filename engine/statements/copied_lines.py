"""Reads the lines that COPY FROM takes, as columns of text. What PostgreSQL refuses, or reads as other values than
pyarrow's reader does, is refused: a line of no values, a quote inside a value, a quote without an end."""

from __future__ import annotations

import re
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from halfjoin.errors import InvalidRow
from halfjoin.sql.statements import Copy

_BACKSLASH, _DELIMITER = "\0b", "\0d"  # stand for what is escaped, while lines are taken apart
_END = re.compile(rb"^\\\.\r?$", re.MULTILINE)  # the line after which no more is read
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def read_lines(statement: Copy, data: bytes, names: list[str]) -> pa.Table:
    """The lines as columns of text, with these names.

    Raises:
        InvalidRow: a line has too few or too many values, or is not UTF-8; or it is refused for its quotes.
    """
    if b"\0" in data:
        raise _wrong(statement, "a text cannot have the character 0", code="22021")
    if statement.csv:
        data = _before_end(data, statement.quote.encode())
        _check_quotes(statement, data)
    else:
        data = data.replace(b"\\\\", _BACKSLASH.encode()).replace(b"\\\n", b"\\n")
        data = data.replace(b"\\" + statement.delimiter.encode(), _DELIMITER.encode())
        data = _before_end(data)
    if not data:
        return pa.table({name: pa.array([], pa.string()) for name in names})
    made = _parsed(statement, data, names)
    blank = data[:1] in b"\r\n" or b"\n\n" in data or b"\n\r" in data
    if blank and len(names) > 1 and _parsed(statement, data, names, skip_empty=True).num_rows != made.num_rows:
        raise _wrong(statement, "a line is empty", f"give each line {len(names)} values")
    if statement.match:
        made = _without_header(statement, made)
    for name in {*statement.force_null, *statement.force_not_null}:
        read = made[name]
        absent = statement.null if name in statement.force_not_null else None
        quoted = None if name in statement.force_null else statement.null
        value = pc.if_else(pc.equal(read, statement.null), pa.scalar(quoted, pa.string()), read)
        value = pc.if_else(pc.is_null(read), pa.scalar(absent, pa.string()), value)
        made = made.set_column(made.column_names.index(name), name, value)
    return made if statement.csv else pa.table({name: _unescaped(made[name], statement) for name in names})


def _before_end(data: bytes, quote: bytes = b"") -> bytes:
    """The lines before the one that says that no more follow. In CSV a value in quotes may have such a line."""
    at = odd = 0  # each byte is counted once, though each line of a value may look like the end
    for end in _END.finditer(data):
        if quote:
            odd ^= data.count(quote, at, end.start()) & 1
            at = end.start()
        if not odd:
            return data[: end.start()]
    return data


def _parsed(statement: Copy, data: bytes, names: list[str], *, skip_empty: bool = False) -> pa.Table:
    skipped = int(statement.header and not statement.match)
    reading = csv.ReadOptions(column_names=names, skip_rows_after_names=skipped, use_threads=False,
                              block_size=min(len(data) + 1, (1 << 31) - 1))  # fmt: skip
    parsing = csv.ParseOptions(delimiter=statement.delimiter, quote_char=statement.quote if statement.csv else False,
                               double_quote=statement.csv, newlines_in_values=statement.csv,
                               ignore_empty_lines=skip_empty)  # fmt: skip
    converting = csv.ConvertOptions(column_types={name: pa.string() for name in names}, strings_can_be_null=True,
                                    null_values=[statement.null], quoted_strings_can_be_null=False)  # fmt: skip
    try:
        return csv.read_csv(BytesIO(data), reading, parsing, converting)
    except (pa.ArrowInvalid, pa.ArrowKeyError) as problem:
        raise _wrong(statement, str(problem), f"give each line {len(names)} values in UTF-8",
                     "22021" if "UTF8" in str(problem) else "22P04") from None  # fmt: skip


def _check_quotes(statement: Copy, data: bytes) -> None:
    """Each quote begins or ends a value, or is one of two that stand for one: so it has a delimiter, an end of the line
    or another quote beside it."""
    flat, quote = np.frombuffer(data, np.uint8), ord(statement.quote)
    places = np.flatnonzero(flat == quote)
    if len(places) % 2:
        raise _wrong(statement, "unterminated CSV quoted field", "write its end")
    beside = np.zeros(256, np.bool_)
    beside[[ord(char) for char in ("\r", "\n", statement.quote, statement.delimiter)]] = True
    before = beside[flat[np.maximum(places - 1, 0)]] | (places == 0)
    after = beside[flat[np.minimum(places + 1, len(flat) - 1)]] | (places == len(flat) - 1)
    if not (before | after).all():
        raise _wrong(statement, "a quote is inside a value that does not begin with one",
                     "quote the whole value, and double the quotes inside")  # fmt: skip


def _without_header(statement: Copy, made: pa.Table) -> pa.Table:
    """The lines after the first, which must name the columns."""
    said = [column[0].as_py() for column in made.columns] if made.num_rows else []
    if said != made.column_names:
        raise _wrong(statement, f"the header says {', '.join(map(str, said))}, not {', '.join(made.column_names)}",
                     "name the columns in COPY in the order of the header")  # fmt: skip
    return made.slice(1)


def _unescaped(values: pa.ChunkedArray, statement: Copy) -> pa.ChunkedArray:
    """Values of the text format without their escapes."""
    if pc.any(pc.match_substring_regex(values, r"\\[0-7x]")).as_py():
        raise _wrong(statement, "an escape of a character's number is not supported",
                     "write the character itself, or FORMAT csv", "0A000")  # fmt: skip
    for letter, char in ESCAPES.items():
        values = pc.replace_substring(values, "\\" + letter, char)
    values = pc.replace_substring(pc.replace_substring(values, "\\", ""), _DELIMITER, statement.delimiter)
    return pc.replace_substring(values, _BACKSLASH, "\\")


def _wrong(statement: Copy, reason: str, remedy: str | None = None, code: str = "22P04") -> InvalidRow:
    return InvalidRow(f"COPY: {reason}", table=statement.table, remedy=remedy, code=code)

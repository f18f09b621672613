"""COPY: rows from and to text, as CSV or in PostgreSQL's text format.

pyarrow reads the text; each value is then cast from text, as PostgreSQL's input functions read it. In CSV an unquoted
value that is the text of NULL is NULL, a quoted one never is. In the text format a backslash escapes, `\\N` is NULL.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from halfjoin.engine.batch.state import State
from halfjoin.engine.scalar.texts import texts
from halfjoin.engine.statements import querying
from halfjoin.engine.statements.changing import Changed, carry_out
from halfjoin.engine.statements.creating import identifier
from halfjoin.engine.statements.with_changes import with_rows
from halfjoin.errors import InvalidRow, UnknownName, UnsupportedSQL
from halfjoin.sql.bind.query import bind_query
from halfjoin.sql.expr import Column
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.statements import Copy, Insert
from halfjoin.sql.types import STRINGS, TEXT

_ROWS = "\0copy"  # the table of the rows; no user can name it
_BACKSLASH, _DELIMITER = "\0b", "\0d"  # stand for what is escaped, while lines are taken apart
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def copied_in(state: State, statement: Copy, data: bytes | pa.Table, sql: str) -> Changed:
    """The rows of a stream as an INSERT: their text, or a table with a column for each that COPY fills.

    Raises:
        InvalidRow: a line has too few or too many values, or is not UTF-8. DataError: a value is not of its type.
    """
    filled = columns_of(state, statement, sql)
    names = [f"c{number}" for number in range(len(filled))]
    if isinstance(data, bytes):
        if statement.binary:
            raise UnsupportedSQL("COPY in the binary format needs a client of the server", remedy="write FORMAT csv")
        made, columns = _read(statement, data, names), tuple(Column(name, TEXT) for name in names)
        values = [name if column.type.kind in STRINGS else f"CAST({name} AS {column.type})"
                  for name, column in zip(names, filled, strict=True)]  # fmt: skip
    else:
        made, values = data.rename_columns(names), names
        columns = tuple(Column(name, column.type) for name, column in zip(names, filled, strict=True))
    seen = with_rows(state, _ROWS, columns, made)
    query = parse_query(f'SELECT {", ".join(values)} FROM "{_ROWS}"')
    table = state.catalog.table(statement.table).name
    return carry_out(seen, Insert(table, tuple(column.name for column in filled), query, table), sql)


def columns_of(state: State, statement: Copy, sql: str) -> tuple[Column, ...]:
    """The columns of the rows that COPY takes or gives, under their names.

    Raises:
        UnknownName: the table has none of that name.
    """
    if statement.query is not None:
        bound = bind_query(statement.query.copy(), state.catalog, sql)
        return tuple(Column(name, column.type)
                     for name, column in zip(bound.names, bound.relation.columns, strict=False))  # fmt: skip
    if statement.incoming:
        table = state.catalog.table(statement.table)
        known = {column.name: column.column for column in table.columns}
        names = statement.columns or tuple(column.name for column in table.columns if column.generated is None)
    else:
        text = f"SELECT * FROM {identifier(statement.table)}"
        bound = bind_query(parse_query(text), state.catalog, text)
        known = {name: Column(name, column.type)
                 for name, column in zip(bound.names, bound.relation.columns, strict=False)}  # fmt: skip
        names = statement.columns or tuple(known)
    for name in names:
        if name not in known:
            raise UnknownName(f"column of {statement.table}", name, known)
    return tuple(known[name] for name in names)


def rows_out(state: State, statement: Copy, sql: str) -> tuple[pa.Table, tuple[Column, ...]]:
    """A table's or a query's rows, and their columns."""
    query = statement.query
    if query is None:
        shown = ", ".join(identifier(column.name) for column in columns_of(state, statement, sql))
        sql = f"SELECT {shown} FROM {identifier(statement.table)}"
        query = parse_query(sql)
    return querying.answer(state, query.copy(), None, sql)


def copied_out(state: State, statement: Copy, sql: str) -> pa.Array:
    """A table's or a query's rows as lines of text, without their ends."""
    if statement.binary:
        raise UnsupportedSQL("COPY in the binary format needs a client of the server", remedy="write FORMAT csv")
    return copied_lines(statement, *rows_out(state, statement, sql))


def copied_lines(statement: Copy, found: pa.Table, columns: tuple[Column, ...]) -> pa.Array:
    """Rows as lines of text, without their ends, as the options of a COPY say."""
    alone = len(columns) == 1
    lines = [_written(statement, texts(column, one.type), alone=alone)
             for one, column in zip(columns, found.columns, strict=True)]  # fmt: skip
    if statement.header:
        lines = [pa.concat_arrays([_written(statement, pa.array([one.name], pa.string()), alone=alone), line])
                 for one, line in zip(columns, lines, strict=True)]  # fmt: skip
    return pc.binary_join_element_wise(*lines, statement.delimiter) if len(lines) > 1 else lines[0]


def joined(lines: pa.Array) -> bytes:
    """The lines as one text, each ended by a new line."""
    return bytes(bytes_of(pc.binary_join_element_wise(lines, "", "\n")))


def bytes_of(values: pa.Array) -> memoryview:
    """The bytes of all texts of an array, one after the other."""
    _, offsets, data = values.buffers()
    if data is None or not len(values):
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int32)[[values.offset, values.offset + len(values)]]
    return memoryview(data)[int(ends[0]) : int(ends[1])]


def _read(statement: Copy, data: bytes, names: list[str]) -> pa.Table:
    """The lines as columns of text."""
    if b"\0" in data:
        raise InvalidRow("COPY: a text cannot have the character 0", table=statement.table, code="22021")
    if not statement.csv:
        data = data.replace(b"\\\\", _BACKSLASH.encode()).replace(b"\\\n", b"\\n")
        data = data.replace(b"\\" + statement.delimiter.encode(), _DELIMITER.encode())
        if data.rstrip(b"\r\n").endswith(b"\\."):
            data = data.rstrip(b"\r\n")[:-2]
    if not data:
        return pa.table({name: pa.array([], pa.string()) for name in names})
    reading = csv.ReadOptions(column_names=names, skip_rows_after_names=int(statement.header), use_threads=False,
                              block_size=min(len(data) + 1, (1 << 31) - 1))  # fmt: skip
    parsing = csv.ParseOptions(delimiter=statement.delimiter, quote_char=statement.quote if statement.csv else False,
                               double_quote=statement.csv, newlines_in_values=statement.csv,
                               ignore_empty_lines=len(names) > 1)  # fmt: skip
    converting = csv.ConvertOptions(column_types={name: pa.string() for name in names}, strings_can_be_null=True,
                                    null_values=[statement.null], quoted_strings_can_be_null=False)  # fmt: skip
    try:
        made = csv.read_csv(BytesIO(data), reading, parsing, converting)
        if len(names) > 1 and _blank_line(data):
            parsing.ignore_empty_lines = False  # then a blank line is a row of NULLs, and not within quotes
            if len(csv.read_csv(BytesIO(data), reading, parsing, converting)) > len(made):
                raise pa.ArrowInvalid("a line is blank")
    except (pa.ArrowInvalid, pa.ArrowKeyError) as problem:
        utf8 = "UTF8" in str(problem)
        raise InvalidRow(f"COPY: {problem}", table=statement.table, code="22021" if utf8 else "22P04",
                         remedy=f"give each line {len(names)} values in UTF-8") from None  # fmt: skip
    return made if statement.csv else pa.table({name: _unescaped(made[name], statement) for name in names})


def _blank_line(data: bytes) -> bool:
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return lines.startswith(b"\n") or b"\n\n" in lines


def _unescaped(values: pa.ChunkedArray, statement: Copy) -> pa.ChunkedArray:
    """Values of the text format without their escapes."""
    if pc.any(pc.match_substring_regex(values, r"\\[0-7x]")).as_py():
        raise InvalidRow("COPY: an escape of a character's number is not supported", table=statement.table,
                         code="0A000", remedy="write the character itself, or FORMAT csv")  # fmt: skip
    for letter, char in _ESCAPES.items():
        values = pc.replace_substring(values, "\\" + letter, char)
    values = pc.replace_substring(pc.replace_substring(values, "\\", ""), _DELIMITER, statement.delimiter)
    return pc.replace_substring(values, _BACKSLASH, "\\")


def _written(statement: Copy, values: pa.Array, *, alone: bool) -> Any:
    """Values as PostgreSQL writes them, in CSV in quotes where these are needed. `alone`: in lines of one value."""
    made = values
    if not statement.csv:
        made = pc.replace_substring(made, "\\", "\\\\")
        for letter, char in _ESCAPES.items():
            made = pc.replace_substring(made, char, "\\" + letter)
        if statement.delimiter != "\t":
            made = pc.replace_substring(made, statement.delimiter, "\\" + statement.delimiter)
        return pc.fill_null(made, statement.null)
    quote = statement.quote
    needed = pc.or_(pc.equal(made, statement.null), pc.match_substring(made, statement.delimiter))
    if alone:  # an old mark of the end of the lines
        needed = pc.or_(needed, pc.equal(made, "\\."))
    for char in (quote, "\r", "\n"):
        needed = pc.or_(needed, pc.match_substring(made, char))
    inner = pc.replace_substring(made, quote, quote + quote)
    quoted = pc.binary_join_element_wise(quote, inner, quote, "")
    return pc.fill_null(pc.if_else(needed, quoted, made), statement.null)

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
from halfjoin.engine.statements import querying
from halfjoin.engine.statements.changing import Changed, carry_out
from halfjoin.engine.statements.creating import identifier
from halfjoin.engine.statements.with_changes import with_rows
from halfjoin.errors import InvalidRow, UnknownName
from halfjoin.sql.bind.query import bind_query
from halfjoin.sql.expr import Column
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.statements import Copy, Insert
from halfjoin.sql.types import BIGINT, BOOLEAN, STRINGS, TEXT

_ROWS = "\0copy"  # the table of the rows; no user can name it
_BACKSLASH, _DELIMITER = "\0b", "\0d"  # stand for what is escaped, while lines are taken apart
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def copied_in(state: State, statement: Copy, data: bytes, sql: str) -> Changed:
    """The rows of a stream as an INSERT.

    Raises:
        InvalidRow: a line has too few or too many values, or is not UTF-8. DataError: a value is not of its type.
    """
    table = state.catalog.table(statement.table)
    known = [column.name for column in table.columns]
    names = list(statement.columns) or [column.name for column in table.columns if column.generated is None]
    for name in names:
        if name not in known:
            raise UnknownName(f"column of {table.name}", name, known)
    columns = tuple(Column(f"c{number}", TEXT) for number in range(len(names)))
    made = _read(statement, data, [column.name for column in columns])
    seen = with_rows(state, _ROWS, columns, made)
    types = {column.name: column.type for column in table.columns}
    values = [f"c{number}" if types[name].kind in STRINGS else f"CAST(c{number} AS {types[name]})"
              for number, name in enumerate(names)]  # fmt: skip
    query = parse_query(f'SELECT {", ".join(values)} FROM "{_ROWS}"')
    return carry_out(seen, Insert(table.name, tuple(names), query, table.name), sql)


def copied_out(state: State, statement: Copy, sql: str) -> bytes:
    """A table's or a query's rows as text, each line ended by a new line."""
    query = statement.query
    if query is None:
        names = [column.name for column in state.catalog.columns(statement.table) or ()]
        for name in statement.columns:
            if name not in names:
                raise UnknownName(f"column of {statement.table}", name, names)
        shown = ", ".join(map(identifier, statement.columns or names)) or "*"
        sql = f"SELECT {shown} FROM {identifier(statement.table)}"
        query = parse_query(sql)
    bound = bind_query(query.copy(), state.catalog, sql)
    found = querying.query(state, query, None, sql)
    types = [column.type for column in bound.relation.columns[: len(bound.names)]]
    columns = tuple(Column(f"c{number}", type) for number, type in enumerate(types))
    order = Column("number", BIGINT)
    arrays = [*found.columns, pa.chunked_array([np.arange(found.num_rows)])]
    rows = pa.Table.from_arrays(arrays, names=[*(column.name for column in columns), "number"])
    texts = ", ".join(f"CASE WHEN {c.name} THEN 't' WHEN NOT {c.name} THEN 'f' END AS {c.name}"
                      if c.type == BOOLEAN else f"CAST({c.name} AS text) AS {c.name}" for c in columns)  # fmt: skip
    read = f'SELECT {texts}, number FROM "{_ROWS}" ORDER BY number'
    shown_rows = querying.query(with_rows(state, _ROWS, (*columns, order), rows), parse_query(read), None, read)
    alone = len(columns) == 1
    lines = [_written(statement, column, alone=alone) for column in shown_rows.columns[:-1]]
    if statement.header:
        lines = [pa.concat_arrays([_written(statement, pa.chunked_array([[name]], pa.string()), alone=alone), line])
                 for name, line in zip(bound.names, lines, strict=True)]  # fmt: skip
    joined = pc.binary_join_element_wise(*lines, statement.delimiter) if len(lines) > 1 else lines[0]
    return "".join(f"{line}\n" for line in joined.to_pylist()).encode()


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
                               ignore_empty_lines=False)  # fmt: skip
    converting = csv.ConvertOptions(column_types={name: pa.string() for name in names}, strings_can_be_null=True,
                                    null_values=[statement.null], quoted_strings_can_be_null=False)  # fmt: skip
    try:
        made = csv.read_csv(BytesIO(data), reading, parsing, converting)
    except (pa.ArrowInvalid, pa.ArrowKeyError) as problem:
        utf8 = "UTF8" in str(problem)
        raise InvalidRow(f"COPY: {problem}", table=statement.table, code="22021" if utf8 else "22P04",
                         remedy=f"give each line {len(names)} values in UTF-8") from None  # fmt: skip
    return made if statement.csv else pa.table({name: _unescaped(made[name], statement) for name in names})


def _unescaped(values: pa.ChunkedArray, statement: Copy) -> pa.ChunkedArray:
    """Values of the text format without their escapes."""
    if pc.any(pc.match_substring_regex(values, r"\\[0-7x]")).as_py():
        raise InvalidRow("COPY: an escape of a character's number is not supported", table=statement.table,
                         code="0A000", remedy="write the character itself, or FORMAT csv")  # fmt: skip
    for letter, char in _ESCAPES.items():
        values = pc.replace_substring(values, "\\" + letter, char)
    values = pc.replace_substring(pc.replace_substring(values, "\\", ""), _DELIMITER, statement.delimiter)
    return pc.replace_substring(values, _BACKSLASH, "\\")


def _written(statement: Copy, values: pa.ChunkedArray, *, alone: bool) -> Any:
    """Values as PostgreSQL writes them, in CSV in quotes where these are needed. `alone`: in lines of one value."""
    made = values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
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

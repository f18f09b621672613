"""COPY: rows from and to text, as CSV or in PostgreSQL's text format.

pyarrow reads the text; each value is then cast from text, as PostgreSQL's input functions read it. In CSV an unquoted
value that is the text of NULL is NULL, a quoted one never is. In the text format a backslash escapes, `\\N` is NULL.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.batch.state import State
from halfjoin.engine.scalar.casts_text import fitted, from_text
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.texts import texts
from halfjoin.engine.statements import querying
from halfjoin.engine.statements.changing import Changed, carry_out
from halfjoin.engine.statements.copied_lines import ESCAPES, read_lines
from halfjoin.engine.statements.creating import identifier
from halfjoin.engine.statements.given_rows import with_rows
from halfjoin.errors import DataError, InvalidRow, UnknownName, UnsupportedSQL
from halfjoin.sql.bind.query import bind_query
from halfjoin.sql.expr import Column
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.parse.prepared import type_text
from halfjoin.sql.statements import Copy, Insert
from halfjoin.sql.types import STRINGS, TEXT, of_any_length

_ROWS = "\0copy"  # the table of the rows; no user can name it


def copied_in(state: State, statement: Copy, data: bytes | pa.Table, sql: str) -> Changed:
    """The rows of a stream as an INSERT: their text, or a table with a column for each that COPY fills.

    Raises:
        InvalidRow: a line has too few or too many values, or is not UTF-8, or a value is not of its type.
    """
    filled = columns_of(state, statement, sql)
    names = [column.name for column in filled]
    loose = tuple(Column(column.name, of_any_length(column.type)) for column in filled)  # INSERT checks the length
    if isinstance(data, bytes):
        if statement.binary:
            raise UnsupportedSQL("COPY in the binary format needs a client of the server", remedy="write FORMAT csv")
        _check_forced(statement, names)
        made, columns = read_lines(statement, data, names), tuple(Column(name, TEXT) for name in names)
        values = [identifier(name) if column.type.kind in STRINGS else
                  f"CAST({identifier(name)} AS {type_text(column.type)})"
                  for name, column in zip(names, loose, strict=True)]  # fmt: skip
    else:
        made, columns = data.rename_columns(names), loose
        values = [identifier(name) for name in names]
    seen = with_rows(state, _ROWS, columns, made)
    query = parse_query(f'SELECT {", ".join(values)} FROM "{_ROWS}"')
    table = state.catalog.table(statement.table).name
    try:
        # It may give any value to an identity: a dump has its numbers.
        return carry_out(seen, Insert(table, tuple(names), query, table, overriding="system"), sql)
    except DataError as problem:
        raise (_first_wrong(made, filled, table) if isinstance(data, bytes) else None) or problem from None


def _first_wrong(lines: pa.Table, columns: tuple[Column, ...], table: str) -> InvalidRow | None:
    """The error of the first value that is not of its column's type; None if all are."""
    found: list[InvalidRow] = []
    for column in columns:
        given = lines[column.name].combine_chunks()
        try:
            values = given if column.type.kind in STRINGS else from_text(of_any_length(column.type))(given)
            if of_any_length(column.type) != column.type:
                fitted(column.type)(values)
        except Failed as problem:
            row = 0 if problem.mask is None else int(problem.mask.argmax())
            why = problem.message if problem.messages is None else problem.messages[0]
            found.append(InvalidRow(why, table=table, column=column.name, row=row, code=DataError(why).sqlstate))
    return min(found, key=lambda one: one.row or 0, default=None)


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
    for place, name in enumerate(names):
        if name not in known:
            raise UnknownName(f"column of {statement.table}", name, known)
        if name in names[:place]:
            raise UnsupportedSQL(f"column {name} is named twice", remedy="name it once", wrong=True)
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
    alone, named = len(columns) == 1, [column.name for column in columns]
    _check_forced(statement, named)
    forced = named if statement.force_quote == () else statement.force_quote or ()
    lines = [_written(statement, texts(column, one.type), alone=alone, forced=one.name in forced)
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


def _check_forced(statement: Copy, names: list[str]) -> None:
    for name in (*(statement.force_quote or ()), *statement.force_null, *statement.force_not_null):
        if name not in names:
            raise UnknownName("column of COPY", name, names)


def _written(statement: Copy, values: pa.Array, *, alone: bool, forced: bool = False) -> Any:
    """Values as PostgreSQL writes them, in CSV in quotes where these are needed or `forced`. `alone`: in lines of one
    value."""
    made = values
    if not statement.csv:
        made = pc.replace_substring(made, "\\", "\\\\")
        for letter, char in ESCAPES.items():
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
    if forced:
        needed = pc.is_valid(made)
    inner, escape = made, statement.escape
    for char in dict.fromkeys((escape, quote)):
        inner = pc.replace_substring(inner, char, escape + char)
    quoted = pc.binary_join_element_wise(quote, inner, quote, "")
    return pc.fill_null(pc.if_else(needed, quoted, made), statement.null)

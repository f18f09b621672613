"""INSERT of many rows of constants: they are made columns at once, as those of COPY are, not expressions one by one.

What a constant means depends on its column. Where that is not plain here, and where a row is wrong, each constant is an
expression after all, which then says what is wrong, and where.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.creating import identifier
from halfjoin.engine.statements.given_rows import with_rows
from halfjoin.errors import UnknownName
from halfjoin.sql.expr import Column
from halfjoin.sql.parse.literal_rows import LiteralRows
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.parse.prepared import type_text
from halfjoin.sql.statements import Insert
from halfjoin.sql.types import BIGINT, BOOLEAN, INTEGER, INTEGERS, STRINGS, TEXT, Kind, SqlType, of_any_length

_ROWS, _NUMBER = "\0values", "\0number"  # the table of the rows, and their order; no user can name them
_WHOLE, _LONGEST = re.compile(r"-?[0-9]{1,18}"), 30  # digits that an int64 has; characters of a number that is exact
_BITS = 31
_OWN_SCALE = ("numeric", "decimal")  # a constant has the decimals of its text, and a column the same for all
# A column of constants: its values, their type, and the types that they are cast to before INSERT assigns them.
Made: TypeAlias = tuple[pa.Array, SqlType, Sequence[str]]


def from_columns(state: State, statement: Insert, rows: LiteralRows) -> tuple[State, Insert] | None:
    """The statement as one that reads its rows from a table, and the state with that. None if it has to be told of each
    constant by itself."""
    try:
        table = state.catalog.table(statement.table)
    except UnknownName:
        return None
    types = {column.name: column.type for column in table.columns if column.generated is None}
    names = statement.columns or tuple(column.name for column in table.columns)[: rows.width]
    if len(names) != rows.width or not types.keys() >= set(names) or statement.overriding == "user":
        return None
    columns, arrays, values = list[Column](), list[pa.Array](), list[str]()
    for place, (name, cells) in enumerate(zip(names, zip(*rows.cells, strict=True), strict=True)):
        found = _parameters(rows, place, types[name]) if place in rows.numbers else _column(cells, types[name])
        if found is None:
            return None
        array, type, casts = found
        columns.append(Column(str(place), type))
        arrays.append(array)
        values.append(reduce("CAST({} AS {})".format, casts, identifier(str(place))))
    columns.append(Column(_NUMBER, BIGINT))
    arrays.append(pa.array(np.arange(len(rows.cells))))
    seen = with_rows(state, _ROWS, columns, pa.table(arrays, [column.name for column in columns]))
    query = parse_query(f'SELECT {", ".join(values)} FROM "{_ROWS}" ORDER BY "{_NUMBER}"')
    return seen, replace(statement, query=query)


def _column(cells: Sequence[str], type: SqlType) -> Made | None:
    """A column of constants; None if they are of several kinds, or of one that does not go with `type` by itself."""
    kinds = {cell[0] for cell in cells} - set("nN")
    given = [None if cell[0] in "nN" else cell for cell in cells]
    if kinds <= {"'"}:
        return _texts(given, type)
    if kinds <= set("tTfF"):
        return pa.array([None if cell is None else cell[0] in "tT" for cell in given]), BOOLEAN, ()
    return _numbers(given, type) if kinds.isdisjoint("'tTfF") else None


def _texts(given: Sequence[str | None], type: SqlType) -> Made | None:
    """Texts in quotes; `::` and a type may follow all of them."""
    ends = {"" if cell[-1] == "'" else cell[cell.rindex("'") + 1 :] for cell in given if cell is not None}
    if len(ends) > 1:
        return None
    end = next(iter(ends), "")
    written, last = end.removeprefix("::"), -1 - len(end)
    if written.lower() in _OWN_SCALE:
        return None
    values = [None if cell is None else cell[1:last].replace("''", "'") for cell in given]
    return pa.array(values, pa.string()), TEXT, [written] if written else _to(type)


def _numbers(given: Sequence[str | None], type: SqlType) -> Made | None:
    """Numbers. Whole ones are integers; others are read as a column's type that keeps or rounds them in one step."""
    array = pa.array(given, pa.string())
    if all(cell is None or _WHOLE.fullmatch(cell) for cell in given):
        array = array.cast(pa.int64())
        values = array.drop_null().to_numpy()
        small = bool((values >> _BITS == values >> 63).all())
        return array.cast(pa.int32()) if small else array, INTEGER if small else BIGINT, ()
    if type.kind not in (Kind.NUMERIC, Kind.DOUBLE) or any(cell is not None and len(cell) > _LONGEST for cell in given):
        return None
    return array, TEXT, _to(type)


def _parameters(rows: LiteralRows, place: int, type: SqlType) -> Made | None:
    """A column of parameters, whose values are texts of the types that the client has given."""
    if not rows.values:
        return None
    numbers, written = rows.numbers[place], rows.cells[0][place].partition("::")[2]
    given = [rows.values[number - 1] for number in numbers]
    types = {rows.types[number - 1] for number, value in zip(numbers, given, strict=True) if value is not None}
    if len(types) > 1:  # as of a client that gives each integer the least type that it has
        if not all(one is not None and one.kind in INTEGERS for one in types):
            return None
        types = {BIGINT}
    own = next(iter(types), None)
    exact = own is not None and own.kind is Kind.NUMERIC
    if exact or written.lower() in _OWN_SCALE:
        if type.kind is not Kind.NUMERIC or not (exact or own is None) or written.lower() not in ("", *_OWN_SCALE):
            return None
        own, written = None, ""
    casts = [*([] if own is None else [type_text(own)]), *([written] if written else [])]
    return pa.array(given, pa.string()), TEXT, casts or _to(type)


def _to(type: SqlType) -> Sequence[str]:
    """The cast of a text to a column's type, whose length INSERT checks."""
    loose = of_any_length(type)
    return () if loose.kind in STRINGS else (type_text(loose),)

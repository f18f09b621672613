"""INSERT of many rows of constants: they are made columns at once, as those of COPY are, not expressions one by one.

What a constant means depends on its column. Where that is not plain here, and where a row is wrong, each constant is an
expression after all, which then says what is wrong, and where.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.creating import identifier
from halfjoin.engine.statements.given_rows import with_rows
from halfjoin.errors import UnknownName
from halfjoin.sql.expr import Column
from halfjoin.sql.parse.literal_rows import LiteralRows
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.statements import Insert
from halfjoin.sql.types import BIGINT, BOOLEAN, INTEGER, STRINGS, TEXT, Kind, SqlType, of_any_length

_ROWS, _NUMBER = "\0values", "\0number"  # the table of the rows, and their order; no user can name them
_WHOLE, _LONGEST = re.compile(r"-?[0-9]{1,18}"), 30  # digits that an int64 has; characters of a number that is exact
_BITS = 31
_OWN_SCALE = ("numeric", "decimal", "dec")  # a constant has the decimals of its text, and a column the same for all


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
    for number, (name, cells) in enumerate(zip(names, zip(*rows.cells, strict=True), strict=True)):
        found = _column(cells, types[name])
        if found is None:
            return None
        array, type, cast = found
        columns.append(Column(str(number), type))
        arrays.append(array)
        values.append(identifier(str(number)) if cast is None else f"CAST({identifier(str(number))} AS {cast})")
    columns.append(Column(_NUMBER, BIGINT))
    arrays.append(pa.array(np.arange(len(rows.cells))))
    seen = with_rows(state, _ROWS, columns, pa.table(arrays, [column.name for column in columns]))
    query = parse_query(f'SELECT {", ".join(values)} FROM "{_ROWS}" ORDER BY "{_NUMBER}"')
    return seen, replace(statement, query=query)


def _column(cells: Sequence[str], type: SqlType) -> tuple[pa.Array, SqlType, str | None] | None:
    """A column of constants: its values, their type, and the type that they are cast to before INSERT assigns them.
    None if they are of several kinds, or of one that does not go with `type` by itself."""
    kinds = {cell[0] for cell in cells} - set("nN")
    to = of_any_length(type)  # INSERT checks the length
    cast = None if to.kind in STRINGS else str(to)
    if not kinds:
        return pa.nulls(len(cells), pa.string()), TEXT, cast
    given = [None if cell[0] in "nN" else cell for cell in cells]
    if kinds == {"'"}:
        return _texts(given, cast)
    if kinds <= set("tTfF"):
        return pa.array([None if cell is None else cell[0] in "tT" for cell in given]), BOOLEAN, None
    if kinds.isdisjoint("'tTfF"):
        return _numbers(given, to)
    return None


def _texts(given: Sequence[str | None], cast: str | None) -> tuple[pa.Array, SqlType, str | None] | None:
    """Texts in quotes; `::` and a type may follow all of them."""
    ends = {"" if cell[-1] == "'" else cell[cell.rindex("'") + 1 :] for cell in given if cell is not None}
    if len(ends) > 1:
        return None
    (end,) = ends
    if end.removeprefix("::").lower() in _OWN_SCALE:
        return None
    last = -1 - len(end)
    values = [None if cell is None else cell[1:last].replace("''", "'") for cell in given]
    return pa.array(values, pa.string()), TEXT, end.removeprefix("::") or cast


def _numbers(given: Sequence[str | None], to: SqlType) -> tuple[pa.Array, SqlType, str | None] | None:
    """Numbers. Whole ones are integers; others are read as a column's type that keeps or rounds them in one step."""
    if all(cell is None or _WHOLE.fullmatch(cell) for cell in given):
        array = pa.array(given, pa.string()).cast(pa.int64())
        values = array.drop_null().to_numpy()
        small = bool((values >> _BITS == values >> 63).all())
        return array.cast(pa.int32()) if small else array, INTEGER if small else BIGINT, None
    if to.kind not in (Kind.NUMERIC, Kind.DOUBLE) or any(cell is not None and len(cell) > _LONGEST for cell in given):
        return None
    return pa.array(given, pa.string()), TEXT, str(to)

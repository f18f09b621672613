"""Values as PostgreSQL writes them, in the types of a table's columns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.catalog.models import ColumnModel, Table
from halfjoin.engine.scalar.casts_text import from_text
from halfjoin.engine.scalar.columns import convert
from halfjoin.engine.scalar.duck import rows_of
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.updates import Mask
from halfjoin.errors import InvalidRow
from halfjoin.sql.types import STRINGS, Kind, SqlType, innermost, parts_of

# Texts that `convert` takes as they are: whole columns at a time, and no digit of a numeric is rounded away.
_AS_TEXT = (*STRINGS, Kind.NUMERIC, Kind.UUID, Kind.JSON, Kind.JSONB, Kind.ENUM, Kind.TIME, Kind.TIMESTAMP,
            Kind.TIMESTAMPTZ)


def typed(table: Table, texts: Mapping[str, pa.StringArray], free: Mapping[str, Mask]) -> dict[str, pa.Array]:
    """All columns of a table from the texts of some; the others are NULL. `free`: by column, the rows that may be NULL
    although the column is NOT NULL.

    Raises:
        InvalidRow: a value does not fit its column, or is NULL in a column that is NOT NULL.
    """
    length = len(next(iter(texts.values()), ()))
    return {one.name: _typed(table, one, texts.get(one.name), length, free.get(one.name)) for one in table.columns}


def _typed(
    table: Table, column: ColumnModel, texts: pa.StringArray | None, length: int, free: Mask | None
) -> pa.Array:
    given = pa.nulls(length, pa.string()) if texts is None else texts
    if column.type.kind is Kind.BYTEA:
        given = _bytes(given)
    elif column.type.kind not in _AS_TEXT and given.null_count < length:
        given = _cast(table, column, given)
    array = convert(table.name, column.name, column.type, given)
    if column.not_null and column.generated is None and array.null_count:
        null = array.is_null().to_numpy(zero_copy_only=False)
        null = null if free is None else null & ~free
        if null.any():
            raise InvalidRow("is NULL, and the column is NOT NULL", table=table.name, column=column.name,
                             row=int(np.argmax(null)), code="23502")  # fmt: skip
    return array


def _cast(table: Table, column: ColumnModel, texts: pa.StringArray) -> pa.Array:
    """The texts, cast. Refuses a numeric in an array if it has more digits than the column."""
    element = innermost(column.type)
    if element.kind is Kind.RECORD and _has_numerics(element):
        raise InvalidRow(f"is a {column.type}, whose numerics might be rounded", remedy="declare the column text",
                         table=table.name, column=column.name, row=0, value=texts[0].as_py())  # fmt: skip
    if element.kind is Kind.NUMERIC:
        longer = pc.match_substring_regex(texts, rf"\.[0-9]{{{element.scale or 0}}}[0-9]*[1-9]")
        if pc.any(longer, min_count=0).as_py():
            row = int(pc.index(longer, True).as_py())
            raise InvalidRow(f"is not a valid {column.type}", remedy="give the column more digits after the point",
                             table=table.name, column=column.name, row=row, value=texts[row].as_py())  # fmt: skip
    try:
        return from_text(column.type)(texts)
    except Failed as problem:
        row = 0 if problem.mask is None else int(problem.mask.argmax())
        raise InvalidRow(f"is not a valid {column.type}: {problem.message}", table=table.name, column=column.name,
                         row=row, value=texts[row].as_py()) from None  # fmt: skip


def _bytes(texts: pa.StringArray) -> pa.Array:
    """Bytes from their hexadecimal digits after `\\x`."""
    found = rows_of("SELECT unhex(v[3:]) AS v FROM arguments", pa.table({"v": texts})).column("v")
    return found.combine_chunks().cast(pa.binary())


def _has_numerics(type: SqlType) -> bool:
    return type.kind is Kind.NUMERIC or any(map(_has_numerics, parts_of(type)))

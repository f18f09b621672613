"""The rows of an INSERT with many constants, parsed one by one after all: for what is told of one of them."""

from __future__ import annotations

from dataclasses import replace

from halfjoin.sql.parse.literal_rows import LiteralRows
from halfjoin.sql.parse.locate import bare_values
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.statements import Insert

_WORD = "VALUES "


def with_whole_rows(statement: Insert, rows: LiteralRows) -> Insert:
    """The statement with its rows as syntax trees, each at its place in the text."""
    values = bare_values(parse_query(f"{_WORD:>{rows.start}}{rows.text[rows.start : rows.end]}"))
    assert values is not None and statement.query is not None
    query = statement.query.copy()
    query.set("expressions", values.expressions)
    query.meta.pop("rows")
    return replace(statement, query=query)

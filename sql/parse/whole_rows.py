"""The rows of an INSERT with many constants, parsed one by one after all: for what is told of one of them."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from halfjoin.sql.parse.literal_rows import LiteralRows
from halfjoin.sql.parse.locate import bare_values
from halfjoin.sql.parse.parameters import exchanged, name_of_parameter, placed_as
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.parse.prepared import typed_constant
from halfjoin.sql.statements import Insert

_WORD = "VALUES "


def with_whole_rows(statement: Insert, rows: LiteralRows) -> Insert:
    """The statement with its rows as syntax trees, each at its place in the text."""
    values = bare_values(parse_query(f"{_WORD:>{rows.start}}{rows.text[rows.start : rows.end]}"))
    assert values is not None and statement.query is not None

    def changed(node: exp.Expr) -> exp.Expr | None:
        name = name_of_parameter(node) if rows.values else None
        if name is None:
            return None
        return placed_as(typed_constant(rows.values[int(name) - 1], rows.types[int(name) - 1]), node)

    query = statement.query.copy()
    query.set("expressions", exchanged(values, changed).expressions if rows.numbers else values.expressions)
    query.meta.pop("rows")
    return replace(statement, query=query)

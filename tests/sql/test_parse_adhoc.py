"""Ad-hoc queries: which tables and views they read."""

from __future__ import annotations

import pytest

from halfjoin.errors import UnknownName
from halfjoin.sql.bind.tables import names_of, tables_of
from halfjoin.sql.parse.parse import parse_query
from tests.support.front import SCHEMA


@pytest.mark.parametrize(("sql", "names", "tables"), [
    ("SELECT 1", "", ""),
    ("SELECT * FROM t, u AS x, t AS y", "t u", "t u"),
    ("SELECT * FROM pv JOIN named ON a = k", "named pv t u", "t u"),
    ("WITH t AS (SELECT * FROM u) SELECT * FROM t", "u", "u"),
    ("WITH t AS (SELECT * FROM t) SELECT * FROM t", "t", "t"),
    ("WITH q AS (SELECT 1), r AS (SELECT * FROM q) SELECT * FROM r", "", ""),
    ("SELECT (SELECT max(a) FROM u) FROM t WHERE EXISTS (SELECT 1 FROM w)", "t u w", "t u w"),
    ("SELECT * FROM (WITH w AS (SELECT 1) SELECT * FROM w) x, w", "w", "w"),
    ("SELECT * FROM generate_series(1, 2), \"Odd\"", "Odd", "Odd"),
])  # fmt: skip
def test_names(sql: str, names: str, tables: str) -> None:
    query = parse_query(sql)
    assert names_of(query, SCHEMA) == set(names.split())
    assert tables_of(query, SCHEMA) == set(tables.split())


def test_unknown_tables() -> None:
    sql = "SELECT count(*)\nFROM tt"
    with pytest.raises(UnknownName, match=r"unknown table or view 'tt' \(line 2, column 6\)"):
        names_of(parse_query(sql), SCHEMA, sql)

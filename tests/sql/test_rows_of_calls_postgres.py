"""A function that returns rows of several columns gives one row in the SELECT list, whose members have names."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj
from tests.support.compared import compare

pytest_plugins = ("tests.support.postgres",)

SETUP = """
    CREATE TABLE j (i integer PRIMARY KEY, j jsonb);
    CREATE TYPE pair AS (a integer, b text);
    CREATE TYPE lists AS (a integer[], b text);
    INSERT INTO j VALUES (1, '{"a": 1, "b": "x"}'), (2, '{"c": [1]}'), (3, '{}'), (4, NULL);
"""
CHANGES = ("INSERT INTO j VALUES (5, '{\"a\": null}')", "UPDATE j SET j = j || '{\"d\": 0}' WHERE i < 4",
           "DELETE FROM j WHERE i IN (1, 5)")  # fmt: skip
QUERIES = (
    "SELECT i, (jsonb_each(j)).key FROM j", "SELECT (jsonb_each_text(j)).value AS v, i FROM j",
    "SELECT i, (jsonb_each(j)).key AS k, (jsonb_each(j)).value::text AS v FROM j",
    "SELECT (jsonb_each_text(j)).* FROM j", "SELECT i, (jsonb_each_text(j)).*, i + 1 AS n FROM j",
    "SELECT count(*) FROM (SELECT (jsonb_each(j)).key FROM j) AS wow",
    "SELECT key, count(*) FROM (SELECT (jsonb_each(j)).key FROM j) AS q GROUP BY key",
    "SELECT (jsonb_each(j)).key AS k, count(*) FROM j GROUP BY 1", "SELECT DISTINCT (jsonb_each(j)).key AS k FROM j",
    "SELECT jsonb_each(j) IS NULL AS n FROM j", "SELECT to_jsonb(jsonb_each(j))::text AS r FROM j",
    "SELECT jsonb_each(j)::text AS r, i FROM j",
    "SELECT i, (jsonb_populate_recordset(NULL::pair, jsonb_build_array(j, j))).* FROM j WHERE j IS NOT NULL",
    "SELECT jsonb_populate_recordset(ROW(7, 'z')::pair, jsonb_build_array(j))::text AS r FROM j WHERE i < 4",
    "SELECT i, x.* FROM j, jsonb_populate_record(ROW('{7}', 'z')::lists, j - 'a') AS x",
    "SELECT i, x.* FROM j, jsonb_populate_record(NULL::record, j - 'a') AS x (b text, d bigint)",
    "SELECT i, x.* FROM j, jsonb_populate_recordset(NULL::record, jsonb_build_array(j - 'a')) AS x (b text, d bigint)"
    " WHERE i < 4",
    "SELECT i, x.* FROM j, jsonb_to_record(j - 'a') AS x (c integer[], b text, d bigint)",
)  # fmt: skip


def test_rows_of_calls_are_postgresqls(postgres: Any) -> None:
    compare(SETUP, CHANGES, QUERIES, postgres)


@pytest.mark.parametrize(("sql", "error"), [
    ("SELECT (jsonb_each('{}')).nope", "unknown column 'nope'"),
    ("SELECT (generate_series(1, 2)).*", "returns rows, which is not allowed here"),
    ("SELECT jsonb_each('{}'), generate_series(1, 2)", "with several columns beside another"),
    ("SELECT 1 WHERE (jsonb_each('{}')).key = 'a'", "returns rows, which is not allowed here"),
])  # fmt: skip
def test_other_places_of_such_calls_are_refused(sql: str, error: str) -> None:
    with pytest.raises(hj.HalfjoinError, match=error):
        hj.Engine().query(sql)

"""Arguments by name, operators in arguments, VARIADIC and pg_typeof have PostgreSQL's meaning, ad hoc and in views."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj
from halfjoin.errors import UnsupportedSQL
from tests.support.compared import compare

pytest_plugins = ("tests.support.postgres",)

SETUP = """
    CREATE TABLE t (id integer PRIMARY KEY, n integer, j jsonb, a text[]);
    INSERT INTO t VALUES (1, -5, '{"a": 1, "b": {"c": 2}}', '{b,c}'), (2, NULL, NULL, NULL), (3, 0, '[1, 2]', '{}');
"""
CHANGES = ("""INSERT INTO t VALUES (4, 7, '{"b": {"c": [3]}}', '{b,c}')""", "DELETE FROM t WHERE id < 3")
QUERIES = (
    # arguments by name
    "SELECT id, make_interval(years := n, hours := -2)::text AS x FROM t",
    "SELECT id, make_interval(n, weeks => 2)::text AS x FROM t",
    "SELECT id, make_date(month => 2, year => 2024, day => 29) + n AS x FROM t",
    "SELECT id, make_timestamptz(2024, 7, 1, 0, 0, 0, timezone => 'Europe/Berlin') AS x FROM t",
    "SELECT id, jsonb_set(j, '{z}', '2', create_if_missing => false)::text AS x FROM t WHERE id <> 3",
    "SELECT id, jsonb_set(jsonb_in => j, path => '{z}', replacement => '2')::text AS x FROM t WHERE id <> 3",
    "SELECT id, jsonb_set_lax(j, '{a}', NULL, null_value_treatment => 'delete_key')::text AS x FROM t WHERE id <> 3",
    "SELECT id, jsonb_path_exists(j, '$.a.b', silent => true) AS x FROM t",
    """SELECT id, q::text FROM t, jsonb_path_query(j, '$[*] ? (@ > $x)', vars => '{"x": 1}') AS q""",
    # a prefix operator in an argument
    "SELECT id, abs(@ -n) AS x, coalesce(@ - 3, n) AS y, (@ -n) AS z, abs((@ -5)) AS w FROM t",
    # the elements of an array as arguments
    "SELECT id, jsonb_extract_path(j, VARIADIC a)::text AS x, jsonb_extract_path_text(j, VARIADIC '{b,c}') AS y FROM t",
    "SELECT id, jsonb_build_array(VARIADIC a)::text AS x, jsonb_build_object(VARIADIC a)::text AS y FROM t",
    # the type of a value
    "SELECT id, pg_typeof(n)::text AS x, pg_typeof(a)::text AS y, pg_typeof(NULL)::text AS w FROM t",
    "SELECT pg_typeof(sum(n))::text AS x, pg_typeof(max(id) / 2.0)::text AS w, pg_typeof('a'::varchar(3))::text FROM t",
)  # fmt: skip


def test_calls_have_postgresqls_answers(postgres: Any) -> None:
    compare(SETUP, CHANGES, QUERIES, postgres)


def test_the_type_of_a_value_can_be_compared() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TYPE mood AS ENUM ('sad')")
    found = engine.query("SELECT pg_typeof(1) = 'int'::regtype AS a, pg_typeof('sad'::mood) AS b, pg_typeof(1) AS c")
    assert found.to_pylist() == [{"a": True, "b": "mood", "c": "integer"}]


@pytest.mark.parametrize(("call", "reason"), [
    ("make_interval(1, years => 2)", "make_interval takes years, months"),
    ("make_interval(days => 1, days => 2)", "make_interval takes years, months"),
    ("make_interval(days => 1, 2)", "positional argument cannot follow named argument"),
    ("make_interval(day => 1)", "make_interval takes years, months"),
    ("make_date(year => 2024)", "make_date takes|make_date needs|no function make_date"),
    ("make_date(day => 1)", "make_date needs year, month"),
    ("upper(x => 'a')", "upper takes plain arguments only"),
    ("jsonb_build_object(VARIADIC ARRAY[1, 2])", "write the elements as arguments"),
])  # fmt: skip
def test_other_calls_are_refused(call: str, reason: str) -> None:
    with pytest.raises(UnsupportedSQL, match=reason):
        hj.Engine().query(f"SELECT {call}")

"""What arrays have in common is as in PostgreSQL: equal elements may look different, and Python need not have them."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

ARRAYS = [
    ("interval[]", "{1 mon}", "{30 days}"), ("interval[]", "{24:00:00,NULL}", "{1 day}"),
    ("interval[]", "{1 mon}", "{29 days}"), ("date[]", "{12000-01-01}", "{12000-01-01,2024-01-01}"),
    ("date[]", "{12000-01-01,NULL}", "{0044-03-15 BC}"), ("date[][]", "{{12000-01-01}}", "{{2024-01-01,12000-01-01}}"),
    ("timestamp[]", "{12000-01-01}", "{12000-01-01 00:00:00.000001}"), ("integer[][]", "{{1,2},{3,4}}", "{{4,1}}"),
    ("timestamptz[]", "{0044-03-15 00:00+00 BC}", "{0044-03-15 01:00+01 BC}"), ("integer[]", "{1,NULL}", "{}"),
    ("float8[]", "{NaN,-0}", "{0}"), ("jsonb[]", '{"1.0"}', "{1}"), ("char(3)[]", "{a}", '{"a  "}'),
    ("time[]", "{00:00}", "{00:00,01:00}"), ("text[]", '{"",NULL}', '{""}'),
]


@pytest.mark.parametrize(("type", "one", "other"), ARRAYS)
def test_what_arrays_have_in_common_is_postgresqls(postgres: Any, type: str, one: str, other: str) -> None:
    engine = hj.Engine(clock="own")
    query = "SELECT n, a && b AS common, a @> b AS has, a <@ b AS within FROM t"
    values = f"(1, '{one}', '{other}'), (2, '{other}', '{one}'), (3, '{one}', '{one}'), (4, NULL, '{one}')"
    rows = f"INSERT INTO t VALUES {values}"
    for run in (engine.execute, postgres.execute):
        run(f"CREATE TABLE t (n integer, a {type}, b {type})")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {query}; SET TIME = 1; {rows}; RESET TIME")
    postgres.execute(rows)
    wanted = sorted(postgres.execute(query).fetchall(), key=str)
    assert sorted((tuple(row.values()) for row in engine.read("v").to_pylist()), key=str) == wanted
    engine.execute("SET TIME = 2; DELETE FROM t WHERE n < 3; RESET TIME")
    assert engine.read("v").num_rows == 2


def test_rows_in_arrays_are_compared_by_their_members() -> None:
    row, other = "ROW(date '12000-01-01', interval '1 mon', 'NaN'::float8)", "ROW(d, i, x)"
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (d date, i interval, x float8)")
        engine.execute("INSERT INTO t VALUES ('12000-01-01', '30 days', 'NaN'), ('12000-01-01', '30 days', 1)")
        found = engine.query(f"SELECT ARRAY[{row}] && ARRAY[{other}] AS c FROM t")
        assert sorted(found["c"].to_pylist()) == [False, True]

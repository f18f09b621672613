"""Arrays that INSERT, UPDATE and COPY put into columns of other types are cast and checked as in PostgreSQL."""

from __future__ import annotations

import io
from typing import Any

import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

TABLE = """CREATE TABLE a (n integer, x varchar(3)[], y integer[], z numeric(5,2)[], c char(3)[], d date[],
           s smallint[], t text[])"""
VALUES = (
    ("x", "ARRAY['abcdef']"), ("x", "'{abcdef}'"), ("x", "ARRAY['abcdef'::text]"), ("x", "ARRAY['abc  '::text, NULL]"),
    ("x", "ARRAY['abcdef']::varchar(3)[]"), ("x", "'{abc   }'"), ("x", "'{}'"), ("x", "NULL"), ("x", "ARRAY[12345]"),
    ("x", "ARRAY[123]"), ("c", "ARRAY['abcdef'::text]"), ("c", "ARRAY['a'::text]"), ("c", "'{abcd}'"),
    ("y", "ARRAY[1.5, 2.5]"), ("y", "ARRAY[1::bigint, NULL]"), ("y", "ARRAY[1.5::float8]"), ("y", "ARRAY[99999999999]"),
    ("y", "ARRAY['1'::text]"), ("z", "ARRAY[1.555::float8]"), ("z", "ARRAY[12345.5::float8]"), ("z", "ARRAY[1.555]"),
    ("d", "ARRAY['2024-01-01 10:00'::timestamp]"), ("d", "ARRAY['2024-01-01'::text]"), ("t", "ARRAY[1, 2]"),
    ("t", "ARRAY[true]"), ("t", "ARRAY['2024-01-01'::date]"), ("s", "ARRAY[70000]"), ("s", "ARRAY[7::bigint]"),
)


def outcome(run: Any, sql: str) -> str:
    """`taken`, or the SQLSTATE."""
    try:
        run(sql)
    except Exception as problem:
        return str(problem.sqlstate)  # type: ignore[attr-defined]
    return "taken"


def test_arrays_are_assigned_as_in_postgresql(postgres: Any) -> None:
    engine = hj.Engine()
    for run in (engine.execute, postgres.execute):
        run(TABLE)
    for number, (column, value) in enumerate(VALUES):
        # Written as a constant, and computed from a row.
        for text in (f"VALUES ({number}, {value})", f"SELECT {number}, {value} FROM (VALUES (1)) AS one (n)"):
            sql = f"INSERT INTO a (n, {column}) {text}"
            assert outcome(engine.execute, sql) == outcome(postgres.execute, sql), sql
    query = "SELECT n::text, x::text, y::text, z::text, c::text, d::text, s::text, t::text FROM a ORDER BY n"
    ours = [tuple(row.values()) for row in engine.query(query).to_pylist()]
    assert sorted(ours, key=repr) == sorted(postgres.execute(query).fetchall(), key=repr)
    for run in (engine.execute, postgres.execute):
        run("UPDATE a SET s = y WHERE y IS NOT NULL")
        assert outcome(run, "UPDATE a SET x = array_append(t, 'abcdef') WHERE t IS NOT NULL") == "22001"


@pytest.mark.parametrize("line", [b"{abcdef}\n", b"{ab,abcd}\n"])
@pytest.mark.parametrize("options", ["", " (FORMAT csv, DELIMITER ';')"])
def test_copy_cuts_no_element(line: bytes, options: str) -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE a (x varchar(3)[])")
    with pytest.raises(hj.InvalidRow, match=r"row 0: value too long for type varchar\(3\)"):
        engine.copy_from(f"COPY a FROM STDIN{options}", io.BytesIO(line))
    engine.copy_from("COPY a FROM STDIN", io.BytesIO(b"{abc,NULL}\n"))
    assert engine.query("SELECT x FROM a").to_pylist() == [{"x": ["abc", None]}]

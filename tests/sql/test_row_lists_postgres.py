"""`(a, b) IN (...)` of many rows has PostgreSQL's answers and errors, and compares no row with each of the list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.sql.bind import row_lists

pytest_plugins = ("tests.support.postgres",)

SETUP = """
    CREATE TABLE t (a integer, b text, c numeric(6,2), d date, f double precision, v varchar(3), s timestamp);
    INSERT INTO t SELECT g % 7, 'n' || g % 5, g % 9 / 2.0, date '2020-01-01' + g % 6, g % 4, 'x' || g % 3,
        timestamp '2020-01-01' + g % 5 * interval '1 hour' FROM generate_series(1, 100) g;
    INSERT INTO t (a) VALUES (1)
"""
LISTS: list[tuple[str, Callable[[int], str]]] = [
    ("(a, b)", lambda i: f"({i % 9}, 'n{i % 8}')"), ("(a, b)", lambda i: f"('{i % 9}', 'n{i % 8}')"),
    ("(a, b)", lambda i: f"(-{i % 9}, 'n{i % 8}')"), ("(a, b)", lambda i: f"({i % 9}.5, 'n{i % 8}')"),
    ("(a, b)", lambda i: f"({i % 9}, {'NULL' if i == 3 else repr(f'n{i % 8}')})"),
    ("ROW(a, b)", lambda i: f"ROW({i % 9}, 'n{i % 8}')"), ("(a + 1, upper(b))", lambda i: f"({i % 9}, 'N{i % 7}')"),
    ("(a, c)", lambda i: f"({i % 9}, {i % 5}.5)"), ("(a, c)", lambda i: f"({i % 9}, '{i % 5}.501')"),
    ("(c, b)", lambda i: f"({i % 9}, 'n{i % 8}')"), ("(a, d)", lambda i: f"({i % 9}, date '2020-01-0{i % 7 + 1}')"),
    ("(a, d)", lambda i: f"({i % 9}, '2020-01-0{i % 7 + 1}')"), ("(a, f)", lambda i: f"({i % 9}, '{i % 7}')"),
    ("(a, v)", lambda i: f"({i % 9}, 'x{i % 7}')"), ("(a, s)", lambda i: f"({i % 9}, '2020-01-01 0{i % 7}:00')"),
    ("(a, b)", lambda i: f"('x', 'n{i % 8}')"), ("(a, b)", lambda i: f"({i % 9}, {i % 8})"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(LISTS)))
def test_long_lists_mean_what_postgresql_means(postgres: Any, number: int) -> None:
    engine = hj.Engine()
    engine.execute(SETUP)
    postgres.execute(SETUP)
    left, row = LISTS[number]
    for many in (3, row_lists.MANY + 10):
        for form in ("{} IN ({})", "{} NOT IN ({})", "{} IN ({}) AND a > 2", "{} IN ({}) OR a = 1"):
            sql = f"SELECT a, b FROM t WHERE {form.format(left, ', '.join(map(row, range(many))))}"
            try:
                expected: Any = sorted(map(str, postgres.execute(sql).fetchall()))
            except Exception as problem:
                expected = problem.sqlstate  # type: ignore[attr-defined]
            try:
                found: Any = sorted(str(tuple(one.values())) for one in engine.query(sql).to_pylist())
            except hj.HalfjoinError as problem:
                found = problem.sqlstate
            assert found == expected, sql[:80]


def test_a_long_list_is_looked_up() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (a bigint, b text, PRIMARY KEY (a, b)); INSERT INTO t SELECT g, 'x' FROM "
                   "generate_series(1, 5000) g")  # fmt: skip
    sql = f"SELECT count(*) AS n FROM t WHERE (a, b) IN ({', '.join(f'({i}, {chr(39)}x{chr(39)})' for i in range(99))})"
    said = engine.explain(sql)
    assert " OR " not in said and "scans t" not in said
    assert engine.query(sql).to_pylist() == [{"n": 98}]

"""The type "char", LIKE of bytea, rows in functions of any values, and names with escapes are PostgreSQL's."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj
from tests.support.refused import refused_alike

pytest_plugins = ("tests.support.postgres",)

DDL = ("CREATE TABLE t (k integer, s text, b bytea, p bytea)", "CREATE TYPE pair AS (a integer, b text)",
       r"""INSERT INTO t VALUES (65, 'abc', '\\x610062', '\\x6125'), (-3, 'é', '\\xc3a9', '__'), (0, '', '', '%'),
           (NULL, NULL, NULL, NULL),
           (127, '\\303', 'a%b', 'a\\\\%b'), (1, '\\101x', '\\xff', '\\xff'), (2, 'x', 'ab\\\\', '_b_')""")
OF_ROWS = (
    's::"char"', 'k::"char"', 's::"char"::integer', 'k::"char"::integer', 's::"char"::text', 's::"char" = \'a\'',
    'CAST(s || \'z\' AS "char")', "b LIKE p", "b NOT LIKE p", "b LIKE 'a%'", "b LIKE '_%'::bytea", "b ~~ '%b'",
    r"b LIKE '\303%'", "b LIKE 'a!%b'::bytea ESCAPE '!'", "concat(ROW(k, s), s)", "concat_ws('-', ROW(s), t, k)",
    "format('%s|%L', ROW(k, s), t)", "num_nulls(t, ROW(s), s)", "num_nonnulls(ROW(NULL), k)", "concat(t)",
    "num_nulls(CASE WHEN k > 0 THEN ROW(k, s)::pair END, s)", "concat(CASE WHEN k > 0 THEN ROW(k, s)::pair END, s)",
)  # fmt: skip


BYTES = ('s::"char"', 'k::"char"', 's::"char"::integer', 'k::"char"::integer', 's::"char"::text', 's::"char" = \'a\'',
         'CAST(s || \'z\' AS "char")')


def both(postgres: Any) -> hj.Engine:
    engine = hj.Engine()
    for statement in DDL:
        engine.execute(statement)
        postgres.execute(statement)
    return engine


def test_values_are_postgresqls_in_queries_and_views(postgres: Any) -> None:
    engine = both(postgres)
    for number, expression in enumerate((*OF_ROWS, *BYTES)):
        sql = f"SELECT k, ({expression})::text AS x FROM t"
        expected = sorted(map(tuple, postgres.execute(sql).fetchall()), key=str)
        answers = [engine.query(sql)]
        if expression not in BYTES:  # only catalogs have the type "char"
            engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
            answers.append(engine.read(f"v{number}"))
        for found in answers:
            rows = zip(*(column.to_pylist() for column in found.columns), strict=True)
            assert sorted(rows, key=str) == expected, expression


@pytest.mark.parametrize("sql", [
    "SELECT b ILIKE 'a%' FROM t", "SELECT b LIKE s FROM t", "SELECT b LIKE 'a!%' ESCAPE '!' FROM t",
    r"SELECT b LIKE '\xg' FROM t", "SELECT 200::\"char\"",
    'SELECT 5::bigint::"char"', 'SELECT true::"char"', "SELECT 'a'::\"char\"::bigint",
    r"SELECT 'ab'::bytea LIKE 'a\\'::bytea",
    r'SELECT 1 AS U&"\zz"', r"""SELECT U&"d!0061" UESCAPE 'x'""", r"""SELECT 1 AS U&"a" UESCAPE '+'""",
])  # fmt: skip
def test_what_postgresql_refuses_is_refused_with_its_sqlstate(sql: str, postgres: Any) -> None:
    refused_alike(sql, postgres, both(postgres).query)


def test_names_may_have_escapes(postgres: Any) -> None:
    engine = both(postgres)
    for run in (engine.execute, postgres.execute):
        run(r'CREATE TABLE U&"t\0061b" (U&"c\00e9" integer, n integer)')
        run(r"""INSERT INTO tab (u&"c!00e9" UESCAPE '!', n) VALUES (1, 2)""")
    for sql in ('SELECT "cé" FROM tab', r'SELECT x.U&"c\+0000e9" FROM U&"tab" AS x WHERE U&"\006E" = 2',
                r"""SELECT U&"!006e" UESCAPE '!', U&'d\0061t\+000061' AS "a""b" FROM tab""",
                'SELECT n & "cé" AS u FROM tab',
                'SELECT u &"cé" FROM (SELECT n AS u, "cé" FROM tab) q'):  # fmt: skip
        cursor = postgres.execute(sql)
        found, expected = engine.query(sql), [tuple(row) for row in cursor.fetchall()]
        assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == expected
        names = [column.name for column in cursor.description]
        assert "?column?" in names or found.column_names == names

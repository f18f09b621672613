"""Constants after the name of a type, casts of arrays, FOR UPDATE, and options of identities, as in PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

import halfjoin as hj

pytest_plugins = ("tests.support.postgres",)

TABLES = ("CREATE TYPE mood AS ENUM ('low', 'high')", "CREATE TABLE t (a integer, b text)",
          "INSERT INTO t VALUES (1, 'x'), (2, 'y')")  # fmt: skip


def both(sql: str, engine: hj.Engine, postgres: Any) -> list[list[tuple[Any, ...]]]:
    """The rows, or no more than the classes of the errors."""
    import psycopg

    found: list[list[tuple[Any, ...]]] = []
    for ask in (lambda: postgres.execute(sql).fetchall(),
                lambda: [tuple(row.values()) for row in engine.query(sql).to_pylist()]):
        try:
            found.append(ask())
        except (psycopg.Error, hj.HalfjoinError) as error:
            found.append([(str(error.sqlstate)[:2],)])
    return found


@pytest.mark.parametrize("sql", [
    "SELECT mood 'low' < mood 'high' AS l, name 'x' AS n, (mood 'high')::text AS m", "SELECT mood 'none'",
    "SELECT nosuch 'x'", "SELECT a FROM t WHERE b LIKE '_$_' ESCAPE '$'", "SELECT a 'x' FROM t",
    "SELECT a FROM t ORDER BY a LIMIT 1 FOR UPDATE", "SELECT x.a FROM t x FOR SHARE OF x SKIP LOCKED",
    "SELECT a FROM t FOR NO KEY UPDATE NOWAIT", "SELECT DISTINCT a FROM t FOR UPDATE",
    "SELECT a FROM t GROUP BY a FOR SHARE", "SELECT a FROM t FOR UPDATE OF nosuch",
    "SELECT x.a FROM t x FOR UPDATE OF t", "SELECT count(*) FROM t FOR UPDATE",
    "SELECT a FROM t UNION SELECT 1 FOR UPDATE",
    "(SELECT a FROM t FOR UPDATE) UNION SELECT 1", "SELECT rank() OVER (ORDER BY a) FROM t FOR SHARE",
    "SELECT generate_series(1, a) FROM t FOR UPDATE", "SELECT a FROM t ORDER BY rank() OVER (ORDER BY a) FOR UPDATE",
    "SELECT a, (SELECT count(*) FROM t) AS n FROM t FOR UPDATE",
    "SELECT * FROM (SELECT a FROM t ORDER BY a LIMIT 1 FOR UPDATE) q", "VALUES (1) FOR UPDATE",
    "SELECT 1e2+1 AS a, 1e2-1e1+.5e1 AS b, 1.e2-1 AS c, 1e2--1\n AS d", "SELECT '1e2+1' AS a, $$1e2-1$$ AS b",
    "SELECT ARRAY['x', 1]::text[] AS a, ARRAY[1.5, 'NaN']::float8[]::text AS b, ARRAY[b, a]::varchar(1)[] AS c FROM t",
    "SELECT CAST(ARRAY[['1', a], [2.5, NULL]] AS integer[]) AS a, (ARRAY[[], []]::integer[])::text AS b FROM t",
    "SELECT ARRAY[a, 'x']::integer[] AS a FROM t",
    "SELECT ARRAY[d, '2024-01-01 10:00']::timestamp[] AS a FROM (VALUES (date '2024-02-01')) AS v (d)",
    "SELECT b LIKE ANY ('{x%,y}') AS a, b NOT LIKE ANY ('{x%,NULL}'::text[]) AS c, b ILIKE ALL ('{X,_}') AS d FROM t",
    "SELECT b LIKE ANY ('{}') AS a, b NOT LIKE ALL (ARRAY[]::text[]) AS c, b ILIKE ANY (NULL::text[]) AS d FROM t",
    "SELECT a FROM t WHERE b NOT LIKE 'x' AND NOT b LIKE ANY ('{x%,z}')",
    "SELECT b ~ ANY (ARRAY['^x', 'z']) AS a, b !~ ALL ('{x,z}') AS c, b !~ ANY ('{x,NULL}') AS d, "
    "b ~* SOME ('{X}') AS e, NOT b ~ ANY ('{x,z}') AS f, b ~~ ANY ('{x%}') AS g, b !~~ ALL ('{}') AS h FROM t",
    r"SELECT b LIKE 'x' ESCAPE E'\\' AS a, b NOT LIKE '!x' ESCAPE p AND true AS c, "
    "b ILIKE '$X' ESCAPE lower('$') = true AS d, b SIMILAR TO '!x' ESCAPE p AS e "
    "FROM t, (VALUES ('!'), (''), (NULL)) AS v (p)", "SELECT 'a' LIKE 'a' ESCAPE 'x' || 'y'",
    "SELECT nullif(1.5::real, 0)::text AS a, pg_typeof(nullif(0.1::real, 1))::text AS b",
    "SELECT nullif('abcd', 'x'::varchar(2)) AS c, pg_typeof(nullif('x'::varchar(3), 'y'))::text AS b",
    "SELECT to_char(date '2024-01-01', 'TZ OF') AS a, to_char(485, 'FMrn RN') AS b, to_char(-4, 'rn') AS c",
    r"SELECT position('\x03'::bytea IN '\x0203'::bytea) AS a, position('\x'::bytea IN '\x02') AS b",
    "SELECT gcd(1::smallint, 2::smallint)",
    "SELECT substring('abcdef' FROM '2' FOR 3) AS a, substring('abc' FROM '2') AS b",
    r"SELECT substring('\x010203'::bytea, '2') AS a, substring('abc', NULL) AS b, substring('abcdef', 'b', '#') AS c",
    "WITH RECURSIVE r (n, x) AS (SELECT 1, 0.5 UNION ALL SELECT n + 1, n FROM r WHERE n < 4) "
    "SELECT n, x::float8 FROM r ORDER BY n",
    'SELECT e2+1 AS a, x.e2-1 AS b, "1e2+3" AS c FROM (VALUES (1, 2)) AS x (e2, "1e2+3")',
])  # fmt: skip
def test_queries_are_postgresqls(sql: str, postgres: Any) -> None:
    engine = hj.Engine()
    for statement in TABLES:
        engine.execute(statement)
        postgres.execute(statement)
    theirs, ours = both(sql, engine, postgres)
    assert ours == theirs


@pytest.mark.parametrize("options", [
    "START 5 INCREMENT 2 MAXVALUE 9 CYCLE MINVALUE 1", "CACHE 10 MAXVALUE 2", "INCREMENT BY -1", "START WITH 0",
    "START 3 START 4", "INCREMENT -5 MINVALUE -12 NO CYCLE", "MINVALUE 4", "",
])  # fmt: skip
def test_identities_number_rows_as_postgresqls(options: str, postgres: Any) -> None:
    import psycopg

    create = f"CREATE TABLE n (id bigint GENERATED ALWAYS AS IDENTITY {options and f'({options})'}, b integer)"
    statements = [create, *(f"INSERT INTO n (b) VALUES ({b})" for b in range(4))]
    engine = hj.Engine()
    for number, statement in enumerate(statements):
        states = []
        for run, wrong in ((postgres.execute, psycopg.Error), (engine.execute, hj.HalfjoinError)):
            try:
                run(statement)
                states.append("")
            except wrong as error:
                states.append(str(error.sqlstate))  # type: ignore[attr-defined]
        assert states[0] == states[1], statement
        if states[0] and not number:
            return
    theirs, ours = both("SELECT id, b FROM n ORDER BY b", engine, postgres)
    assert ours == theirs
    (shown,) = engine.execute("SHOW CREATE TABLE n").to_pylist()
    engine.execute("DROP TABLE n")
    engine.execute(shown["create_statement"])
    assert engine.execute("SHOW CREATE TABLE n").to_pylist() == [shown]


def test_a_view_locks_no_rows() -> None:
    engine = hj.Engine()
    engine.execute(TABLES[1])
    with pytest.raises(hj.UnsupportedSQL, match="leave FOR UPDATE out"):
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t FOR UPDATE")

"""Columns and arrays of rows, in tables and views, hold what PostgreSQL's do, through changes."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import halfjoin as hj
from tests.sql.test_row_values_postgres import CHANGES, Rows, prepared
from tests.support.seeds import first_seed, some

pytest_plugins = ("tests.support.postgres",)

TABLES = ("CREATE TYPE mood AS ENUM ('sad', 'ok', 'gay')", "CREATE TYPE pair AS (a integer, b text)",
          "CREATE TYPE wide AS (p pair, m mood, d date, c char(3), n numeric(6,2))",
          "CREATE TABLE t (k integer, r pair, rs pair[], w wide)", "CREATE TABLE u (k integer, r pair)")  # fmt: skip
ROWS = ("NULL", "ROW(1, 'x')", "ROW(1, NULL)", "ROW(NULL, NULL)", "ROW(2, 'x')",
        "'(1,\"a, \"\"b\")'", "'(,)'", "ROW(2, '')")
WIDES = ("NULL", "ROW(ROW(1, 'x'), 'ok', '2024-01-01', 'ab', 1.25)", "ROW(NULL, 'gay', NULL, 'a', 10.75)",
         "ROW(ROW(NULL, ''), 'sad', '2024-01-02', NULL, NULL)")  # fmt: skip
QUERIES = (
    "SELECT k, r, rs, w FROM t",
    "SELECT k, (r).a, (w).p.b, (w).* FROM t",
    "SELECT t, t.r FROM t",
    "SELECT r, count(*), count(r), array_agg(ROW(k, r) ORDER BY k, r) FROM t GROUP BY r",
    "SELECT t.k, t.r, u.r, u FROM t LEFT JOIN u ON t.r = u.r",
    "SELECT t.r, u.r FROM t FULL JOIN u ON t.k = u.k",
    "SELECT DISTINCT r, (w).m FROM t",
    "SELECT r FROM t UNION SELECT r FROM u",
    "SELECT r FROM t EXCEPT ALL SELECT r FROM u",
    "SELECT t.k, x, x.a FROM t, unnest(rs) AS x",
    "SELECT t.k, x.b, x.n FROM t, unnest(rs) WITH ORDINALITY AS x (a, b, n)",
    "SELECT k, unnest(rs) FROM t",
    "SELECT k, rs[1], (rs[2]).b, array_length(rs, 1), rs || r FROM t",
    "SELECT rs, count(*) FROM t GROUP BY rs",
    "SELECT k FROM t WHERE r = ANY (rs)",
    "SELECT k FROM t WHERE r <> ALL (rs)",
    "SELECT t.k, u.k FROM t JOIN u ON t.rs[1] = u.r",
    "SELECT k, r IS NULL, r IS NOT NULL, w IS NULL FROM t",
    "SELECT count(DISTINCT r), count(DISTINCT rs), count(DISTINCT w), array_agg(DISTINCT r), "
    "array_agg(DISTINCT w) FROM t",
    "SELECT (r).a, array_agg(w ORDER BY w, k, r, rs::text) FROM t GROUP BY (r).a",
    "SELECT k, to_jsonb(t), to_json(rs) FROM t",
    "SELECT k, r, lag(r) OVER (ORDER BY k, r, w, rs::text) FROM t",
    "SELECT w, row_number() OVER (ORDER BY w, k, r, rs::text) FROM t",
    "SELECT k, coalesce(r, ROW(0, 'none')::pair), CASE WHEN k > 1 THEN rs END, nullif(r, ROW(1, 'x')::pair) FROM t",
    "SELECT k, array_append(rs, r), array_remove(rs, r), array_position(rs, r), array_replace(rs, r, NULL) FROM t",
    "SELECT k, rs @> ARRAY[r], rs && ARRAY[r, ROW(1, NULL)::pair], rs <@ ARRAY[r] FROM t",
    "SELECT k, rs = ARRAY[r], rs IS DISTINCT FROM ARRAY[r] FROM t",
    "SELECT k, ARRAY(SELECT u.r FROM u WHERE u.k = t.k ORDER BY u.r) FROM t",
    "SELECT k, (SELECT u.r FROM u ORDER BY u.r, u.k LIMIT 1) FROM t",
    "SELECT k FROM t WHERE r IN (SELECT u.r FROM u)",
    "SELECT k FROM t WHERE NOT EXISTS (SELECT FROM u WHERE u.r = t.r)",
    "SELECT r, w FROM t ORDER BY r DESC, w, k LIMIT 3",
    "SELECT k, ROW(r, rs), ARRAY[ROW(k, r), ROW(0, NULL::pair)] FROM t",
    "SELECT ((w).p).a, sum(k), max((w).m) FROM t GROUP BY 1",
    "SELECT k, b::pair FROM (SELECT k, r::text AS b FROM t) q",
    "SELECT k, rs::text::pair[], w::text::wide FROM t",
)  # fmt: skip


OVER = (
    "SELECT r, count(*) AS n, array_agg(rs[1] ORDER BY k, rs[1]) AS a FROM v GROUP BY r",
    "SELECT v.k, x AS r, x.b FROM v, unnest(v.rs) AS x",
    "SELECT a.k, b.r, b.rs FROM v a LEFT JOIN v b ON a.r = b.rs[1]",
    "SELECT DISTINCT rs, (rs[1]).a FROM v", "SELECT k, r FROM v WHERE r = ANY (rs)",
    "SELECT k, rs, lag(r) OVER (ORDER BY r, k) AS l FROM v", "SELECT k, r FROM v ORDER BY r DESC, k LIMIT 2",
    "SELECT k, rs[2] AS r FROM v EXCEPT ALL SELECT k, r FROM v",
    "SELECT count(DISTINCT r) AS n, array_agg(DISTINCT r) FROM v",
)  # fmt: skip


def both(postgres: Any) -> hj.Engine:
    engine = hj.Engine()
    for statement in TABLES:
        engine.execute(statement)
        postgres.execute(statement)
    return engine


def shown(sql: str, width: int) -> str:
    columns = [f"c{n}" for n in range(width)]
    return f"SELECT {', '.join(f'{name}::text' for name in columns)} FROM ({sql}) AS q ({', '.join(columns)})"


def expected(sql: str, postgres: Any) -> Counter[tuple[str | None, ...]]:
    width = len(postgres.execute(f"SELECT * FROM ({sql}) AS q LIMIT 0").description)
    return Counter(postgres.execute(shown(sql, width)).fetchall())


def check(engine: hj.Engine, sql: str, name: str, postgres: Any) -> None:
    """The view and the query itself give PostgreSQL's texts."""
    theirs = expected(sql, postgres)
    width = engine.read(name).num_columns
    for text in (shown(f"SELECT * FROM {name}", width), shown(sql, width)):
        found = engine.query(text)
        assert Counter(zip(*(column.to_pylist() for column in found.columns), strict=True)) == theirs, text


def a_row(choose: random.Random) -> str:
    rows = choose.choice(("NULL", "'{}'", f"ARRAY[{choose.choice(ROWS)}, {choose.choice(ROWS)}]::pair[]"))
    return f"({choose.randrange(4)}, {choose.choice(ROWS)}, {rows}, {choose.choice(WIDES)})"


def a_change(choose: random.Random) -> str:
    return choose.choice((
        f"INSERT INTO t VALUES {a_row(choose)}, {a_row(choose)}",
        f"INSERT INTO u VALUES ({choose.randrange(4)}, {choose.choice(ROWS)})",
        f"DELETE FROM t WHERE r = {choose.choice(ROWS)}::pair", f"DELETE FROM u WHERE k = {choose.randrange(4)}",
        f"UPDATE t SET r.a = {choose.randrange(3)}, w.p.b = 'new' WHERE k = {choose.randrange(4)}",
        f"UPDATE t SET r = {choose.choice(ROWS)}, rs = rs || r WHERE k = {choose.randrange(4)}",
        "INSERT INTO u SELECT k, r FROM t WHERE (r).a = 1"))


def test_columns_of_rows_follow_changes_as_in_postgresql(postgres: Any) -> None:
    seed = first_seed()
    choose, engine = random.Random(seed), both(postgres)
    views = {}
    for number, sql in enumerate(QUERIES):
        width = len(postgres.execute(f"SELECT * FROM ({sql}) AS q").description)
        names = ", ".join(f"c{n}" for n in range(width))
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} ({names}) AS {sql}")
        views[f"v{number}"] = sql
    for _ in range(some(12)):
        changes = [a_change(choose) for _ in range(3)]
        for change in changes:
            engine.execute(change)
            postgres.execute(change)
        for name, sql in views.items():
            try:
                check(engine, sql, name, postgres)
            except Exception as error:
                error.add_note(f"HALFJOIN_SEED={seed}: {sql} after {changes}")
                raise


def test_random_rows_are_columns_of_views_as_in_postgresql(postgres: Any) -> None:
    seed = first_seed()
    for example in range(some(45)):
        postgres.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        engine, rows = prepared(postgres), Rows(seed + example)
        inner = f"SELECT k, {rows.row('t')} AS r, ARRAY[{rows.row('t')}, {rows.row('t', 1)}] AS rs FROM t"
        outer = rows.choose.choice(OVER)
        for name, sql in (("v", inner), ("w", outer)):
            postgres.execute(f"CREATE VIEW {name} AS {sql}")
            engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
        try:
            for change in CHANGES:
                engine.execute(change)
                postgres.execute(change)
                check(engine, "SELECT * FROM v", "v", postgres)
                check(engine, "SELECT * FROM w", "w", postgres)
        except Exception as error:
            error.add_note(f"HALFJOIN_SEED={seed + example}: {outer} over {inner}")
            raise
        finally:
            engine.close()

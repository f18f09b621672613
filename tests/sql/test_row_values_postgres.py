"""Rows as values (outputs of subqueries, branches of CASE, keys, what windows look at) are PostgreSQL's: in queries, in
views that change, and for random queries over them."""

from __future__ import annotations

import random
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.sql.bind.meaning import differs
from tests.support.front import bound
from tests.support.seeds import first_seed, some

pytest_plugins = ("tests.support.postgres",)

TABLES = ("CREATE TYPE pair AS (a integer, b text)", "CREATE TYPE nest AS (p pair, n numeric(4,1))",
          "CREATE TABLE t (k integer, a integer, b text)", "CREATE TABLE u (k integer, a integer, b text)")  # fmt: skip
CHANGES = (
    "INSERT INTO t VALUES (1, 1, 'x'), (2, 1, NULL), (3, NULL, 'y \"z'), (4, NULL, NULL), (5, 2, ''), (6, 1, 'x')",
    "INSERT INTO u VALUES (1, 1, 'x'), (2, 2, ''), (7, NULL, NULL), (7, 1, 'x')",
    "DELETE FROM t WHERE k IN (1, 5)", "UPDATE u SET a = a + 1 WHERE k < 7", "UPDATE t SET b = 'x' WHERE k = 2",
)  # fmt: skip
QUERIES = [
    "SELECT r::text AS x, (r).a, r IS NULL AS n FROM (SELECT t AS r FROM t) q",
    "WITH q AS (SELECT ROW(a, b) AS r, k FROM t) SELECT r::text AS x, (r).f1, k FROM q WHERE r IS NOT NULL",
    "SELECT x::text FROM (SELECT ROW(a, b) AS x FROM t UNION SELECT ROW(a, b) FROM u) q",
    "SELECT x::text FROM (SELECT ROW(a, b) AS x FROM t EXCEPT ALL SELECT ROW(a, b) FROM u) q",
    "SELECT (ROW(ROW(a, b), k)::nest).p.b, ((ROW(ROW(a, b), 0.25)::nest).n)::text AS n FROM t",
    "SELECT r::text AS x, count(*) FROM (SELECT ROW(ROW(a, b), k % 2)::nest AS r FROM t) q GROUP BY r",
    "SELECT t.k, l.r::text AS x, l.r IS NULL AS n FROM t LEFT JOIN (SELECT k, ROW(a, b)::pair AS r FROM u) l USING (k)",
    "SELECT k, (SELECT ROW(u.a, u.b)::pair FROM u WHERE u.k = t.k AND u.k < 7)::text AS x FROM t",
    "SELECT t.k, u.k AS l FROM t JOIN (SELECT k, ROW(a, b)::pair AS r FROM u) u ON u.r = ROW(t.a, t.b)::pair",
    "SELECT x::text, rank FROM (SELECT r AS x, rank() OVER (ORDER BY r) FROM (SELECT ROW(b, a) AS r FROM t) q) w",
    "SELECT ('(1,\"a b\")'::pair).b, NULL::pair IS NULL AS n, k FROM t",
    "SELECT to_jsonb(q)::text AS x FROM (SELECT k, ROW(a, b)::pair AS r FROM t) q",
    "WITH RECURSIVE q(r, n) AS (SELECT ROW(1, 'a')::pair, 1 UNION SELECT ROW(n, (r).b || 'b')::pair, n + 1 FROM q, t "
    "WHERE n < 5) SELECT r::text AS x, n FROM q",
    "SELECT DISTINCT ON (r) r::text AS x, k FROM (SELECT ROW(a % 2) AS r, k FROM t) q ORDER BY r, k",
    "SELECT r::text AS x FROM (SELECT ROW(a, b) AS r, k FROM t) q ORDER BY r DESC, k LIMIT 3",
    "SELECT (v.r).a, v.n FROM (VALUES (ROW(1, 'a')::pair, 1), (NULL, 2)) v (r, n)",
    "SELECT k, r IN (SELECT ROW(u.a, u.b)::pair FROM u) AS i, r NOT IN (SELECT CASE WHEN k < 7 THEN ROW(u.a, u.b)::pair"
    " END FROM u) AS o FROM (SELECT k, ROW(a, b)::pair AS r FROM t) q",
    "SELECT k FROM (SELECT k, ROW(a, b)::pair AS r FROM t) q WHERE (SELECT s.c FROM (SELECT r AS c) s WHERE (SELECT "
    "(c).a > 1)) IS NOT NULL",
    "SELECT k, (SELECT count(*) FROM u WHERE ROW(u.a, u.b)::pair < r) AS n FROM (SELECT k, ROW(a, b)::pair AS r "
    "FROM t) q",
    "SELECT b, sum(a) AS s FROM t GROUP BY GROUPING SETS ((t.b), (t))",
    "SELECT t::text AS x, a, t IS NULL AS n, grouping(t, a) AS g, count(t) AS c FROM t GROUP BY CUBE (t, a)",
    "SELECT a, ROW(a, b)::text AS x, count(*) FROM t GROUP BY ROLLUP (ROW(a, b), a)",
    "SELECT u::text AS x, to_jsonb(t)::text AS y, rank() OVER (ORDER BY t, u) FROM u LEFT JOIN t USING (k) "
    "GROUP BY GROUPING SETS (u, t, (u, t), ()) HAVING t IS NULL OR t > ROW(1, 1, 'x'::text)",
    "SELECT pg_typeof(ROW(a, b))::text AS x, pg_typeof(ROW(a, b)::pair)::text AS y FROM t",
    "SELECT jsonb_agg(r ORDER BY r)::text AS x, count(r) FROM (SELECT CASE WHEN k > 2 THEN ROW(a, b)::pair END AS r "
    "FROM t) q",
]


def prepared(postgres: Any) -> hj.Engine:
    engine = hj.Engine()
    for statement in TABLES:
        engine.execute(statement)
        postgres.execute(statement)
    return engine


def answers(rows: Any) -> list[str]:
    return sorted(str(tuple(row)) for row in rows)


def check_through_changes(sql: str, engine: hj.Engine, postgres: Any) -> None:
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    for change in CHANGES:
        engine.execute(change)
        postgres.execute(change)
        theirs = answers(postgres.execute(sql).fetchall())
        assert answers(row.values() for row in engine.query(sql).to_pylist()) == theirs, sql
        assert answers(row.values() for row in engine.read("v").to_pylist()) == theirs, sql


@pytest.mark.parametrize("sql", QUERIES)
def test_rows_are_values_as_in_postgresql(sql: str, postgres: Any) -> None:
    check_through_changes(sql, prepared(postgres), postgres)


class Rows:
    """Random expressions over t or u whose values are rows of the type pair, and queries over them."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)

    def row(self, of: str, depth: int = 2) -> str:
        leaf = [f"ROW({of}.a, {of}.b)::pair", f"ROW({of}.k % 2, 'x')::pair", "NULL::pair", "ROW(NULL, NULL)::pair",
                "'(1,x)'::pair"]  # fmt: skip
        if not depth or self.choose.random() < 0.3:
            return self.choose.choice(leaf[:2] * 3 + leaf)
        one, other = (self.row(of, depth - 1) for _ in range(2))
        return self.choose.choice((
            f"CASE WHEN {self.test(of, depth - 1)} THEN {one} ELSE {other} END", f"coalesce({one}, {other})",
            f"nullif({one}, {other})", f"greatest({one}, {other})", f"least({one}, {other})",
            f"CASE WHEN {of}.k > 2 THEN {one} END", f"ROW(({one}).a, ({other}).b)::pair"))

    def test(self, of: str, depth: int = 1) -> str:
        one, other = self.row(of, depth), self.row(of, depth)
        operator = self.choose.choice(("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
        return self.choose.choice((f"({one}) {operator} ({other})", f"({one}) IS NULL", f"({one}) IS NOT NULL",
                                   f"({one}).a = 1"))

    def query(self) -> str:
        r, s = self.row("t"), self.row("u")
        inner, other = f"(SELECT t.k, {r} AS r FROM t)", f"(SELECT u.k, {s} AS r FROM u)"
        word = self.choose.choice(("UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"))
        window = self.choose.choice(("lag(r)", "lead(r, 2)", "first_value(r)", "last_value(r)", "nth_value(r, 2)"))
        return self.choose.choice((
            f"SELECT k, r::text AS x, r IS NULL AS n, (r).b FROM {inner} q",
            f"SELECT r::text AS x, count(*), count(r) AS c FROM {inner} q GROUP BY r",
            f"SELECT r::text AS x FROM (SELECT r FROM {inner} q {word} SELECT r FROM {other} w) z",
            f"SELECT k, ({window} OVER (ORDER BY r, k))::text AS x FROM {inner} q",
            f"SELECT q.k, w.k AS l, w.r::text AS x FROM {inner} q LEFT JOIN {other} w ON q.r = w.r",
            f"SELECT q.k, w.r IS NULL AS n FROM {inner} q FULL JOIN {other} w ON q.k = w.k WHERE w.r IS NULL",
            f"SELECT k FROM {inner} q WHERE {self.choose.choice(('', 'NOT '))}EXISTS (SELECT FROM {other} w "
            "WHERE w.r = q.r)",
            f"SELECT k, (SELECT w.r FROM {other} w WHERE w.k = q.k AND w.k < 7)::text AS x FROM {inner} q",
            f"SELECT r::text AS x, k FROM {inner} q ORDER BY r {self.choose.choice(('', 'DESC'))}, k LIMIT 2",
            f"SELECT DISTINCT r::text AS x, r < ROW(1, 'x')::pair AS l FROM {inner} q"))


def test_random_queries_over_rows_are_postgresqls(postgres: Any) -> None:
    seed = first_seed()
    for example in range(some(60)):
        postgres.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        engine, sql = prepared(postgres), Rows(seed + example).query()
        try:
            check_through_changes(sql, engine, postgres)
        except Exception as error:
            error.add_note(f"HALFJOIN_SEED={seed + example}: {sql}")
            raise
        finally:
            engine.close()


@pytest.mark.parametrize(("sql", "reason", "instead"), [
    ("CREATE TABLE x (p pair PRIMARY KEY)", "PRIMARY KEY of p, which holds rows", "GENERATED ALWAYS AS"),
    ("CREATE TABLE x (p pair[] UNIQUE)", "UNIQUE of p, which holds rows", "GENERATED ALWAYS AS"),
    ("CREATE TABLE x AS SELECT ROW(1, 2) AS r", 'column "r" has pseudo-type record', "CREATE TYPE pair AS"),
    ("CREATE DOMAIN d AS pair", "a domain of the row type pair", "jsonb"),
    ("CREATE MATERIALIZED VIEW w AS SELECT ROW() AS r", "column r of a view would hold rows without columns", "leave"),
    ("SELECT max(r) FROM (SELECT ROW(1) AS r) q", "a row is not a value that max takes", "to_jsonb"),
    ("SELECT ARRAY[ROW(1)] < ARRAY[ROW(2)]", "an order of record[] is not supported", "to_jsonb"),
    ("SELECT a::pair FROM t", "cannot cast type integer to pair", "ROW(a, b)::pair"),
    ("CREATE TABLE x (a integer, CHECK (ROW(a, '') <> ROW(1, '')::pair))", "unknown type 'pair'", ""),
    ("ALTER TYPE pair RENAME TO two", "the type nest has a field of type pair", "drop it first"),
    ("DROP TYPE pair", "nest", "CASCADE"),
])  # fmt: skip
def test_what_rows_cannot_do_is_refused_with_a_reason(sql: str, reason: str, instead: str) -> None:
    engine = hj.Engine()
    for statement in TABLES:
        engine.execute(statement)
    with pytest.raises(hj.HalfjoinError) as caught:
        engine.execute(sql)
    assert reason in str(caught.value)
    assert instead in str(caught.value)


def test_types_of_rows_are_there_after_a_restart(tmp_path: Any) -> None:
    sql = "SELECT (ROW(a, b)::pair).b AS x FROM t"
    with hj.Engine(tmp_path) as engine:
        for statement in TABLES:
            engine.execute(statement)
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    with hj.Engine(tmp_path) as engine:
        engine.execute(CHANGES[0])
        assert engine.read("v").num_rows == 6
        with pytest.raises(hj.Conflict):
            engine.execute("DROP TYPE pair")
        engine.execute("DROP TYPE pair CASCADE")
        assert "v" not in engine.query("SELECT table_name FROM information_schema.tables").column(0).to_pylist()


def test_views_whose_grouping_sets_have_rows_as_keys_are_filled_anew() -> None:
    assert differs(bound("SELECT count(*) AS n FROM u GROUP BY ROLLUP (u)"), 6)
    assert not differs(bound("SELECT count(*) AS n FROM u GROUP BY u"), 6)
    assert not differs(bound("SELECT count(*) AS n FROM u GROUP BY ROLLUP (a)"), 6)

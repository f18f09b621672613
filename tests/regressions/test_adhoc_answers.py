"""Ad-hoc queries give PostgreSQL's answers, not DuckDB's, or are refused. They reach no other feature of DuckDB."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal as D
from typing import Any

import pytest

import halfjoin as hj

SETUP = """
    CREATE TABLE t (k integer, b bigint, f double precision, s text, ok boolean);
    CREATE TABLE u (k integer, c text, y numeric(4,1));
    INSERT INTO t VALUES (1, 10, 2.5, 'x', true), (2, 20, 0, 'a', NULL), (2, 30, -1, NULL, false),
        (NULL, 40, NULL, 'b', true);
    INSERT INTO u VALUES (1, 'x', 1.5), (1, 'x', 2), (3, 'z', NULL), (NULL, 'n', 4);
"""
N = None
# Each answer is what PostgreSQL 15 gives.
ANSWERS: dict[str, list[tuple[Any, ...]]] = {
    "SELECT (1, NULL) = (1, 2), (1, NULL) = (2, 3), (1, 2) < (1, NULL), (1, 9) < (2, NULL)": [(N, False, N, True)],
    "SELECT b FROM t WHERE (k, b) >= (2, 30) ORDER BY b": [(30,)],
    "SELECT b, sum(b) FILTER (WHERE b > 10) OVER (ORDER BY b) FROM t ORDER BY b": [
        (10, N), (20, D(20)), (30, D(50)), (40, D(90))],
    "SELECT k, (SELECT string_agg(DISTINCT c, ',') FROM u WHERE u.k = t.k) FROM t ORDER BY b": [
        (1, "x"), (2, N), (2, N), (N, N)],
    "SELECT * FROM (SELECT k, b FROM t WHERE b < 30) q LEFT JOIN u USING (k) ORDER BY b, y": [
        (1, 10, "x", D("1.5")), (1, 10, "x", D("2.0")), (2, 20, N, N)],
    "SELECT * FROM (SELECT b, k FROM t WHERE b < 30) q NATURAL FULL JOIN u ORDER BY 1, 2, 3, 4": [
        (1, 10, "x", D("1.5")), (1, 10, "x", D("2.0")), (2, 20, N, N), (3, N, "z", N), (N, N, "n", D("4.0"))],
    "SELECT k, q.k, u.k FROM (SELECT k FROM t WHERE b < 30) q RIGHT JOIN u USING (k) ORDER BY 1": [
        (1, 1, 1), (1, 1, 1), (3, N, 3), (N, N, N)],
    "SELECT t.b, l.n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE u.k = t.k) l ORDER BY 1": [
        (10, 2), (20, 0), (30, 0), (40, 0)],
    "SELECT t.b, l.y FROM t LEFT JOIN LATERAL (SELECT y FROM u WHERE u.k = t.k ORDER BY y DESC LIMIT 1) l ON true "
    "ORDER BY 1": [(10, D("2.0")), (20, N), (30, N), (40, N)],
    "SELECT q.n, u.c FROM (SELECT 1 + 2 AS n, b FROM t WHERE b < 20) q FULL JOIN u ON q.n = u.k "
    "CROSS JOIN (SELECT b FROM t WHERE b = 10) r ORDER BY 1, 2": [(3, "z"), (N, "n"), (N, "x"), (N, "x")],
    "SELECT k, count(*), grouping(k) FROM t GROUP BY ROLLUP (k) ORDER BY 3, 1": [
        (1, 1, 0), (2, 2, 0), (N, 1, 0), (N, 4, 1)],
    "SELECT k, ok, count(*) FROM t WHERE k = 2 GROUP BY CUBE (k, ok) ORDER BY 1, 2, 3": [
        (2, False, 1), (2, N, 1), (2, N, 2), (N, False, 1), (N, N, 1), (N, N, 2)],
    "SELECT k, count(*) FROM t GROUP BY k, ROLLUP (k) ORDER BY 1, 2": [
        (1, 1), (1, 1), (2, 2), (2, 2), (N, 1), (N, 1)],
    "SELECT count(*) FROM t WHERE false GROUP BY ROLLUP (k)": [(0,)],
    "SELECT b FROM t WHERE k NOT IN (SELECT k FROM u)": [],
    "SELECT b, k IN (SELECT k FROM u), k NOT IN (SELECT k FROM u WHERE false) FROM t ORDER BY b": [
        (10, True, True), (20, N, True), (30, N, True), (40, N, True)],
    "SELECT b, k < ALL (SELECT k FROM u WHERE k > 1), k > ANY (SELECT k FROM u) FROM t ORDER BY b": [
        (10, True, N), (20, True, True), (30, True, True), (40, N, N)],
    "SELECT ARRAY(SELECT c FROM u WHERE u.k = t.k ORDER BY y DESC) FROM t WHERE b < 30 ORDER BY b": [
        (["x", "x"],), ([],)],
    "SELECT k, (SELECT max(c) FROM u WHERE u.k = t.k) FROM t GROUP BY k HAVING count(*) >= (SELECT count(*) FROM u "
    "WHERE u.k = t.k) ORDER BY 1": [(2, N), (N, N)],
    "SELECT (SELECT max(x.b) + t.b FROM (SELECT b FROM t i WHERE i.k = t.k LIMIT 1) x) FROM t WHERE b = 10": [(20,)],
    "SELECT sum(b) OVER v FROM t WINDOW w AS (ORDER BY b), v AS (w ROWS 1 PRECEDING) ORDER BY 1": [
        (D(10),), (D(30),), (D(50),), (D(70),)],
    "SELECT string_agg(c, NULL) FROM u WHERE k = 1": [("xx",)],
    "SELECT b, lag(k) IGNORE NULLS OVER (ORDER BY b) FROM t ORDER BY b": [(10, N), (20, 1), (30, 2), (40, 2)],
    "SELECT b FROM t QUALIFY row_number() OVER (ORDER BY b DESC) = 1": [(40,)],
    "SELECT b, sum(b) OVER (ORDER BY b RANGE 10 PRECEDING) FROM t ORDER BY b": [
        (10, D(10)), (20, D(30)), (30, D(50)), (40, D(70))],
    "SELECT corr(f, b) FROM t": [(-0.970725343394151,)],
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION SELECT (n + 1) % 3 FROM r) SELECT n FROM r ORDER BY n": [(0,), (1,), (2,)],
}  # fmt: skip


@pytest.fixture(scope="module")
def engine() -> hj.Engine:
    engine = hj.Engine()
    engine.execute(SETUP)
    return engine


@pytest.mark.parametrize("sql", ANSWERS)
def test_the_answer_is_postgresqls(sql: str, engine: hj.Engine) -> None:
    found = engine.query(sql)
    assert [tuple(column[i].as_py() for column in found.columns) for i in range(found.num_rows)] == ANSWERS[sql]


@pytest.mark.parametrize(("sql", "reason"), [
    ("SELECT count(*) FROM t GROUP BY ALL", "GROUP BY ALL is not supported"),
    ("SELECT count(*) FROM t, (SELECT y FROM u WHERE u.k = t.k) q", "t is to the left of the subquery"),
    ("SELECT 1 FROM t WHERE (SELECT sum(t.b)) > 1", "an aggregate over columns of an outer query only belongs to that"),
    ("SELECT sum(DISTINCT b) OVER () FROM t", "DISTINCT is not implemented for window functions"),
])  # fmt: skip
def test_the_rest_is_refused(sql: str, reason: str, engine: hj.Engine) -> None:
    with pytest.raises(hj.UnsupportedSQL) as caught:
        engine.query(sql)
    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize("sql", [
    "SELECT * FROM query('SELECT 1')", "SELECT * FROM duckdb_settings()", "SELECT * FROM pragma_version()",
    "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM glob('/*')", "SELECT * FROM '/etc/passwd'",
    "SELECT getenv('HOME'), count(*) FROM t", "SELECT current_setting('threads'), count(*) FROM t",
    "SELECT count(*) FROM t LEFT JOIN duckdb_tables() d ON true",
    "SELECT count(*) FROM information_schema.settings", "SELECT max(hash(s)) FROM t",
    "SELECT list_sort(array_agg(b)) FROM t",
])  # fmt: skip
def test_what_postgresql_users_do_not_mean_is_out_of_reach(sql: str, engine: hj.Engine) -> None:
    with pytest.raises((hj.UnsupportedSQL, hj.UnknownName)):
        engine.query(sql)


@pytest.mark.parametrize("value", ["ln(-1.0::float8)", "ln(f)", "sqrt(f)"])
def test_errors_of_values_stay_errors_beside_outer_joins(value: str, engine: hj.Engine) -> None:
    with pytest.raises(hj.DataError):
        engine.query(f"SELECT {value} FROM t LEFT JOIN u USING (k)")


def test_the_clock_stands_still_within_a_query(engine: hj.Engine) -> None:
    found = engine.query("SELECT now() - clock_timestamp() = interval '0', now()::timestamp, max(now()::timestamp) "
                         "FROM t")
    assert found.column(0).to_pylist() == [True] and isinstance(found.column(1)[0].as_py(), datetime)
    assert found.column(1) == found.column(2)

"""What a bound relation means, evaluated row by row, is what DuckDB and PostgreSQL answer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from halfjoin.sql.relation import Relation
from tests.support.front import bound
from tests.support.plan_interpreter import evaluate

pytest_plugins = ("tests.support.postgres",)


def queries(text: str) -> list[str]:
    return [" ".join(query.split()) for query in text.split(";")]


BOTH = queries("""
SELECT a, count(*) AS n, sum(c) AS s, min(x) AS l, max(x) AS h, avg(c) AS m FROM u GROUP BY a;
SELECT count(*) AS n, count(c) AS k, sum(c) AS s, avg(x) AS m FROM u WHERE a > 100;
SELECT a % 2 AS k, count(DISTINCT c) AS n, sum(DISTINCT c) AS s FROM u GROUP BY a % 2 HAVING count(*) > 1;
SELECT a + 1 AS k, sum(c) + a AS v FROM u GROUP BY a ORDER BY count(*) DESC;
SELECT c AS a, count(*) AS n FROM u GROUP BY c;
SELECT a AS k, c AS l, count(*) AS n FROM u GROUP BY 2, k;
SELECT sum(c) FILTER (WHERE a > 1) AS s, count(*) FILTER (WHERE c IS NULL) AS n FROM u;
SELECT a, sum(c) FILTER (WHERE x > 1) AS s, bool_and(x > 1) AS f, bool_or(c = 1) AS g FROM u GROUP BY a;
SELECT bit_and(a) AS x, bit_or(a) AS y, bit_xor(a) AS z FROM u;
SELECT a, array_agg(c ORDER BY c DESC, x) AS l FROM u GROUP BY a;
SELECT c, string_agg(z, ',' ORDER BY z DESC) AS l FROM w GROUP BY c;
SELECT a, var_pop(c) AS v, stddev_samp(x) AS s, covar_pop(x, c) AS p, regr_count(x, c) AS r FROM u GROUP BY a;
SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY x) AS p, percentile_disc(0.5) WITHIN GROUP (ORDER BY c DESC)
    AS q FROM u;
SELECT a, c, grouping(a, c) AS g, sum(x) AS s FROM u GROUP BY ROLLUP (a, c);
SELECT a, c, grouping(c) AS g, count(*) AS n FROM u GROUP BY CUBE (a, c);
SELECT a, c, count(*) AS n FROM u GROUP BY GROUPING SETS ((a, c), (a), (), ());
SELECT a, c, x, count(*) AS n FROM u GROUP BY a, ROLLUP (c, x);
SELECT a, count(*) AS n FROM u WHERE a > 100 GROUP BY ROLLUP (a);
SELECT coalesce(a, 0) AS k, grouping(a) AS g FROM u GROUP BY ROLLUP (a) HAVING grouping(a) = 1 OR count(*) > 1;
SELECT 1 AS one FROM u HAVING count(*) > 3;
SELECT max(n) AS m, sum(n) AS s FROM (SELECT a, count(*) AS n FROM u GROUP BY a) q;
SELECT u.a, v.n FROM u JOIN (SELECT c, count(*) AS n FROM w GROUP BY c) v ON u.c = v.c;
SELECT w.z, sum(u.x) AS s FROM u JOIN w ON u.c = w.c GROUP BY w.z;
SELECT u.a, count(*) AS n, sum(g) AS s FROM u, generate_series(1, u.a) g GROUP BY u.a;
SELECT DISTINCT a, c FROM u;
SELECT DISTINCT a IS NULL AS n FROM u;
SELECT DISTINCT count(*) AS n FROM u GROUP BY a;
SELECT DISTINCT a, c FROM u ORDER BY c DESC, a LIMIT 3;
SELECT DISTINCT ON (a) a, c, x FROM u ORDER BY a, c DESC, x;
SELECT DISTINCT ON (a) c, x FROM u ORDER BY a DESC, c, x LIMIT 2;
SELECT a FROM u UNION SELECT c FROM w;
SELECT a FROM u UNION ALL SELECT c FROM w UNION SELECT 1;
SELECT a FROM u UNION SELECT c FROM w UNION ALL SELECT 1;
SELECT a, c FROM u INTERSECT SELECT c, c FROM w;
SELECT a FROM u INTERSECT ALL SELECT c FROM w;
SELECT a FROM u EXCEPT SELECT c FROM w;
SELECT a FROM u EXCEPT ALL SELECT c FROM w;
SELECT a FROM u UNION SELECT 1 INTERSECT SELECT c FROM w;
SELECT a FROM u EXCEPT SELECT c FROM w UNION ALL SELECT 9;
(SELECT a FROM u EXCEPT ALL SELECT 1) INTERSECT ALL (SELECT c FROM w UNION ALL SELECT c FROM u);
SELECT a FROM u EXCEPT (SELECT c FROM w EXCEPT SELECT 1);
SELECT a FROM u UNION SELECT c FROM w ORDER BY 1 DESC LIMIT 2;
(SELECT a FROM u ORDER BY a LIMIT 2) UNION ALL (SELECT c FROM w ORDER BY c DESC LIMIT 2);
SELECT count(*) AS n FROM (SELECT a FROM u EXCEPT ALL SELECT c FROM w) q;
SELECT a, c, x FROM u ORDER BY a, c, x LIMIT 3;
SELECT a, c, x FROM u ORDER BY a DESC, c DESC, x DESC LIMIT 3 OFFSET 2;
SELECT a, c, x FROM u ORDER BY a NULLS FIRST, c DESC NULLS LAST, x LIMIT 4;
SELECT a + c AS k FROM u ORDER BY k LIMIT 3;
SELECT a AS c FROM u ORDER BY c LIMIT 3;
SELECT a FROM u ORDER BY c, a, x OFFSET 3;
SELECT a FROM u LIMIT 0;
SELECT a, sum(c) AS s FROM u GROUP BY a ORDER BY sum(c) DESC, a LIMIT 2;
SELECT a, sum(c) AS s FROM u GROUP BY a ORDER BY s NULLS FIRST, 1 LIMIT 2;
SELECT k FROM (SELECT a AS k FROM u ORDER BY a LIMIT 3) q WHERE k > 1;
VALUES (3), (1), (2) ORDER BY 1 LIMIT 2;
SELECT a, c, x, row_number() OVER (ORDER BY a, c, x) AS n FROM u;
SELECT a, c, rank() OVER w AS r, dense_rank() OVER w AS d, percent_rank() OVER w AS p, cume_dist() OVER w AS e
    FROM u WINDOW w AS (PARTITION BY a ORDER BY c);
SELECT a, c, x, ntile(3) OVER (ORDER BY a, c, x) AS n FROM u;
SELECT a, c, x, lag(c) OVER w AS l, lead(c, 2, 7) OVER w AS m FROM u WINDOW w AS (PARTITION BY a ORDER BY c, x);
SELECT a, c, x, first_value(c) OVER w AS f, last_value(c) OVER w AS l, nth_value(c, 2) OVER w AS n FROM u WINDOW
    w AS (PARTITION BY a ORDER BY c, x);
SELECT a, c, sum(c) OVER (PARTITION BY a) AS s, count(*) OVER () AS n FROM u;
SELECT a, c, sum(c) OVER (ORDER BY a) AS s FROM u;
SELECT a, c, x, sum(c) OVER (ORDER BY a, c, x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM u;
SELECT a, c, x, count(*) OVER (ORDER BY a, c, x ROWS BETWEEN 2 FOLLOWING AND UNBOUNDED FOLLOWING) AS s FROM u;
SELECT a, c, count(*) OVER (ORDER BY a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM u;
SELECT a, c, count(*) OVER (ORDER BY c DESC RANGE BETWEEN 1 FOLLOWING AND 2 FOLLOWING) AS s FROM u;
SELECT a, c, sum(c) OVER (ORDER BY a GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM u;
SELECT a, c, x, sum(c) OVER (ORDER BY a, c, x ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) AS s FROM u;
SELECT a, c, sum(c) OVER (ORDER BY a GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP) AS s FROM u;
SELECT a, c, sum(c) FILTER (WHERE x > 1) OVER (PARTITION BY a) AS s FROM u;
SELECT a, sum(sum(c)) OVER (ORDER BY a) AS s, rank() OVER (ORDER BY count(*) DESC) AS r FROM u GROUP BY a;
SELECT a, count(*) OVER () AS n FROM u GROUP BY a HAVING count(*) > 1;
SELECT a, c, x FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY c, x) AS rn FROM u) q WHERE rn <= 2;
SELECT a, c, x FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY c, x) AS rn FROM u) q WHERE rn = 1 AND
    x > 1;
SELECT a, c, x, rn FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY c, x) AS rn FROM u) q WHERE rn < 3;
SELECT * FROM (SELECT a, c, x, row_number() OVER (PARTITION BY a ORDER BY c, x) AS rn FROM u) q WHERE rn = 1;
SELECT * FROM (SELECT a, c, rank() OVER w AS r, dense_rank() OVER w AS d, row_number() OVER w AS n FROM u
    WINDOW w AS (PARTITION BY a ORDER BY c)) q WHERE r < 2;
SELECT * FROM (SELECT a, c, rank() OVER w AS r, dense_rank() OVER w AS d, row_number() OVER w AS n FROM u
    WINDOW w AS (PARTITION BY a ORDER BY c, x)) q WHERE n = 1;
SELECT a, c FROM (SELECT *, rank() OVER (PARTITION BY a ORDER BY c DESC) AS r FROM u) q WHERE r <= 2;
SELECT a, c FROM (SELECT *, dense_rank() OVER (PARTITION BY a ORDER BY c DESC) AS r FROM u) q WHERE r <= 2;
SELECT q.a, w.z FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY c, x) AS rn FROM u) q JOIN w ON q.c =
    w.c WHERE 2 >= q.rn;
SELECT a, c, n FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY c, x) AS rn, count(*) OVER (PARTITION
    BY a ORDER BY c, x) AS n FROM u) q WHERE rn <= 2;
SELECT a, c FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY c, x) AS rn FROM u) q WHERE rn <= 2 OR c
    = 1;
SELECT a, sum(c) OVER (ORDER BY a) AS s FROM u ORDER BY s DESC, a LIMIT 2;
SELECT DISTINCT a, count(*) OVER (PARTITION BY a) AS n FROM u
""")

ONLY_POSTGRESQL = queries("""
SELECT a, c FROM u ORDER BY c FETCH FIRST 2 ROWS WITH TIES;
SELECT a FROM u ORDER BY a OFFSET 1 ROW FETCH NEXT 2 ROWS WITH TIES;
SELECT t.a, t.b, t.s, count(*) AS n FROM t JOIN u ON t.a = u.a GROUP BY t.a;
SELECT a, s, sum(b) AS n FROM t GROUP BY a HAVING b > 1;
SELECT a, b, grouping(a) AS g FROM t GROUP BY GROUPING SETS ((a), (a, s));
SELECT DISTINCT ON (c, a) a, c, x FROM u ORDER BY a, c, x;
SELECT a, generate_series(1, count(*)) AS g FROM u GROUP BY a;
SELECT a, c, x, sum(c) OVER (w ROWS 1 PRECEDING) AS s FROM u WINDOW w AS (ORDER BY a, c, x);
SELECT a, count(*) AS n FROM u GROUP BY DISTINCT ROLLUP (a), ROLLUP (a);
SELECT a, mode() WITHIN GROUP (ORDER BY c DESC) AS m FROM u GROUP BY a
""")

ONLY_DUCKDB = queries("""
SELECT a, c, x FROM u QUALIFY row_number() OVER (PARTITION BY a ORDER BY c, x) <= 2;
SELECT a, c, rank() OVER (PARTITION BY a ORDER BY c) AS r FROM u QUALIFY r <= 2;
SELECT a, count(*) AS n FROM u GROUP BY a HAVING count(*) > 1 QUALIFY rank() OVER (ORDER BY count(*)) = 1;
SELECT u.a, t.b FROM u JOIN t ON t.a = u.a QUALIFY count(*) OVER (PARTITION BY t.a) > 1;
SELECT a, c, x, last_value(c IGNORE NULLS) OVER (PARTITION BY a ORDER BY x, c) AS v FROM u;
SELECT a, c, x, lag(c IGNORE NULLS) OVER (ORDER BY a, x, c) AS v FROM u;
SELECT a, c, x, lag(c, 2 IGNORE NULLS) OVER (ORDER BY a, x, c) AS v FROM u
""")

DDL = """
CREATE TABLE t (a integer PRIMARY KEY, b bigint, s text);
CREATE TABLE u (a integer, c bigint, x double precision);
CREATE TABLE w (c bigint, z text);
"""
Rows = dict[str, list[tuple[Any, ...]]]


def contents(seed: int) -> Rows:
    """Rows of the tables: few values, so that there are duplicates, NULLs and ties."""
    choose = random.Random(seed)

    def number() -> int | None:
        return choose.choice([None, 1, 1, 2, 3])

    return {
        "t": [(a, number(), choose.choice([None, "x", "y"])) for a in range(1, choose.randrange(1, 6))],
        "u": [(number(), number(), choose.choice([None, 0.5, 1.5, 1.5, 2.25])) for _ in range(choose.randrange(14))],
        "w": [(number(), choose.choice([None, "x", "y", "y"])) for _ in range(choose.randrange(8))],
    }


def meaning(relation: Relation, rows: Rows) -> Counter[Any]:
    """The rows of the bound relation."""
    tables = rows | {"t": [(*row, None, None, None, None, None) for row in rows["t"]]}
    found = evaluate(relation, {name: Counter(given) for name, given in tables.items()}, 0)
    return Counter({comparable(row): count for row, count in found.items()})


def comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row with its numbers as floats of 9 decimals, since the oracles give a sum or an average other types."""
    return tuple(
        comparable(tuple(value)) if isinstance(value, list | tuple)
        else round(float(value), 9) if isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        else value for value in row)  # fmt: skip


@pytest.fixture(scope="module")
def ducks() -> Iterator[list[tuple[Rows, duckdb.DuckDBPyConnection]]]:
    """Random contents, each with a DuckDB that has them."""
    with ExitStack() as stack:
        yield [(rows, stack.enter_context(_duck(rows))) for rows in map(contents, range(12))]


def _duck(rows: Rows) -> duckdb.DuckDBPyConnection:
    duck = duckdb.connect(config={"threads": 1})
    duck.execute(DDL + "SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
    for table, given in rows.items():
        for row in given:
            duck.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    return duck


@pytest.mark.parametrize("sql", BOTH + ONLY_DUCKDB)
def test_duckdb_agrees(sql: str, ducks: list[tuple[Rows, duckdb.DuckDBPyConnection]]) -> None:
    relation = bound(sql)
    for number, (rows, duck) in enumerate(ducks):
        wanted = Counter(comparable(row) for row in duck.execute(sql).fetchall())
        assert meaning(relation, rows) == wanted, f"contents {number}"


def test_postgresql_agrees(postgres: Any) -> None:
    relations = {sql: bound(sql) for sql in BOTH + ONLY_POSTGRESQL}
    for seed in range(8):
        rows = contents(seed)
        with postgres.transaction(force_rollback=True):
            postgres.execute(f"CREATE SCHEMA meaning; SET LOCAL search_path = meaning; {DDL}")
            for table, given in rows.items():
                for row in given:
                    postgres.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)
            for sql, relation in relations.items():
                wanted = Counter(comparable(row) for row in postgres.execute(sql).fetchall())
                assert meaning(relation, rows) == wanted, f"seed {seed}: {sql}"

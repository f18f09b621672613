"""Ways of writing queries that people use: their answers, as queries and as views, after each change."""

from decimal import Decimal
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.errors import UnsupportedSQL
from tests.oracle.rows import tuples

pytest_plugins = ("tests.support.postgres",)

ROWS = {
    "t": [{"id": 1, "s": "apple"}, {"id": 2, "s": "bread"}, {"id": 3, "s": None}],
    "u": [{"k": 1, "y": 10}, {"k": 1, "y": 20}, {"k": 2, "y": None}],
}
QUERIES: dict[str, list[tuple[Any, ...]]] = {  # each with its answer over ROWS, by PostgreSQL
    "SELECT * FROM (t CROSS JOIN u) AS x (a, b, c, d) WHERE a = c": [
        (1, "apple", 1, 10), (1, "apple", 1, 20), (2, "bread", 2, None)],
    "SELECT x.s, x.y FROM (t LEFT JOIN u ON id = k AND y > 10) AS x": [("apple", 20), ("bread", None), (None, None)],
    "SELECT x.k, x.s FROM u JOIN (t JOIN u AS v ON t.id = v.k) AS x (i, s, k, y) ON u.y < x.y": [(1, "apple")],
    "SELECT t.id, z.* FROM t, LATERAL (SELECT max(u.y) AS m FROM u WHERE u.k = t.id) AS x, LATERAL (SELECT x.*) AS z": [
        (1, 20), (2, None), (3, None)],
    "SELECT id, (SELECT count(*) FROM (SELECT t.*, u.* FROM u WHERE k = id) AS q) AS n FROM t": [
        (1, 2), (2, 1), (3, 0)],
    "VALUES ((SELECT max(y) FROM u)), (3)": [(20,), (3,)],
    "SELECT * FROM (VALUES (2 IN (SELECT k FROM u), 1), (EXISTS (SELECT 1 FROM t WHERE id > 3), 2)) AS v (b, n)": [
        (True, 1), (False, 2)],
    "SELECT id, v.* FROM t, LATERAL (VALUES ((SELECT sum(y) FROM u WHERE k = id), id), (0, 0)) AS v (a, b)": [
        (1, 30, 1), (1, 0, 0), (2, None, 2), (2, 0, 0), (3, None, 3), (3, 0, 0)],
    "WITH c AS (SELECT max(id) AS x FROM t) VALUES ((SELECT x FROM c))": [(3,)],
    "WITH a AS (SELECT 1 AS x) (SELECT x FROM a)": [(1,)],
    "SELECT v.x FROM (VALUES ('0'::numeric), ('-4.25')) AS v (x), t WHERE t.id = 1": [
        (Decimal("0"),), (Decimal("-4.25"),)],
    "SELECT id::numeric(5, 0) AS x FROM t UNION SELECT '2.5'": [
        (Decimal("1"),), (Decimal("2"),), (Decimal("2.5"),), (Decimal("3"),)],
    "SELECT y FROM u WHERE y >= ANY (ARRAY[15, 40])": [(20,)],
    "SELECT id FROM t WHERE id > ALL (ARRAY(SELECT k FROM u))": [(3,)],
    "SELECT id, 2 <= ALL (ARRAY[id, NULL]) AS a, 2 < ANY (ARRAY[id, NULL]) AS b FROM t": [
        (1, False, None), (2, None, None), (3, None, True)],
    "SELECT s FROM t WHERE s LIKE ANY (ARRAY['a%', '%d'])": [("apple",), ("bread",)],
    "SELECT s FROM t WHERE s NOT ILIKE ALL (ARRAY['A%', s || '!'])": [("bread",)],
    "WITH RECURSIVE r (j) AS (WITH s AS (SELECT id FROM t WHERE id < 3) SELECT id FROM s UNION ALL "
    "SELECT j + 1 FROM r JOIN s ON j = s.id) SELECT j FROM r": [(1,), (2,), (2,), (3,), (3,)],
    "WITH RECURSIVE r (j) AS (SELECT * FROM first UNION SELECT k + j FROM r JOIN u ON k = j), "
    "first AS (SELECT id FROM t WHERE id = 1) SELECT j FROM r": [(1,), (2,), (4,)],
    "SELECT k, y, count(*) AS n FROM u GROUP BY GROUPING SETS (((k, y)), ())": [
        (1, 10, 1), (1, 20, 1), (2, None, 1), (None, None, 3)],
    "SELECT k AS a, y AS b, count(*) AS n FROM u GROUP BY GROUPING SETS ((u.k, b), (a))": [
        (1, 10, 1), (1, 20, 1), (2, None, 1), (1, None, 2), (2, None, 1)],
}


def _sorted(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: [(value is None, value if value is not None else 0) for value in row])


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_postgresqls(query: str) -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (id integer, s text); CREATE TABLE u (k integer, y integer)")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    for time, (name, rows) in enumerate(ROWS.items(), 1):
        for place, row in enumerate(rows):
            engine.apply({name: [row]}, time=10 * time + place)
            assert _sorted(tuples(engine.read("v"))) == _sorted(tuples(engine.query(query)))
    assert _sorted(tuples(engine.read("v"))) == _sorted(list(QUERIES[query]))
    for time, (name, rows) in enumerate(ROWS.items(), 100):
        engine.apply({name: [{**rows[0], "__diff": -1}]}, time=time)
        assert _sorted(tuples(engine.read("v"))) == _sorted(tuples(engine.query(query)))


def test_postgresql_agrees(postgres: Any) -> None:
    postgres.execute("CREATE TABLE t (id integer, s text)")
    postgres.execute("CREATE TABLE u (k integer, y integer)")
    for name, rows in ROWS.items():
        for row in rows:
            postgres.execute(f"INSERT INTO {name} VALUES (%s, %s)", tuple(row.values()))
    for query, answer in QUERIES.items():
        assert _sorted(postgres.execute(query).fetchall()) == _sorted(list(answer)), query


def test_a_query_has_one_with() -> None:
    with pytest.raises(UnsupportedSQL, match="a query has one WITH"):
        hj.Engine().query("WITH a AS (SELECT 1 AS x) (WITH MUTUALLY RECURSIVE b (n int) AS (SELECT 1) SELECT * FROM b)")


@pytest.mark.parametrize(
    "written", ["{a} WITH {b}", "{a}, WITH {b}", "RECURSIVE {a} WITH {b}", "{a} WITH RECURSIVE {b}"]
)
def test_with_is_written_once(written: str) -> None:
    names = written.format(a="a AS (SELECT 1 AS x)", b="b AS (SELECT 2 AS y)")
    with pytest.raises(UnsupportedSQL, match="a query has one WITH") as caught:
        hj.Engine().query(f"WITH {names} SELECT * FROM a, b")
    assert caught.value.sqlstate == "42601"


def test_two_names_of_a_grouping_sets_key_are_refused() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE u (k integer, y integer)")
    with pytest.raises(UnsupportedSQL, match="two outputs that are the same key of grouping sets"):
        engine.query("SELECT k AS a, k AS b FROM u GROUP BY a, ROLLUP (b)")

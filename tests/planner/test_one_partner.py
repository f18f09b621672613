"""Outer and semi-joins with a comparison beside their key: DuckDB's answers, and no pairs of rows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj

TABLES = {
    "a": "(id bigint, k bigint, x bigint, f double precision, s text)",
    "b": "(id bigint PRIMARY KEY, k bigint, x bigint, f double precision, s text)",
}
EXTREMES = [  # answered by the least or greatest value of each key
    *(
        f"SELECT * FROM a WHERE {no} EXISTS (SELECT 1 FROM a c WHERE c.k = a.k AND c.x {op} a.x)"
        for op in ("<", "<=", ">", ">=", "<>")
        for no in ("", "NOT")
    ),
    "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k IS NOT DISTINCT FROM a.k AND a.f < b.f AND b.x > 1)",
    "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND a.s < b.s AND a.x > 1)",
    "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.x IS NULL AND b.s <> a.s)",
    "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x > a.x)",
    "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.x > a.x)",
    "SELECT * FROM a WHERE x > ANY (SELECT x FROM b WHERE b.k = a.k)",
    "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b c WHERE c.k = a.k AND c.x > a.x) "
    "AND NOT EXISTS (SELECT 1 FROM b c WHERE c.k = a.k AND c.x < a.x)",
    "SELECT a.*, b.id AS b FROM a JOIN b ON a.k = b.id "
    "WHERE NOT EXISTS (SELECT 1 FROM a c WHERE c.k = a.k AND c.x > b.x)",
    "SELECT a.* FROM a LEFT JOIN a c ON c.k = a.k AND c.x > a.x WHERE c.k IS NULL",
    "SELECT a.*, c.s AS t, b.x AS y FROM a LEFT JOIN a c ON c.k = a.k AND c.x > a.x LEFT JOIN b ON b.id = a.id "
    "WHERE c.x IS NULL AND coalesce(c.f, 0) = 0",
]
UNIQUE = [  # a key has one row
    *(
        f"SELECT * FROM a WHERE {no} EXISTS (SELECT 1 FROM b WHERE b.id = a.k AND {test})"
        for no in ("", "NOT")
        for test in ("b.x < a.x", "b.x + a.x > 2 AND b.s IS NULL", "(b.x < a.x) IS NOT FALSE", "coalesce(b.x, a.x) = 1")
    ),
    "SELECT * FROM a WHERE x >= ALL (SELECT x FROM b WHERE b.id = a.k)",
    "SELECT * FROM a WHERE x NOT IN (SELECT x FROM b WHERE b.id = a.k)",
    "SELECT a.*, b.id AS i, b.k AS l, b.f AS g FROM a LEFT JOIN b ON b.id = a.k AND b.x < a.x",
    "SELECT a.*, b.x AS y, c.s AS t FROM a LEFT JOIN b ON b.id = a.k AND b.x < a.x AND b.s IS NULL "
    "LEFT JOIN b c ON c.id = b.x AND c.f > a.f",
    "SELECT a.*, b.s AS t FROM a LEFT JOIN b ON b.id = a.k AND b.x > a.x WHERE b.id IS NULL",
    "SELECT a.*, d.n AS n FROM a LEFT JOIN (SELECT k, count(*) AS n FROM b GROUP BY k) d ON d.k = a.k AND d.n > a.x",
]
PAIRS = [  # answered by no single row
    "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.x < a.x AND b.f > a.f)",
    "SELECT * FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.x + a.x > 3)",
    "SELECT a.*, b.id AS i FROM a LEFT JOIN b ON b.k = a.k AND b.x < a.x",
    "SELECT a.*, b.id AS i FROM a LEFT JOIN b ON b.k = a.k AND b.x < a.x WHERE b.s IS NULL",
]  # fmt: skip


def rows(random: np.random.Generator, count: int, ids: Any) -> pa.Table:
    """Random rows, with NULLs and few values."""

    def of(values: list[Any], type: pa.DataType) -> pa.Array:
        return pa.array([values[at] for at in random.integers(0, len(values), count)], type)

    return pa.table({"id": pa.array(ids, pa.int64()), "k": of([0, 1, 2, 3, None], pa.int64()),
                     "x": of([0, 1, 2, 3, None], pa.int64()), "f": of([-0.0, 0.0, 1.5, np.nan, None], pa.float64()),
                     "s": of(["", "a", "b", None], pa.string())})  # fmt: skip


def bag(table: pa.Table) -> Counter[str]:
    """The rows, each with how often it comes; DuckDB shows -0.0 of equal zeros."""

    def zero(value: Any) -> Any:
        return 0.0 if isinstance(value, float) and value == 0 else value

    return Counter(repr([zero(value) for value in row.values()]) for row in table.to_pylist())


@pytest.mark.parametrize("seed", range(3))
def test_views_and_queries_have_duckdbs_answers(seed: int) -> None:
    random, engine, duck = np.random.default_rng(seed), hj.Engine(), duckdb.connect()
    for name, columns in TABLES.items():
        engine.execute(f"CREATE TABLE {name} {columns}")
        duck.execute(f"CREATE TABLE {name} {columns}")
    queries = [*EXTREMES, *UNIQUE, *PAIRS]
    for number, sql in enumerate(queries):
        if number % 3 != seed:
            engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {sql}")
    for step in range(5):
        ids = random.permutation(12)[:5]
        engine.execute(f"DELETE FROM b WHERE id IN ({', '.join(map(str, ids))}); DELETE FROM a WHERE x = {step % 4}")
        duck.execute(f"DELETE FROM b WHERE id IN ({', '.join(map(str, ids))}); DELETE FROM a WHERE x = {step % 4}")
        for name, table in (("a", rows(random, 6, random.integers(0, 9, 6))), ("b", rows(random, 5, ids))):
            engine.apply({name: table})
            duck.register("more", table)
            duck.execute(f"INSERT INTO {name} SELECT * FROM more")
        for number, sql in enumerate(queries):
            expected = bag(duck.sql(sql).to_arrow_table())
            assert bag(engine.query(sql)) == expected, sql
            if number % 3 != seed:
                assert bag(engine.read(f"v{number}")) == expected, sql


@pytest.mark.parametrize("sql", [*EXTREMES, *UNIQUE, *PAIRS])
def test_pairs_are_made_where_no_single_row_answers(sql: str) -> None:
    engine = hj.Engine()
    engine.execute("; ".join(f"CREATE TABLE {name} {columns}" for name, columns in TABLES.items()))
    plan = engine.explain(sql)
    assert ("passing#" in plan) == (sql in PAIRS)
    assert ("min(" in plan or "max(" in plan) == (sql in EXTREMES)


def test_the_newest_rows_of_a_key_with_many_rows_keep_one_row() -> None:
    """Pairs of rows would be 500,000."""
    engine = hj.Engine()
    engine.execute("""
        CREATE TABLE price (item bigint, day bigint);
        CREATE MATERIALIZED VIEW newest AS SELECT * FROM price
        WHERE NOT EXISTS (SELECT 1 FROM price q WHERE q.item = price.item AND q.day > price.day);
        INSERT INTO price SELECT 7, day FROM generate_series(1, 1000) AS d (day)
    """)
    engine.compact()
    nodes = [node for node in engine.stats().arrangements if "#" in node.collection]
    assert nodes and all(node.rows == 1 for node in nodes)
    assert engine.read("newest").to_pylist() == [{"item": 7, "day": 1000}]


def test_what_may_fail_is_computed_for_pairs_alone() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE a (k bigint, x bigint); CREATE TABLE b (k bigint PRIMARY KEY, x bigint)")
    engine.execute("INSERT INTO a VALUES (1, 0), (2, 5); INSERT INTO b VALUES (2, 1)")
    sql = "SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.x < 10 / a.x)"
    assert "passing#" not in engine.explain(sql)
    assert engine.query(sql).to_pylist() == [{"k": 1}]
    outer = "SELECT a.k, b.x FROM a LEFT JOIN b ON b.k = a.k AND b.x > 10 / a.x"
    assert "passing#" not in engine.explain(outer)
    assert engine.query(f"{outer} ORDER BY 1").to_pylist() == [{"k": 1, "x": None}, {"k": 2, "x": None}]
    engine.execute("INSERT INTO b VALUES (1, 1)")
    with pytest.raises(hj.DataError, match="division by zero"):
        engine.query(outer)
    with pytest.raises(hj.DataError, match="division by zero"):
        engine.query(sql)

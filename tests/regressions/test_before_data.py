"""Views over constants, and over nothing, hold before the first batch as they do after it."""

from pathlib import Path

import pytest

import halfjoin as hj
from tests.oracle.rows import bag

QUERIES = (
    "SELECT 1 AS x UNION SELECT 2",
    "SELECT count(*) AS x FROM t",
    "SELECT sum(v.x) AS x FROM (VALUES (1), (2)) AS v (x)",
    "SELECT v.x, row_number() OVER (ORDER BY v.x) AS n FROM (VALUES (1), (2)) AS v (x)",
    "SELECT v.x FROM (VALUES (2), (1)) AS v (x) ORDER BY x LIMIT 1",
    "SELECT v.x, t.a FROM (VALUES (1), (1)) AS v (x) LEFT JOIN t ON t.a = v.x",
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT max(n) AS m FROM r",
)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("durable", [False, True])
def test_constants_hold_before_the_first_batch(query: str, durable: bool, tmp_path: Path) -> None:
    place = tmp_path / "w" if durable else None
    engine = hj.Engine(place, clock="own")
    engine.execute("CREATE TABLE t (a integer)")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    engine.execute("CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM v")
    if durable:
        engine.close()
        engine = hj.Engine(place)
    before = [bag(found) for found in (engine.read("v"), engine.query("SELECT * FROM v"), engine.query(query))]
    above = bag(engine.read("above"))
    engine.apply({"t": []}, time=5)
    after = bag(engine.read("v"))
    assert before == [after] * 3
    assert above == bag(engine.read("above")) == bag(engine.query(f"SELECT count(*) FROM ({query}) AS q"))
    engine.close()


def test_open_rows_are_not_read_with_constants() -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (a integer)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a FROM t UNION SELECT 7")
    engine.apply({"t": [{"a": 1}]}, time=0, close=False)
    assert engine.read("v").to_pylist() == [{"a": 7}]
    engine.apply({}, time=1)
    assert sorted(row["a"] for row in engine.read("v").to_pylist()) == [1, 7]

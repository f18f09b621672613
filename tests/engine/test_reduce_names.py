"""What a reduce keeps has names for people: in errors, in EXPLAIN, and none that a Delta table cannot have."""

from __future__ import annotations

import re

import pytest

import halfjoin as hj


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (k integer, v bigint, \"a b.c\" integer)")
    return engine


@pytest.mark.parametrize(("sql", "told"), [
    ("SELECT k, 6 / max(v) AS q FROM t GROUP BY k", "6 / max(v), for a row with max(v) = 0, k = 1"),
    ("SELECT k, 6 / sum(v) AS q FROM t GROUP BY k", "6 / sum(v), for a row with count(v) = 1, k = 1"),
    ("SELECT 6 / (count(*) - 1) AS q FROM t", "6 / (count(*) - 1), for a row with count(*) = 1"),
    ("SELECT 6 / sum(m) AS q FROM (SELECT max(v) AS m FROM t GROUP BY k) AS g",
     "6 / sum(max(v)), for a row with count(max(v)) = 1"),
])  # fmt: skip
def test_an_error_names_the_aggregate_and_the_group(engine: hj.Engine, sql: str, told: str) -> None:
    engine.execute(f"CREATE MATERIALIZED VIEW w AS {sql}")
    engine.apply({"t": [{"k": 1, "v": 0, "a b.c": 1}]}, time=1)
    with pytest.raises(hj.DataError, match=re.escape(f"division by zero in {told}")):
        engine.read("w")


def test_kept_columns_can_be_columns_of_a_delta_table(engine: hj.Engine) -> None:
    engine.execute("""CREATE MATERIALIZED VIEW w AS
        SELECT k, max("a b.c" + 1) AS a, array_agg(v ORDER BY "a b.c" DESC) AS b, array_agg(v ORDER BY "a b.c") AS c,
            corr(v, "a b.c") AS d, count("a b.c") FILTER (WHERE v = 1) AS e FROM t GROUP BY k""")
    engine.apply({"t": [{"k": 1, "v": 1, "a b.c": 1}, {"k": 1, "v": 2, "a b.c": 2}]}, time=1)
    nodes = [one.name for one in engine.stats().collections if one.kind == "node"]
    own = [name for node in nodes for name in engine._state.schema(node) if name.startswith("#")]
    assert len(set(own)) == len(own) >= 8
    assert not any(set(name) & set(" ,;{}()\n\t=.") for name in own)
    (row,) = engine.read("w").to_pylist()
    assert (row["a"], row["b"], row["c"], row["e"]) == (3, [2, 1], [1, 2], 1)

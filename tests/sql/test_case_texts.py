"""CASE over texts: where all of them are constants, rows choose numbers of texts."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from tests.oracle.answers import assert_same
from tests.oracle.rows import tuples

CASES = (
    "CASE WHEN k < 2 THEN 'lo' WHEN k < 5 THEN 'mid' WHEN k < 8 THEN NULL ELSE 'é' END",
    "CASE k WHEN 1 THEN 'x' WHEN 2 THEN 'y' END",
    "CASE WHEN true THEN 'a' WHEN k > 1 THEN 'b' ELSE 'c' END",
    "CASE WHEN s = 'a' THEN 'x'::varchar(3) WHEN s = 'c' THEN 'y' ELSE '' END",
    "CASE WHEN k > 3 THEN s WHEN k > 1 THEN 'q' ELSE 'z' END",  # not all of them
    "CASE WHEN k > 3 THEN 'x' ELSE 'y' END",
)


@pytest.mark.parametrize("expr", CASES)
def test_a_row_has_the_text_of_its_branch(expr: str) -> None:
    random, n = np.random.default_rng(2), 2000
    rows = pa.table({"k": pa.array(random.integers(0, 9, n), mask=random.random(n) < 0.1),
                     "s": random.choice(["a", "bb", "c"], n)})  # fmt: skip
    engine, duck = hj.Engine(), duckdb.connect(config={"threads": 1})
    engine.execute("CREATE TABLE t (k bigint, s text)")
    engine.apply({"t": rows})
    duck.register("t", rows)
    sql = f"SELECT {expr} AS c, count(*) AS n FROM t GROUP BY 1"
    assert_same(tuples(engine.query(sql)), duck.execute(sql).fetchall(), sql)

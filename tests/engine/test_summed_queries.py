"""Sums over a table whose rows have come and gone: as DuckDB has them; and rows that cancel are not sought."""

from __future__ import annotations

from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange import part
from tests.oracle.answers import assert_same
from tests.support.kernels import both_ways

__all__ = ["both_ways"]

SUMS = (
    "SELECT count(*) AS n, sum(a) AS s FROM t",
    "SELECT count(*) AS n, sum(100 / a) AS s FROM t",  # rows with 0 have gone, and are no errors
    "SELECT g, count(*) AS n, sum(a + 1) AS s FROM t GROUP BY g",  # some groups have gone
    "SELECT g % 3 AS g, avg(a) AS m, sum(f) AS s FROM t WHERE a > 2 GROUP BY g % 3",
    "SELECT u.h, count(*) AS n, sum(t.a * u.b) AS s FROM t JOIN u ON u.g = t.g GROUP BY u.h",
    "SELECT count(*) AS n FROM t AS x JOIN t AS y ON x.g = y.g AND x.a < y.a",
    "SELECT n, count(*) AS c FROM (SELECT g, count(*) AS n FROM t GROUP BY g) AS q GROUP BY n",
)
OTHERS = (
    "SELECT g, min(a) AS low, max(f) AS high, count(*) AS n FROM t GROUP BY g",
    "SELECT DISTINCT g FROM t WHERE a < 7",
    "SELECT g, a FROM t ORDER BY g, a LIMIT 9",
    "SELECT u.g, count(t.a) AS n FROM u LEFT JOIN t ON t.g = u.g GROUP BY u.g",
    "SELECT count(DISTINCT a) AS n, max(a) AS m FROM t WHERE g < 20",
    "SELECT g FROM u WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.g = u.g)",
)


def changed(random: np.random.Generator, length: int) -> tuple[hj.Engine, list[dict[str, pa.Table]]]:
    """An engine whose tables have changed in batches of several sizes, and their contents after each time."""
    engine, contents = hj.Engine(clock="own", retain=100), []
    engine.execute("CREATE TABLE t (g bigint, a bigint, f double precision); CREATE TABLE u (g bigint, h text, b int)")
    names = [f"h{number % 4}" for number in range(40)]
    other = pa.table({"g": np.arange(40), "h": names, "b": pa.array(np.arange(40) % 5, pa.int32())})
    there = pa.table({"g": pa.array([], pa.int64()), "a": pa.array([], pa.int64()), "f": pa.array([], pa.float64())})
    for time, share in enumerate((0.0, 0.02, 0.5, 0.01)):
        gone = (random.random(len(there)) < share) | (np.asarray(there["a"]) == 0)
        gone |= np.asarray(there["g"]) == 10 * time
        coming = length // 10 if time else length
        new = pa.table({"g": random.integers(0, 40, coming), "a": random.integers(1 if time else -3, 9, coming),
                        "f": random.integers(0, 99, coming) / 4})  # fmt: skip
        diff = np.concatenate([np.full(int(gone.sum()), -1), np.full(coming, 1)])
        batch = pa.concat_tables([there.filter(pa.array(gone)), new]).append_column("__diff", pa.array(diff))
        engine.apply({"t": batch, **({"u": other} if not time else {})}, time=time + 1)
        there = pa.concat_tables([there.filter(pa.array(~gone)), new])
        contents.append({"t": there, "u": other})
    return engine, contents


@pytest.mark.parametrize("length", [30, 300, 20_000])
def test_rows_that_have_gone_do_not_count(length: int) -> None:
    engine, contents = changed(np.random.default_rng(length), length)
    for time, tables in enumerate(contents[1:], 2):
        duck = duckdb.connect(config={"threads": 1})
        for name, table in tables.items():
            duck.register(name, table)
        for sql in (*SUMS, *OTHERS):
            if length > 1_000 and "AS x JOIN" in sql:
                continue  # millions of pairs
            found = [tuple(row.values()) for row in engine.query(sql, as_of=time).to_pylist()]
            assert_same(found, duck.sql(sql.replace("100 / a", "trunc(100 / a)")).fetchall(), f"{sql} at {time}")


def test_sums_do_not_seek_rows_that_cancel() -> None:
    engine, _ = changed(np.random.default_rng(1), 5_000)
    with patch.object(part, "together", side_effect=AssertionError):
        for sql in SUMS[:5]:
            assert len(engine.query(sql))

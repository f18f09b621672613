"""Equalities of values that may fail and are written alike, as `sum(y)` of several groups: each finds its own rows."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from tests.oracle.answers import assert_same
from tests.oracle.rows import bag, tuples

TABLES = {"t": ("k", "g", "y"), "v": ("c", "i"), "w": ("c", "j"), "z": ("a", "b")}
SCHEMA = "; ".join(f"CREATE TABLE {name} ({', '.join(f'{one} integer' for one in columns)})"
                   for name, columns in TABLES.items())  # fmt: skip
QUERY = """
    SELECT a.k, b.g, v.i, w.j
    FROM (SELECT k, {value} AS s FROM t GROUP BY k) a, (SELECT g, {value} AS s FROM t GROUP BY g) b, v, w, z
    WHERE w.c = b.s AND z.a = a.k AND z.b = b.g AND v.c = a.s"""
VALUES = ("sum(y)", "count(*)::integer", "max(y) + 1", "sum(y::double precision)::integer")


@pytest.mark.parametrize("value", VALUES)
def test_each_value_finds_its_own_rows(value: str) -> None:
    sql, random = QUERY.format(value=value), np.random.default_rng(7)
    for _ in range(12):
        engine, duck = hj.Engine(), duckdb.connect(config={"threads": 1})
        engine.execute(f"{SCHEMA}; CREATE MATERIALIZED VIEW m AS {sql}")
        duck.execute(SCHEMA)
        for _ in range(3):
            rows = {name: pa.table({one: pa.array(random.integers(0, 4, 6), pa.int32()) for one in columns})
                    for name, columns in TABLES.items()}  # fmt: skip
            engine.apply(rows)
            for name, made in rows.items():
                duck.register("made", made)
                duck.execute(f"INSERT INTO {name} SELECT * FROM made")
            assert_same(tuples(engine.query(sql)), duck.execute(sql).fetchall(), sql)
            assert bag(engine.read("m")) == bag(engine.query(sql))

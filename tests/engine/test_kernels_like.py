"""The kernel of LIKE finds the texts that Arrow and DuckDB find."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import halfjoin as hj
from halfjoin.engine.kernels import computing, native
from halfjoin.engine.scalar import patterns

PARTS = ["", "a", "ab", "aba", "é", "\n", "b" * 70, "bb"]


@pytest.mark.skipif(not native.BUILT, reason="kernels are not built")
@pytest.mark.parametrize("seed", range(3))
def test_texts_are_like_a_pattern(seed: int) -> None:
    chosen = random.Random(seed)
    texts = ["".join(chosen.choices(["a", "b", "é", "\n", "bb"], k=chosen.randrange(9))) for _ in range(300)]
    column = pa.array([None if chosen.random() < 0.1 else text for text in [*texts, "b" * 90, ""]])
    for array in (column, column.slice(7, 200), column.slice(0, 0), pa.array([None, None], pa.string())):
        for _ in range(60):
            pattern = "%".join(chosen.choice(PARTS) for _ in range(chosen.randrange(2, 6)))
            found = patterns._matcher(pattern)(array)
            assert found.equals(pc.match_like(array, pattern)), pattern


def test_queries_are_those_of_duckdb() -> None:
    texts = ["item-7 at home", "item-77", "77item-", None, "", "ITEM-77 here", "an item-7\nat", "item_7", "50%"]
    rows = pa.table({"i": range(len(texts)), "s": texts})
    duck = duckdb.connect(config={"threads": 1})
    duck.register("t", rows)
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (i bigint PRIMARY KEY, s text)")
        engine.apply({"t": rows})
        for pattern in ("%item-7%", "item%", "%7", "i%m%7", "%", "%%", "%m_7%", "item", "%0\\%", "%item-7%at%", "%7%7"):
            for operator in ("LIKE", "NOT LIKE", "ILIKE"):
                sql = f"SELECT i FROM t WHERE s {operator} '{pattern}'"
                expected = duck.execute(sql + (" ESCAPE '\\'" if "\\" in pattern else "")).fetchall()
                assert sorted(engine.query(sql).column(0).to_pylist()) == sorted(row[0] for row in expected), sql


def test_long_parts_are_left_to_arrow() -> None:
    assert computing.like(pa.array(["a"]), (b"", b"a" * 65, b"")) is None

"""A query that asks for few rows of a large table makes no index of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange.query_run import of_query
from halfjoin.engine.kernels import indexing, native
from halfjoin.engine.updates.codes import codes
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT

ROWS = 1 << 15
FEW = "SELECT d.k, sum(f.x) AS s FROM d, f WHERE f.k = d.k AND d.g = 7 GROUP BY d.k"
MANY = "SELECT d.g, sum(f.x) AS s FROM d, f WHERE f.k = d.k AND d.g <> 7 GROUP BY d.g"


@pytest.fixture
def engine() -> hj.Engine:
    engine, random = hj.Engine(), np.random.default_rng(5)
    engine.execute("CREATE TABLE d (k bigint PRIMARY KEY, g bigint, t text)")
    engine.execute("CREATE TABLE f (k bigint, x bigint, t text)")
    keys = np.arange(1000)
    engine.apply({"d": pa.table({"k": keys, "g": keys % 100, "t": [f"t{key}" for key in keys]})})
    for _ in range(2):  # two runs, the second with NULLs and deletions
        found = random.integers(0, 1200, ROWS)
        key, text = pa.array(found, mask=found > 1100), [f"t{one}" for one in found]
        rows = pa.table({"k": key, "x": np.arange(ROWS), "t": text})
        engine.apply({"f": rows})
    engine.apply({"f": hj.deletes(rows.slice(0, 100))})
    return engine


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of entries of the indexes that are made."""
    found: list[int] = []
    made: Callable[..., Any] = indexing.indexed

    def indexed(*args: Any) -> Any:
        result = made(*args)
        found.extend([] if result is None else [len(result[0])])
        return result

    monkeypatch.setattr(indexing, "indexed", indexed)
    return found


def by_hand(engine: hj.Engine, sql: str, key: str) -> list[Any]:
    """The answer of an engine that looks rows up in an index of the whole table."""
    engine.execute(f"CREATE INDEX ON f ({key})")
    rows = engine.query(sql).to_pylist()
    assert rows
    return sorted(rows, key=str)


@pytest.mark.skipif(not native.on, reason="needs the kernels")
@pytest.mark.parametrize("key", ["k", "t"])
def test_few_rows_are_indexed_alone(engine: hj.Engine, sizes: list[int], key: str) -> None:
    sql = FEW.replace("f.k = d.k", f"f.{key} = d.{key}")
    got = engine.query(sql).to_pylist()
    assert max(sizes) < ROWS // 8
    assert sorted(got, key=str) == by_hand(engine, sql, key)


@pytest.mark.skipif(not native.on, reason="needs the kernels")
@pytest.mark.parametrize("key", ["k", "t"])
def test_a_third_of_the_rows_is_indexed_alone(engine: hj.Engine, sizes: list[int], key: str) -> None:
    """To sort them costs a third of what it costs to sort all, though they are not few."""
    sql = MANY.replace("f.k = d.k", f"f.{key} = d.{key}").replace("d.g <> 7", "d.g < 40")
    got = engine.query(sql).to_pylist()
    assert ROWS // 4 < max(sizes) < ROWS // 2
    assert sorted(got, key=str) == by_hand(engine, sql, key)


@pytest.mark.skipif(not native.on, reason="needs the kernels")
def test_rows_asked_for_again_and_again_have_the_whole_index(engine: hj.Engine, sizes: list[int]) -> None:
    """A query that has spent as much on indexes of some rows as one of all rows costs makes that one."""
    run = of_query(max(engine._state.collection("f").runs, key=len))
    key, columns = ArrangementKey("f", (Column("k", BIGINT),)), lambda updates: ([updates.columns["k"]], None)
    found = [run.among(key, columns, [pa.array([one])]) is run for one in range(12)]
    assert found == [False] * 8 + [True] * 4


@pytest.mark.skipif(not native.on, reason="needs the kernels")
def test_many_rows_have_the_whole_index(engine: hj.Engine, sizes: list[int]) -> None:
    got = engine.query(MANY).to_pylist()
    assert max(sizes) >= ROWS
    assert sorted(got, key=str) == by_hand(engine, MANY, "k")


@pytest.mark.skipif(not native.on, reason="needs the kernels")
def test_a_kernel_indexes_the_rows_with_some_codes() -> None:
    keys = [pa.array([5, None, 7, 5, 9, 7] * 9), pa.array(list("abcabc") * 9)]
    whole, some = indexing.indexed(keys, 54), codes([one.slice(2, 1) for one in keys], 1)
    assert whole is not None
    wanted = {(code, row) for code, row in zip(*map(list, whole), strict=True) if code == some[0]}
    made = indexing.indexed(keys, 54, some, 54)
    assert made is not None and wanted <= set(zip(*map(list, made), strict=True)) and len(made[0]) < 54
    assert (np.diff(made[0]) >= 0).all()
    assert indexing.indexed(keys, 54, some, 8) is None


@pytest.mark.skipif(not native.on, reason="needs the kernels")
def test_parts_of_a_query_that_ask_for_the_same_share_an_index(engine: hj.Engine, sizes: list[int]) -> None:
    some = MANY.replace("d.g <> 7", "d.g < 40")
    got = engine.query(f"{some} UNION ALL {some.replace('sum(f.x)', 'max(f.x) + 1')}").to_pylist()
    assert len([size for size in sizes if size > ROWS // 4]) == 2  # one for each run of f
    other = some.replace("sum(f.x)", "max(f.x) + 1")
    assert sorted(got, key=str) == sorted(by_hand(engine, some, "k") + engine.query(other).to_pylist(), key=str)


@pytest.mark.skipif(not native.on, reason="needs the kernels")
@pytest.mark.parametrize("nulls", [False, True])
def test_rows_in_the_order_of_their_keys_are_found(nulls: bool) -> None:
    """Stretches of rows without such keys are passed over."""
    key = np.arange(5000) // 3
    keys = [pa.array(key, mask=key % 11 == 0 if nulls else None)]
    made = indexing.indexed(keys, 5000, np.array([700, 701, 1400]), 5000)
    assert made is not None
    found = dict(zip(made[1].tolist(), made[0].tolist(), strict=True))
    wanted = {row: code for row, code in enumerate(key.tolist()) if code in (700, 701, 1400)}
    assert wanted.items() <= found.items() or nulls
    assert {row for row in wanted if not (nulls and key[row] % 11 == 0)} <= found.keys()
    assert len(found) < 2500

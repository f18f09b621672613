"""A query finds the keys that are present by grouping the rows by them, where no index has these: as by an index."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange import query_run
from halfjoin.engine.arrange.query_run import QueryRun
from halfjoin.engine.join import presence, within
from halfjoin.engine.kernels import native, summing
from halfjoin.engine.updates.updates import Updates
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT
from tests.oracle.rows import bag

pytestmark = pytest.mark.skipif(not native.on, reason="the native kernels are not used")

_QUERIES = [
    "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "SELECT a.id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > 2)",
    "SELECT a.id FROM a WHERE a.k IN (SELECT k FROM b WHERE v < 3)",
    "SELECT a.id FROM a WHERE a.k NOT IN (SELECT k FROM b WHERE k IS NOT NULL)",
    "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k IS NOT DISTINCT FROM a.k AND b.t = a.t)",
    "SELECT a.id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.t = a.t AND b.v + 1 = a.k)",
    "SELECT a.id, (SELECT count(*) FROM b WHERE b.t = a.t) AS n FROM a",
    "SELECT count(*) AS n FROM a WHERE 12 / a.k > 1 AND EXISTS (SELECT 1 FROM b WHERE b.k = 12 / a.k) AND a.k <> 0",
    "SELECT k FROM a INTERSECT SELECT k FROM b",
    "SELECT t FROM a EXCEPT SELECT t FROM b WHERE v = 1",
]


def _rows(random: np.random.Generator, length: int, start: int = 0) -> dict[str, Any]:
    return {"id": np.arange(start, start + length),
            "k": pa.array(random.integers(1, 40, length), pa.int32(), mask=random.random(length) < 0.1),
            "t": pa.array([f"a text of {one}" for one in random.integers(0, 60, length)],
                          mask=random.random(length) < 0.1),
            "v": random.integers(0, 5, length)}  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_keys_are_present_as_by_an_index(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "_MANY", 1)
    monkeypatch.setattr(within, "SCANNED", 1 << 40)
    monkeypatch.setattr(query_run, "_LARGE", 1)
    random, engine = np.random.default_rng(seed), hj.Engine(clock="own")
    engine.execute("CREATE TABLE a (id bigint, k integer, t text, v bigint)")
    engine.execute(f"CREATE TABLE b (id bigint, k {('integer', 'bigint')[seed % 2]}, t text, v bigint)")
    few, used = pa.table(_rows(random, 40)), 0
    batches = [
        {"a": pa.table(_rows(random, 300)), "b": few},
        {"b": few.append_column("__diff", pa.array(random.integers(1, 3, 40)))},
        {"b": few.append_column("__diff", pa.array(np.full(40, -1)))},
        {"b": few.slice(0, 20).append_column("__diff", pa.array(-random.integers(0, 2, 20)))},
        {"a": pa.table(_rows(random, 50, 300))},
    ]
    for time, batch in enumerate(batches, 1):
        engine.apply(batch, time=time)
        for sql in _QUERIES:
            with patch.object(presence.PresenceOperator, "_grouped", lambda *_: None):
                expected = bag(engine.query(sql))
            with patch.object(summing, "grouped", wraps=summing.grouped) as asked:
                assert bag(engine.query(sql)) == expected, (sql, time)
            used += sum(bool(call.kwargs["numbered"]) for call in asked.call_args_list)
            with native.used(False):
                assert bag(engine.query(sql)) == expected, (sql, time)
    assert used > 20


def test_no_index_is_made_of_rows_that_are_asked_once() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE a (id bigint PRIMARY KEY)")
    engine.execute("CREATE TABLE b (id bigint PRIMARY KEY, a bigint)")
    numbers = np.arange(30_000)
    engine.apply({"a": pa.table({"id": numbers[:3_000]}), "b": pa.table({"id": numbers, "a": numbers % 2_000})})
    engine.apply({"b": hj.deletes(pa.table({"id": numbers[numbers % 2_000 == 7]}))})
    with patch.object(QueryRun, "index", side_effect=AssertionError):
        found = engine.query("SELECT count(*) AS n FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.a = a.id)")
    assert found.to_pylist() == [{"n": 1_999}]


def test_rows_that_are_asked_again_and_again_have_an_index() -> None:
    run = QueryRun(Updates({"a": pa.array([1, 2])}, np.zeros(2, np.int64), np.ones(2, np.int64)))
    key = ArrangementKey("t", (Column("a", BIGINT),))
    assert [run.grouped_for(key) for _ in range(5)] == [True] * 3 + [False] * 2

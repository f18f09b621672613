"""Queries that join many rows test conditions on partners once, and share out rows that find very many partners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.query_run import QueryRun
from halfjoin.engine.join import beside
from halfjoin.engine.join.condition import Condition
from halfjoin.engine.kernels import indexing, native
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.updates import Updates, constant
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT
from tests.oracle.answers import assert_same
from tests.oracle.rows import tuples

needs_kernels = pytest.mark.skipif(not native.on, reason="the native kernels are not in use")

SCHEMA = """
    CREATE TABLE s (k bigint PRIMARY KEY, c int, d int, q int);
    CREATE TABLE c (id int PRIMARY KEY, name text, x int);
    CREATE TABLE d (id int PRIMARY KEY, t text, y int)
"""
QUERIES = (
    "SELECT c.name, s.q, count(*) AS n FROM s, c WHERE s.c = c.id AND (c.x = 1 OR c.name = 'b') GROUP BY c.name, s.q",
    "SELECT d.t, c.x, s.k FROM s, c, d WHERE s.c = c.id AND s.d = d.id AND (c.name LIKE '%a' OR c.x IS NULL) "
    "AND d.t IN ('p', 'q') AND s.q > 1",
    "SELECT c.name, count(*) AS n, sum(s.q) AS q FROM c, s WHERE c.id = s.c AND c.x < 3 GROUP BY c.name",
    "SELECT a.q, count(*) AS n FROM s a, s b WHERE a.c = b.c AND a.q = b.d AND (b.q = 1 OR b.d = 1) GROUP BY a.q",
)  # fmt: skip


def filled(seed: int) -> hj.Engine:
    """An engine with rows, some of which have changed or gone."""
    random, engine = np.random.default_rng(seed), hj.Engine()
    engine.execute(SCHEMA)

    def some(values: Any, nulls: float = 0.1) -> pa.Array:
        return pa.array(values, mask=random.random(len(values)) < nulls)

    def sales(keys: Any) -> pa.Table:
        return pa.table({"k": keys, **{name: some(random.integers(0, high, len(keys)).astype(np.int32))
                                       for name, high in (("c", 30), ("d", 6), ("q", 5))}})  # fmt: skip

    def few(other: tuple[str, str], keys: Any) -> pa.Table:
        return pa.table({"id": keys.astype(np.int32), other[0]: some(random.choice([*"abpq", "ca"], len(keys))),
                         other[1]: some(random.integers(0, 4, len(keys)).astype(np.int32))})  # fmt: skip

    engine.apply({"s": sales(np.arange(3000)), "c": few(("name", "x"), np.arange(28)),
                  "d": few(("t", "y"), np.arange(6))})  # fmt: skip
    engine.apply({"s": hj.upserts(sales(random.permutation(3100)[:200])),
                  "c": hj.upserts(few(("name", "x"), random.permutation(29)[:5]))})  # fmt: skip
    engine.apply({"s": hj.deletes(pa.table({"k": random.permutation(3000)[:150]}))})
    return engine


def check(engine: hj.Engine) -> None:
    duck = duckdb.connect(config={"threads": 1})
    for table in "scd":
        duck.register("rows", engine.read(table))
        duck.execute(f"CREATE TABLE {table} AS SELECT * FROM rows")
    for sql in QUERIES:
        assert_same(tuples(engine.query(sql)), duck.execute(sql).fetchall(), sql)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kernels", [True, False])
def test_answers_are_those_of_duckdb(kernels: bool, seed: int) -> None:
    with native.used(kernels):
        check(filled(seed))


@needs_kernels
def test_conditions_of_a_query_are_tested_before_the_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row with many partners would have them tested as often."""
    engine, met = filled(0), list[int]()
    monkeypatch.setattr(Condition, "met", lambda _, partners: met.append(len(partners)))
    engine.query(QUERIES[0])
    assert not met


@needs_kernels
@pytest.mark.parametrize("most", [1, 50, 400])
def test_rows_that_find_very_many_go_share_by_share(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel joins no more at once; what it refuses takes the way through NumPy, row by row of the lookup."""
    monkeypatch.setattr(limits, "PIECE_ROWS", most)
    monkeypatch.setattr(limits, "MORSEL_ROWS", max(1, most // 2))
    check(filled(0))


@needs_kernels
def test_no_share_takes_the_way_through_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, slow = filled(0), list[int]()
    monkeypatch.setattr(limits, "PIECE_ROWS", 500)
    monkeypatch.setattr(limits, "MORSEL_ROWS", 250)
    monkeypatch.setattr(beside, "joined", lambda *_: slow.append(1) or ())
    engine.query(QUERIES[2])
    assert not slow


@needs_kernels
def test_codes_that_were_asked_together_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shares of a stream ask for some of the keys for which the whole has asked."""
    made: Callable[..., Any] = indexing.indexed
    calls, key = list[int](), ArrangementKey("s", (Column("c", BIGINT),))

    def noted(keys: list[pa.Array], length: int, *asked: Any) -> Any:
        calls.append(length)
        return made(keys, length, *asked)

    monkeypatch.setattr(indexing, "indexed", noted)
    time = constant(0, 20_000)
    run = QueryRun(Updates({"c": pa.array(np.arange(20_000) % 100)}, time, constant(1, len(time))))
    columns = key_columns(key, {})
    whole = run.among(key, columns, [pa.array(np.arange(30))])
    part = run.among(key, columns, [pa.array(np.arange(10, 20))])
    other = run.among(key, columns, [pa.array(np.arange(25, 35))])
    assert part is whole
    assert other is not whole
    assert calls == [20_000, 20_000]

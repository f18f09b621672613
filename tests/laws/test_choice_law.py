"""The law of choices: whichever order each row of a cyclic join takes, the view is what its SQL says, at every time.

A row takes the order whose first lookup finds the fewest partners. That is a matter of cost alone, so the law is tested
with any other choice, too.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halfjoin as hj
from halfjoin.engine.join.half_join import HalfJoinOperator
from halfjoin.engine.storage import stored_run
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.planner import choices as choosing
from halfjoin.planner import paths
from halfjoin.planner.plan import Version
from tests.oracle.cycles import SHAPES, TABLES, batches, join_of
from tests.oracle.duck import Oracle
from tests.oracle.rows import bag
from tests.support.kernels import both_ways  # noqa: F401
from tests.support.seeds import some

CHOSEN = "each row takes the order with the fewest partners"
TRIANGLE = "SELECT r.a AS x, r.b AS y, s.b AS z FROM e r, e s, e t WHERE r.b = s.a AND s.b = t.b AND r.a = t.a"


@pytest.fixture(autouse=True)
def no_table_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a few rows count as large."""
    monkeypatch.setattr(choosing, "SMALL", 0)


def any_order(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Have each row take any order, whatever it finds there."""
    numbers = np.random.default_rng(seed)
    monkeypatch.setattr(HalfJoinOperator, "counts", lambda _, stream, *__: numbers.integers(1, 4, len(stream)))


def tables(engine: hj.Engine, oracle: Oracle) -> None:
    for name, columns in TABLES.items():
        listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        engine.execute(f"CREATE TABLE {name} ({listed})")
        oracle.create(name, listed, columns)


@pytest.mark.parametrize("chosen", ["fewest", "any"])
@pytest.mark.parametrize("shape", SHAPES)
def test_cyclic_joins_are_those_of_duckdb(shape: str, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(some(3)):
        choices = random.Random(f"{shape} {seed}")
        if chosen == "any":
            any_order(monkeypatch, seed)
        engine, oracle, join = hj.Engine(retain=1000), Oracle(), join_of(shape, choices)
        tables(engine, oracle)
        engine.execute(f"CREATE MATERIALIZED VIEW early AS {join.sql}")
        oracle.create_view("v", join.sql, join.weighted)
        assert CHOSEN in engine.explain("early"), join.sql
        last = 0
        for number, (time, batch) in enumerate(batches(choices, 8, 6)):
            if number == 4:
                engine.execute(f"CREATE MATERIALIZED VIEW late AS {join.sql}")
            engine.apply(batch, time=time, close=False)
            if choices.random() < 0.7:
                engine.advance(to=time + 1)
            for name, rows in batch.items():
                oracle.apply(name, rows)
            last = time
        engine.advance(to=last + 5)
        for time in range(last + 5):
            expected = oracle.contents("v", join.columns, time)
            for view in ("early", "late"):
                found = engine.read(view, as_of=time, multiplicity=True)
                assert weights(found) == expected, (view, time, join.sql)


def weights(found: Any) -> dict[Any, int]:
    *columns, diffs = (found.column(name).to_pylist() for name in found.column_names)
    return dict(zip(zip(*columns, strict=True), diffs, strict=True))


@pytest.mark.parametrize("seed", range(2))
def test_any_split_of_a_stream_gives_the_same(seed: int) -> None:
    choices = random.Random(seed)
    rows = [{"a": choices.randrange(6), "b": choices.choice([0, 0, 1, 2, 3, 4, 5])} for _ in range(60)]
    found = []
    for size in (1, 7, 60):
        engine = hj.Engine()
        engine.execute(f"CREATE TABLE e (a bigint, b bigint); CREATE MATERIALIZED VIEW v AS {TRIANGLE}")
        for time, start in enumerate(range(0, 60, size)):
            engine.apply({"e": rows[start : start + size]}, time=time)
        found.append(bag(engine.read("v")))
    assert found[0] == found[1] == found[2]


def test_a_version_that_follows_the_order_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrong way: what another order looks up first, it looks up after the batch."""

    def answer() -> Any:
        engine = hj.Engine()
        engine.execute(f"CREATE TABLE e (a bigint, b bigint); CREATE MATERIALIZED VIEW v AS {TRIANGLE}")
        engine.apply({"e": [{"a": a, "b": b} for a in range(4) for b in range(4)]}, time=1)
        return bag(engine.read("v"))

    any_order(monkeypatch, 1)
    right, take = answer(), choosing.Choices._begun
    assert right == {(a, b, c): 1 for a in range(4) for b in range(4) for c in range(4)}

    def late(self: Any, *args: Any) -> Any:
        order = take(self, *args)
        first = order.stages[0]
        stage = replace(first, half_join=replace(first.half_join, version=Version.AFTER))
        return order._replace(stages=[stage, *order.stages[1:]])

    monkeypatch.setattr(choosing.Choices, "_begun", late)
    assert answer() != right


def test_the_rest_of_a_join_hangs_on_a_choice() -> None:
    """Outer joins, anti-joins, table functions, temporal filters and aggregates around a triangle."""
    choices, engine, oracle = random.Random(1), hj.Engine(retain=1000), Oracle()
    tables(engine, oracle)
    around = {
        "padded": f"SELECT v.x, v.y, v.z, f.c FROM ({TRIANGLE}) v LEFT JOIN f ON f.a = v.z AND f.b = v.x",
        "absent": f"SELECT v.x FROM ({TRIANGLE}) v WHERE NOT EXISTS (SELECT 1 FROM f WHERE f.a = v.y AND f.b = v.z)",
        "sums": f"SELECT v.x, count(*) AS n, sum(v.z) AS s FROM ({TRIANGLE}) v GROUP BY v.x",
        "most": f"SELECT max(v.z) AS m FROM ({TRIANGLE}) v",
        "once": f"SELECT DISTINCT v.x, v.z FROM ({TRIANGLE}) v JOIN g ON g.b = v.y WHERE g.c <> '2'",
    }
    for name, sql in around.items():
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
        assert CHOSEN in engine.explain(name), name
    series = f"SELECT v.x, n FROM ({TRIANGLE}) v, generate_series(v.x, v.z) AS s(n)"
    engine.execute(f"CREATE MATERIALIZED VIEW series AS {series}")
    engine.execute(f"CREATE MATERIALIZED VIEW recent AS {TRIANGLE} AND mz_now() <= r.b * 5")
    for time, batch in batches(choices, 10, 5):
        positive = {name: rows.set_column(rows.num_columns - 1, "__diff", [[1] * len(rows)])
                    for name, rows in batch.items()}  # fmt: skip
        engine.apply(positive, time=time, close=False)
        for name, rows in positive.items():
            oracle.apply(name, rows)
    engine.advance(to=time + 5)
    for moment in (time // 2, time + 4):
        for name, sql in around.items():
            assert bag(engine.read(name, as_of=moment)) == oracle.ask(sql, moment), (name, moment)
        unnested = f"SELECT v.x, unnest(range(v.x, v.z + 1)) FROM ({TRIANGLE}) v"
        assert bag(engine.read("series", as_of=moment)) == oracle.ask(unnested, moment)
        recent = f"{TRIANGLE} AND {moment} <= r.b * 5"
        assert bag(engine.read("recent", as_of=moment)) == oracle.ask(recent, moment)


def test_a_warehouse_past_its_memory_has_the_same_choices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Partners in files are counted, too."""
    choices, oracle, counted, narrowed = random.Random(3), Oracle(), list[int](), StoredRun.narrowed

    def counting(self: StoredRun, key: Any, columns: Any, keys: Any, names: Any) -> Any:
        counted.append(len(self) if names == [] else 0)
        return narrowed(self, key, columns, keys, names)

    monkeypatch.setattr(StoredRun, "narrowed", counting)
    monkeypatch.setattr(stored_run, "SEARCHED_ROWS", 1)
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        tables(engine, oracle)
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {TRIANGLE}")
        assert CHOSEN in engine.explain("v")
    for time, batch in batches(choices, 8, 6):
        with hj.Engine(tmp_path / "w", memory=1) as engine:
            engine.apply(batch, time=time, close=False)
            engine.flush()
            assert CHOSEN in engine.explain("v")
        for name, rows in batch.items():
            oracle.apply(name, rows)
    weighted = TRIANGLE.replace("AS z FROM", "AS z, r.__w * s.__w * t.__w AS __w FROM")
    oracle.create_view("v", TRIANGLE, weighted)
    with hj.Engine(tmp_path / "w", memory=1) as engine:
        engine.advance(to=time + 5)
        assert weights(engine.read("v", multiplicity=True)) == oracle.contents("v", "xyz", time + 4)
    assert sum(counted) > 100


def test_a_recursive_query_may_choose() -> None:
    """Edges close triangles until nothing is new: the rounds are columns, and each row takes its order."""
    sql = """WITH MUTUALLY RECURSIVE d (a bigint, b bigint) AS (
        SELECT a, b FROM e UNION SELECT r.a, t.b FROM d r, e s, d t WHERE r.b = s.a AND s.b = t.a AND t.b = r.a)
        SELECT a, b FROM d"""
    engine = hj.Engine()
    engine.execute(f"CREATE TABLE e (a bigint, b bigint); CREATE MATERIALIZED VIEW v AS {sql}")
    edges, choices = set[tuple[int, int]](), random.Random(5)
    for time in range(12):
        edge = choices.randrange(5), choices.randrange(5)
        engine.apply({"e": [{"a": edge[0], "b": edge[1], "__diff": -1 if edge in edges else 1}]}, time=time)
        edges ^= {edge}
        assert set(bag(engine.read("v"))) == closed(edges), time


def closed(edges: Sequence[Any] | set[Any]) -> set[Any]:
    found = set(edges)
    while True:
        more = {(a, d) for a, b in found for c, d in found if d == a and (b, c) in edges} - found
        if not more:
            return found
        found |= more


def test_queries_choose_too(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, choices = hj.Engine(), random.Random(2)
    engine.execute("CREATE TABLE e (a bigint, b bigint)")
    engine.apply({"e": [{"a": choices.randrange(9), "b": choices.randrange(9)} for _ in range(80)]}, time=1)
    found = bag(engine.query(TRIANGLE))
    monkeypatch.setattr(paths.Choices, "stages", lambda *_: None)
    assert found == bag(engine.query(TRIANGLE + " AND true")) and len(found) > 10

"""Extremes and first rows that no change can have moved: no rows are read, and the answers are the right ones."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.reduce.seen import Seen

ROWS = 400  # of a large group
SCHEMA = "CREATE TABLE t (k integer PRIMARY KEY, g integer, x integer, d date)"
VIEWS = {
    "extremes": "SELECT g, min(x) AS least, max(x) AS most, any_value(x) AS some, count(*) AS n FROM t GROUP BY g",
    "all": "SELECT min(x) AS least, max(x) FILTER (WHERE k > 3) AS most, sum(x) AS s FROM t",
    "first": "SELECT k, x FROM t ORDER BY x DESC, k LIMIT 3",
    "later": "SELECT k, x FROM t ORDER BY x, k LIMIT 3 OFFSET 2",
    "ties": "SELECT k, x FROM t ORDER BY x FETCH FIRST 2 ROWS WITH TIES",
    "each": "SELECT * FROM (SELECT g, k, x, row_number() OVER (PARTITION BY g ORDER BY x, k) AS r FROM t) AS s "
            "WHERE r < 3",
}


@pytest.mark.parametrize("seed", range(4))
def test_unmoved_answers_are_the_answers_from_scratch(seed: int) -> None:
    random = Random(seed)
    with hj.Engine(clock="own", retain=1000) as engine:
        engine.execute(SCHEMA.replace("integer PRIMARY KEY", "integer" + " PRIMARY KEY" * (seed % 3 > 0)))
        held: dict[int, dict[str, Any]] = {}
        if seed % 2:  # a group so large that its rows are not looked up
            held = {k: {"k": k, "g": 0, "x": random.randint(0, 50), "d": None} for k in range(10, 10 + ROWS)}
            engine.apply({"t": list(held.values())}, time=0)
        for name, sql in VIEWS.items():
            engine.execute(f"CREATE MATERIALIZED VIEW {name}_ AS {sql}")
        for time in range(1, 25):
            batch = list[dict[str, Any]]()
            for k in random.sample(range(10), random.randint(1, 2)):
                later = random.choice((0, 0, 0, 1))
                if k in held:
                    batch.append({**held.pop(k), "__diff": -1, "__time": 2 * time})
                if random.random() < 0.7:
                    x = random.choice((None, *range(8)))
                    held[k] = {"k": k, "g": random.choice((0, 0, 1)), "x": x, "d": None}
                    batch.append({**held[k], "__diff": 1, "__time": 2 * time + later})
            if batch:
                engine.apply({"t": batch})
            for name, sql in VIEWS.items():
                found, expected = engine.read(f"{name}_").to_pylist(), engine.query(sql).to_pylist()
                assert sorted(map(repr, found)) == sorted(map(repr, expected)), (name, time)


@pytest.mark.parametrize("name", ["extremes", "first", "ties"])
def test_rows_behind_the_first_ones_read_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with hj.Engine(clock="own") as engine:
        engine.execute(SCHEMA)
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {VIEWS[name]}")
        engine.apply({"t": [{"k": k, "g": 0, "x": k} for k in range(ROWS)]}, time=1)
        monkeypatch.setattr(Seen, "front", None)  # nobody looks at the rows
        shown = engine.read("v").to_pylist()
        engine.apply({"t": hj.upserts([{"k": 200, "x": 201}, {"k": 100, "x": 180}])}, time=2)
        engine.apply({"t": hj.deletes([{"k": 150}])}, time=3)
        n = {"n": ROWS - 1} if name == "extremes" else {}
        assert engine.read("v").to_pylist() == [{**row, **n} for row in shown]

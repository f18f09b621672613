"""Extremes and first rows that no change can have moved: no rows are read, and the answers are the right ones."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.reduce.seen import Seen

ROWS = 400  # of a large group
SCHEMA = """
    CREATE TABLE t (k integer PRIMARY KEY, g integer, x integer, d date, n numeric(9, 2));
    CREATE TABLE u (g integer PRIMARY KEY, y numeric(9, 2))
"""
VIEWS = {
    "extremes": "SELECT g, min(x) AS least, max(x) AS most, any_value(x) AS some, count(*) AS n FROM t GROUP BY g",
    "all": "SELECT min(x) AS least, max(x) FILTER (WHERE k > 3) AS most, sum(x) AS s FROM t",
    "first": "SELECT k, x FROM t ORDER BY x DESC, k LIMIT 3",
    "later": "SELECT k, x FROM t ORDER BY x, k LIMIT 3 OFFSET 2",
    "ties": "SELECT k, x FROM t ORDER BY x FETCH FIRST 2 ROWS WITH TIES",
    "each": "SELECT * FROM (SELECT g, k, x, row_number() OVER (PARTITION BY g ORDER BY x, k) AS r FROM t) AS s "
            "WHERE r < 3",
    "numerics": "SELECT min(n) AS least, max(n) AS most FROM t",
    "dearest": "SELECT k, n FROM t ORDER BY n DESC NULLS LAST, k LIMIT 3",
    "sums": "SELECT g, k % 5 AS m, sum(n) AS s FROM t GROUP BY g, k % 5 ORDER BY s DESC NULLS LAST, m, g LIMIT 3",
    "joined": "SELECT t.k, t.n - u.y AS s FROM t JOIN u ON u.g = t.g ORDER BY s, t.k LIMIT 3",
    "repeated": "SELECT k FROM t, repeat_row(CASE WHEN k = 9 AND x > 3 THEN -1 ELSE 1 END) ORDER BY k LIMIT 3",  # fails
}


def _told(read: Callable[[], pa.Table]) -> list[str] | None:
    """The rows; None: there is an error."""
    try:
        return sorted(map(repr, read().to_pylist()))
    except hj.DataError:
        return None


@pytest.mark.parametrize("seed", range(4))
def test_unmoved_answers_are_the_answers_from_scratch(seed: int) -> None:
    random = Random(seed)
    with hj.Engine(clock="own", retain=1000) as engine:
        engine.execute(SCHEMA.replace("k integer PRIMARY KEY", "k integer" + " PRIMARY KEY" * (seed % 3 > 0)))
        engine.apply({"u": [{"g": 0, "y": 1}, {"g": 1, "y": 2}]}, time=0)
        held, joined = dict[int, dict[str, Any]](), 1
        if seed % 2:  # a group so large that its rows are not looked up
            ks = range(10, 10 + ROWS)
            held = {k: {"k": k, "g": 0, "x": random.randint(0, 50), "d": None, "n": k / 4} for k in ks}
            engine.apply({"t": list(held.values())}, time=1)
        for name, sql in VIEWS.items():
            engine.execute(f"CREATE MATERIALIZED VIEW {name}_ AS {sql}")
        for time in range(2, 26):
            batch = list[dict[str, Any]]()
            for k in random.sample(range(10), random.randint(1, 2)):
                later = random.choice((0, 0, 0, 1))
                if k in held:
                    batch.append({**held.pop(k), "__diff": -1, "__time": 2 * time})
                if random.random() < 0.7:
                    x = random.choice((None, *range(8)))
                    n = random.choice((None, 0.25, 1.5, 7, 80, 200))
                    held[k] = {"k": k, "g": random.choice((0, 0, 1)), "x": x, "d": None, "n": n}
                    batch.append({**held[k], "__diff": 1, "__time": 2 * time + later})
            others, y = list[dict[str, Any]](), random.choice((None, None, 1, 3))
            if y is not None and y != joined:
                others = [{"g": 0, "y": joined, "__diff": -1, "__time": 2 * time}, {"g": 0, "y": y, "__time": 2 * time}]
                joined = y
            engine.apply({"t": batch, "u": others})
            for name, sql in VIEWS.items():
                found, expected = _told(lambda: engine.read(f"{name}_")), _told(lambda: engine.query(sql))  # noqa: B023
                assert found == expected, (name, time)


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

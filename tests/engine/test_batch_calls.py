"""What a batch of 1 or 100 rows costs, in function calls: it costs little else. The limits keep what was won.

The calls of Python and C functions do not depend on the machine's load. A limit is some 5 % above what was counted with
Python 3.11; later versions count fewer, since they run comprehensions in place. The second limit is that with native
kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.join.presence import PresenceOperator
from halfjoin.engine.kernels import native
from tests.support.counting import calls
from tests.support.kernels import both_ways  # noqa: F401

ROWS, BATCHES = 3_000, 24
SCHEMA = """
    CREATE TABLE numbers (id bigint PRIMARY KEY, g integer, p integer, x bigint);
    CREATE TABLE names (p integer PRIMARY KEY, name text)
"""
LIMITS = {
    "no view": ("", 470, 270),
    "count": ("SELECT g, count(*) AS n FROM numbers GROUP BY g", 840, 380),
    "sum": ("SELECT g, sum(x) AS s FROM numbers GROUP BY g", 1_335, 597),
    "avg": ("SELECT g, avg(x) AS a FROM numbers GROUP BY g", 1_370, 646),
    "min": ("SELECT g, min(x) AS m FROM numbers GROUP BY g", 885, 616),
    "top 10": ("SELECT id, x FROM numbers ORDER BY x DESC LIMIT 10", 820, 603),
    "median": ("SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY x) AS m FROM numbers GROUP BY g", 1_700, 1_540),
    "row_number": ("SELECT id, row_number() OVER (PARTITION BY p ORDER BY x, id) AS r FROM numbers", 2_510, 1_495),
    "inner join": ("SELECT id, name FROM numbers JOIN names ON names.p = numbers.p", 640, 436),
    "left join": ("SELECT id, name FROM numbers LEFT JOIN names ON names.p = numbers.p", 760, 595),
}
OF_100 = {
    "a filtered join": ("SELECT id, x, name FROM numbers JOIN names ON names.p = numbers.p WHERE x > 9", 1_270, 510),
    "sums of a join": ("SELECT name, count(*) AS n, sum(x) AS s FROM numbers JOIN names ON names.p = numbers.p "
                       "GROUP BY name", 2_760, 718),
}  # fmt: skip


def calls_of_batches(sql: str, changed: int = 1) -> int:
    """The median of the calls of batches that change so many rows each."""
    random, ids = np.random.default_rng(1), np.arange(ROWS)
    x = random.integers(0, 10**9, ROWS)
    engine, counts = hj.Engine(retain=0, clock="own"), list[int]()
    engine.execute(SCHEMA)
    zeros = np.zeros(ROWS, np.int32)
    rows = pa.table({"id": ids, "g": zeros, "p": (ids % 4).astype(np.int32), "x": x})
    engine.apply({"numbers": rows, "names": [{"p": p, "name": "x"} for p in range(3)]}, time=0)
    if sql:
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    for time in range(1, BATCHES):
        row, values = int(random.integers(0, ROWS - changed + 1)), random.integers(0, 10**9, changed)
        old = rows.slice(row, changed)
        new = old.set_column(3, "x", pa.array(values))
        rows = pa.concat_tables([rows.slice(0, row), new, rows.slice(row + changed)]).combine_chunks()
        diff = pa.array([-1] * changed + [1] * changed)
        batch = {"numbers": pa.concat_tables([old, new]).append_column("__diff", diff).combine_chunks()}

        def apply(batch: dict[str, pa.Table] = batch, time: int = time) -> object:
            return engine.apply(batch, time=time)

        counts.append(calls(apply))
    return sorted(counts)[len(counts) // 2]


@pytest.mark.parametrize(("sql", "without", "with_kernels"), LIMITS.values(), ids=LIMITS)
def test_a_batch_of_one_row_makes_few_calls(sql: str, without: int, with_kernels: int) -> None:
    assert calls_of_batches(sql) <= (with_kernels if native.on else without)


@pytest.mark.parametrize(("sql", "without", "with_kernels"), OF_100.values(), ids=OF_100)
def test_a_batch_of_100_rows_makes_few_calls(sql: str, without: int, with_kernels: int) -> None:
    assert calls_of_batches(sql, 50) <= (with_kernels if native.on else without)


def test_a_left_join_finds_its_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that a padded lookup finds tell whether their keys are there: nobody asks a second time."""

    def again(self: PresenceOperator, *rest: Any, **more: Any) -> None:
        raise AssertionError("looked up twice")

    monkeypatch.setattr(PresenceOperator, "presence", again)
    with hj.Engine(clock="own") as engine:
        engine.execute(SCHEMA)
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {LIMITS['left join'][0]}")
        rows = [{"id": 1, "p": 1}, {"id": 2, "p": None}, {"id": 3, "p": 3}]
        engine.apply({"numbers": rows}, time=1)
        assert sorted(row["id"] for row in engine.read("v").to_pylist() if row["name"] is None) == [1, 2, 3]

"""RANGE frames at the ends of a type's values: regions have what the whole partition has, and its errors."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.reduce import regions

BIG, INF, NAN = 2**63 - 1, float("inf"), float("nan")
JANUARY = dt.datetime(2023, 1, 26, 10)
ENDS: dict[str, tuple[str, list[Any], tuple[str, ...]]] = {  # the type of the key, its values, and offsets
    "bigint": ("bigint", [None, -BIG, 2 - BIG, 0, 1, BIG - 2, BIG], ("0", "3", str(BIG))),
    "double": ("double precision", [None, -INF, -1e308, -0.0, 0.0, 1.5, 1e308, INF, NAN],
               ("0", "2", "'1e308'", "'Infinity'")),
    "months": ("timestamp", [None, *(JANUARY + dt.timedelta(hours=n * 5) for n in range(40))],
               ("interval '1 month'", "interval '1 month 2 hours'", "interval '2 days'", "interval '0'")),
}  # fmt: skip
FRAMES = ("{} PRECEDING AND CURRENT ROW", "{} PRECEDING AND {} FOLLOWING", "{} FOLLOWING AND {} FOLLOWING",
          "{} PRECEDING AND {} PRECEDING", "CURRENT ROW AND {} FOLLOWING EXCLUDE TIES")  # fmt: skip
SORTED = ("x", "x DESC", "x NULLS FIRST", "x DESC NULLS LAST")


def _table(rows: list[tuple[Any, int]], type: pa.DataType) -> pa.Table:
    keys, diffs = ([row[side] for row in rows] for side in (0, 1))
    return pa.table({"x": pa.array(keys, type), "v": list(range(len(rows))), "__diff": diffs})


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ENDS)
def test_frames_at_the_ends_of_values_are_whole(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "_SPARE", 0)
    type, values, offsets = ENDS[kind]
    arrow = {"bigint": pa.int64(), "double": pa.float64(), "months": pa.timestamp("us")}[kind]
    rng = random.Random(seed)
    calls = [f"array_agg(x) OVER (ORDER BY {rng.choice(SORTED)} RANGE BETWEEN "
             f"{frame.format(*rng.choices(offsets, k=2))})" for frame in FRAMES]  # fmt: skip
    engines = [hj.Engine(clock="own") for _ in range(2)]
    for engine in engines:
        engine.execute(f"CREATE TABLE t (x {type}, v bigint)")
        for number, call in enumerate(calls):
            engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS SELECT x, v, {call} AS r FROM t")
    there = [(rng.choice(values), 1) for _ in range(30)]
    evaluated = 0
    settled = regions.Regions._settled

    def counted(*args: Any) -> Any:
        nonlocal evaluated
        found = settled(*args)
        evaluated += int(found[0].sum())
        return found

    monkeypatch.setattr(regions.Regions, "_settled", counted)
    for batch in range(6):
        rows = there if not batch else [(rng.choice(values), 1) for _ in range(2)]
        for engine, large in zip(engines, (1, 1 << 40), strict=True):
            monkeypatch.setattr(regions, "LARGE", large)
            engine.apply({"t": _table(rows, arrow)}, time=1 + batch)
        for number in range(len(FRAMES)):
            ours, whole = (sorted(map(repr, engine.read(f"v{number}").to_pylist())) for engine in engines)
            assert ours == whole, (batch, calls[number])
    assert evaluated


def test_a_bound_out_of_range_is_an_error_while_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "LARGE", 1)
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (x timestamp, v bigint)")
    frame = "RANGE BETWEEN CURRENT ROW AND interval '285000 years' FOLLOWING"
    engine.execute(f"CREATE MATERIALIZED VIEW w AS SELECT x, count(*) OVER (ORDER BY x {frame}) AS n FROM t")
    near, far = ([(dt.datetime(year, 1, 1), diff)] for year, diff in ((2000, 1), (9999, 1)))
    engine.apply({"t": _table(near, pa.timestamp("us"))}, time=1)
    first = engine.read("w").to_pylist()
    assert engine.apply({"t": _table(far, pa.timestamp("us"))}, time=2).errors
    with pytest.raises(hj.DataError, match="out of range"):
        engine.read("w")
    engine.apply({"t": _table([(far[0][0], -1)], pa.timestamp("us"))}, time=3)
    assert engine.read("w").to_pylist() == first

"""Columns and arrays of rows under Spark: bulk changes and fills are those of the local runner."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.spark import runner
from tests.oracle.rows import updates

pytestmark = pytest.mark.xdist_group("spark")

SCHEMA = ("k int, r struct<a: int, i: interval day to second, x: double>, rs array<struct<a: int, b: string>>, "
          "__time bigint, __diff bigint")  # fmt: skip
VIEWS = {
    "groups": "SELECT r, count(*) AS n, array_agg(ROW(k, r) ORDER BY k) AS a FROM t GROUP BY (r).a, r",
    "join": "SELECT t.k, u.r AS s, ROW(t.rs, u.k) AS n FROM t LEFT JOIN t AS u ON t.rs = u.rs",
    "elements": "SELECT k, v, v.a, rs[1] AS f FROM t, unnest(rs) AS v",
    "made": "SELECT k, to_jsonb(rs) AS j, t::text AS x, t AS row, time '10:00' AS c, ROW(time '10:00') AS d FROM t",
    "distinct": "SELECT DISTINCT rs FROM t",
}


def test_rows_give_the_local_diffs(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "FEW", 0)
    rng = random.Random(3)
    engines = [hj.Engine(runner="local", clock="own", retain=100),
               hj.Engine(tmp_path / "w", spark=spark, runner="spark", clock="own", retain=100)]  # fmt: skip
    for engine in engines:
        engine.execute("CREATE TYPE mixed AS (a integer, i interval, x double precision)")
        engine.execute("CREATE TYPE pair AS (a integer, b text)")
        engine.execute("CREATE TABLE t (k integer, r mixed, rs pair[])")
    gone: list[dict[str, Any]] = []
    for time in (1, 2, 3):
        rows = [{**row, "__time": time, "__diff": -1} for row in gone[::2]]
        gone = [{"k": rng.randrange(4), "rs": rng.choice([None, [], [(1, "x"), None], [(None, None), (2, "y")]]),
                 "r": rng.choice([None, (1, timedelta(days=1), 0.5), (None, None, float("nan")), (1, None, 0.0)]),
                 "__time": time, "__diff": 1} for _ in range(20)]  # fmt: skip
        rows += gone
        diffs = []
        for engine in engines:
            if time == 2:
                for name, sql in VIEWS.items():
                    engine.execute(f'CREATE MATERIALIZED VIEW "{name}" AS {sql}')
            applied = engine.apply({"t": spark.createDataFrame(rows, SCHEMA) if engine is engines[1] else rows})
            assert engine is engines[0] or applied.runner == "spark"
            diffs.append({name: Counter((repr(row), at, diff) for row, at, diff in updates(table))
                          for name, table in applied.diffs.items()})  # fmt: skip
        assert diffs[0] == diffs[1], time
    for name in VIEWS:
        for time in (1, 3):
            local, other = (Counter(map(repr, engine.read(name, as_of=time).to_pylist())) for engine in engines)
            assert local == other, name
    shown = engines[1].dataframe("made").collect()
    assert {row["d"]["f1"] for row in shown} == {"10:00:00.000000"}

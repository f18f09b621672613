"""Arrays of arrays and digits of the second under Spark: bulk changes and fills are those of the local runner."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.spark import runner
from tests.oracle.rows import updates

pytestmark = pytest.mark.xdist_group("spark")

SCHEMA = "k int, a array<array<int>>, m timestamp_ntz, __time bigint, __diff bigint"
VIEWS = {
    "groups": "SELECT a, count(*) AS n, max(m) AS m FROM t GROUP BY a",
    "join": "SELECT t.k, u.k AS l, t.a || u.a AS b FROM t JOIN t AS u ON t.a = u.a",
    "elements": "SELECT k, v, a[1][2] AS w, a[2:][1:1] AS s FROM t, unnest(a) AS v",
    "made": "SELECT k, to_jsonb(t) AS j, t::text AS x, array_dims(a) AS d, m::timestamp(1) AS m FROM t",
}


def test_nested_arrays_give_the_local_diffs(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "FEW", 0)
    rng = random.Random(3)
    engines = [hj.Engine(runner="local", clock="own", retain=100),
               hj.Engine(tmp_path / "w", spark=spark, runner="spark", clock="own", retain=100)]  # fmt: skip
    for engine in engines:
        engine.execute("CREATE TABLE t (k integer, a integer[][], m timestamp(3))")
    gone: list[dict[str, Any]] = []
    for time in (1, 2, 3):
        rows = [{**row, "__time": time, "__diff": -1} for row in gone[::2]]
        gone = [{"k": rng.randrange(4), "a": rng.choice([None, [], [[1, 2], [3, 4]], [[1, 2]], [[None, 5]]]),
                 "m": datetime(2024, 1, 1) + timedelta(microseconds=rng.randrange(10**7)), "__time": time, "__diff": 1}
                for _ in range(20)]  # fmt: skip
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

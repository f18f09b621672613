"""jsonb under Spark: fills and bulk changes are those of the local runner, and tables are plain strings to others."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.spark import runner
from tests.laws.test_view_law_jsonb import DDL, VALUES, VIEWS
from tests.oracle.rows import tuples, updates
from tests.support.seeds import some_views

CHOSEN = some_views({name: VIEWS[name] for name in ("groups", "distinct on", "counts", "join", "contains", "left",
                                                    "not in", "ranks", "elements", "each", "made")})  # fmt: skip
SCHEMAS = {"t": "n int, j string, k string, __time bigint, __diff bigint",
           "u": "j string, n int, __time bigint, __diff bigint"}  # fmt: skip


def _batch(rng: random.Random, time: int) -> dict[str, list[dict[str, Any]]]:
    def text() -> str | None:
        return None if rng.random() < 0.1 else rng.choice(rng.choice(VALUES))

    closed = {"__time": time, "__diff": 1}
    return {"t": [{"n": rng.randint(0, 2), "j": text(), "k": text(), **closed} for _ in range(20)],
            "u": [{"j": text(), "n": rng.randint(0, 2), **closed} for _ in range(6)]}  # fmt: skip


def test_jsonb_gives_the_local_diffs(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "FEW", 0)
    rng = random.Random(3)
    engines = [hj.Engine(runner="local", clock="own", retain=100),
               hj.Engine(tmp_path / "w", spark=spark, runner="spark", clock="own", retain=100)]  # fmt: skip
    for engine in engines:
        for ddl in DDL:
            engine.execute(ddl)
    gone: dict[str, list[dict[str, Any]]] = {}
    for time in (1, 2, 3):
        rows = _batch(rng, time)
        for table, found in gone.items():  # some of the rows before, as other texts of the same values
            rows[table] += [{**row, "__time": time, "__diff": -1} for row in found[::2]]
        gone = {table: [{name: _other(value) for name, value in row.items()} for row in found if row["__diff"] > 0]
                for table, found in rows.items()}  # fmt: skip
        diffs = []
        for engine in engines:
            if time == 2:
                for name, sql in CHOSEN.items():
                    engine.execute(f'CREATE MATERIALIZED VIEW "{name}" AS {sql}')
            frames = {table: spark.createDataFrame(found, SCHEMAS[table]) for table, found in rows.items()}
            applied = engine.apply(frames if engine is engines[1] else rows)
            assert engine is engines[0] or applied.runner == "spark"
            diffs.append({name: Counter((repr(row), at, diff) for row, at, diff in updates(table))
                          for name, table in applied.diffs.items()})  # fmt: skip
        for name in diffs[0]:
            assert diffs[0][name] == diffs[1][name], f"{name} at {time}"
    for name in CHOSEN:
        local, tasks = (Counter(map(repr, tuples(engine.read(name)))) for engine in engines)
        assert local == tasks and local, name
    assert dict(engines[1].dataframe("groups").dtypes)["j"] == "string"
    for engine in engines:
        engine.close()


def _other(value: Any) -> Any:
    """The last of the texts of an equal value."""
    return next((texts[-1] for texts in VALUES if value in texts), value) if isinstance(value, str) else value

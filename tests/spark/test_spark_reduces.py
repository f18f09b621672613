"""Reduces under Spark: a history gives the changes and contents of the local runner, and DuckDB's answers."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.spark import runner
from tests.oracle.histories import DDL, random_history, told
from tests.oracle.judges import Answers, normal
from tests.oracle.rows import tuples, updates


@pytest.fixture(autouse=True)
def _everything_stays_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "FEW", 0)


VIEWS = (
    "SELECT k, count(*) AS n, sum(v) AS s, max(v) AS m FROM a WHERE mz_now() <= v + 3 OR v IS NULL GROUP BY k",
    "SELECT b.x, g.s, g.t FROM b LEFT JOIN"
    " (SELECT k, sum(v) AS s, string_agg(s, ',' ORDER BY s) AS t FROM a GROUP BY k) AS g ON b.k = g.k",
    "SELECT a.k, sum(a.v * b.x) AS p FROM a JOIN b ON a.k = b.k GROUP BY a.k HAVING count(*) > 1",
    "SELECT k, v FROM a WHERE EXISTS (SELECT 1 FROM c WHERE c.x = a.k) EXCEPT ALL SELECT k, x FROM b",
    "SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v NULLS LAST) AS r FROM a WHERE v NOT IN (SELECT x FROM c)",
    "SELECT x, y FROM c ORDER BY y NULLS LAST, x NULLS LAST LIMIT 2",
)


def test_reduces_are_the_same_under_both_runners(spark: Any, tmp_path: Path) -> None:
    rng = random.Random(4)
    history, oracle = random_history(rng, 30, 6), Answers()
    engines = [hj.Engine(runner="local", clock="own"),
               hj.Engine(tmp_path / "w", spark=spark, runner="spark", clock="own", memory="1MB")]  # fmt: skip
    for engine in engines:
        for ddl in DDL:
            engine.execute(ddl)
    for number, batch in enumerate([batch for batch in told(random.Random(2), history, 6) if batch.updates]):
        if number in (0, 2):
            for engine in engines:
                for place, sql in enumerate(VIEWS):
                    engine.execute(f"CREATE MATERIALIZED VIEW {'late' if number else 'v'}{place} AS {sql}")
        found = []
        for engine in engines:
            applied = engine.apply(batch.rows(), close=False)
            closed = engine.advance(to=batch.upper) if batch.upper else applied
            found.append({name: Counter({(row, time): diff for row, time, diff in updates(table)})
                          for name, table in closed.diffs.items()})  # fmt: skip
        assert found[0] == found[1]
    for engine in engines:
        engine.advance(to=9)
    for time in range(9):
        oracle.at(history, time)
        for place, sql in enumerate(VIEWS):
            for engine in engines:
                for name in (f"v{place}", f"late{place}"):
                    assert normal(tuples(engine.read(name, as_of=time))) == oracle.ask(sql), f"{name} at {time}: {sql}"
    for engine in engines:
        engine.close()

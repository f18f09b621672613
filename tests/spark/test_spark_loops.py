"""Rounds as Spark jobs give what this process gives."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.spark import rounds, runner
from halfjoin.engine.spark.flow import SparkFlow
from tests.oracle.rows import bag

VIEWS = {
    "nearest": """
        WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 2)
            found (n bigint, far bigint) AS (
                SELECT 0, 0 UNION ALL SELECT e.b, near.far + e.w FROM near JOIN edges e ON e.a = near.n),
            near (n bigint, far bigint) AS (SELECT n, min(far) FROM found GROUP BY n),
            known (n bigint, ways bigint) AS (
                SELECT n, count(*) FROM found WHERE NOT EXISTS (SELECT 1 FROM edges s WHERE s.b = found.n AND s.w = 9)
                GROUP BY n)
        SELECT near.n, near.far, known.ways FROM near LEFT JOIN known ON known.n = near.n""",
    "in rounds of rounds": """
        WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 2)
            seen (n bigint) AS (SELECT 1 UNION SELECT n + 1 FROM reached),
            reached (n bigint) AS (
                WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 2)
                    up (n bigint) AS (SELECT n FROM seen UNION SELECT e.b FROM up JOIN edges e ON e.a = up.n)
                SELECT n FROM up)
        SELECT n FROM reached""",
    "where one fails": """
        WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 3)
            r (a bigint, n bigint) AS (
                SELECT a, 12 / (sum(n) - 9)
                FROM (SELECT a, w AS n FROM edges UNION ALL SELECT a + 1, n FROM r WHERE a < 2) x GROUP BY a)
        SELECT a, n FROM r""",
}
BATCHES = (
    [(0, 1, 4, 1), (1, 2, 1, 1), (0, 2, 7, 1), (2, 3, 1, 1), (3, 1, 1, 1)],
    [(1, 2, 1, -1), (0, 3, 2, 1), (4, 5, 9, 1)],
)


@pytest.mark.parametrize("name", VIEWS)
def test_rounds_of_jobs_give_what_this_process_gives(name: str, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "FEW", 0)
    jobs: Counter[str] = Counter()
    _counted(monkeypatch, jobs)
    engines = [hj.Engine(runner="local"), hj.Engine(runner="spark", spark=spark)]
    contents, failures = list[Any](), list[Any]()
    for engine in engines:
        engine.execute("CREATE TABLE edges (a bigint, b bigint, w bigint)")
        for time, batch in enumerate(BATCHES, 1):
            if time == 2:  # a fill, after which batches change it
                engine.execute(f"CREATE MATERIALIZED VIEW v AS {VIEWS[name]}")
            rows = [dict(zip(("a", "b", "w", "__diff"), row, strict=True)) for row in batch]
            applied = engine.apply({"edges": rows}, time=time)
            failures.append(applied.errors)
        contents.append([_read(engine, time) for time in range(1, len(BATCHES) + 1)])
    assert contents[0] == contents[1]
    assert failures[: len(BATCHES)] == failures[len(BATCHES) :]
    assert any(isinstance(found, str) for found in contents[0]) == (name == "where one fails")
    assert jobs["join"] > 4 and jobs["reduce"] > 4


def _read(engine: hj.Engine, time: int) -> Any:
    try:
        return bag(engine.read("v", as_of=time))
    except hj.DataError as problem:
        return str(problem)


def _counted(monkeypatch: pytest.MonkeyPatch, jobs: Counter[str]) -> None:
    """Count the rounds of joins and reduces that Spark runs."""
    tagged, changes = rounds._tagged, SparkFlow.changes

    def reducing(*args: Any) -> Any:
        jobs["reduce"] += 1
        return tagged(*args)

    def joining(*args: Any) -> Any:
        jobs["join"] += 1
        return changes(*args)

    monkeypatch.setattr(rounds, "_tagged", reducing)
    monkeypatch.setattr(SparkFlow, "changes", joining)

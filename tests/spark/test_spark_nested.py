"""The view law under both runners: random views, nested three deep, change alike in this process and as Spark jobs.

Views are made before and amid the data, and the warehouse of the jobs is opened again. DuckDB answers, and PostgreSQL
where it is installed.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.spark import runner
from tests.oracle.histories import Batch, Update, random_history, told
from tests.oracle.judges import Answers, PostgresAnswers
from tests.oracle.rows import updates
from tests.oracle.watch import Watch, some_views
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ")
FIRST = first_seed() if MORE else 0
END = 3


@pytest.fixture(autouse=True)
def _everything_stays_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "FEW", 0)


def in_few_batches(rng: random.Random, history: list[Update]) -> list[Batch]:
    """The history in at most four batches: each costs many jobs."""
    while len(batches := list(told(rng, history, END))) > 4:
        pass
    return batches


def check(seed: int, oracle: Answers, folder: Path, spark: Any) -> None:
    """Tell two engines, one for each runner, of a random history. Compare changes, and contents with answers."""
    rng = random.Random(seed)
    views = some_views(rng, 2, 3, oracle.name)
    history = random_history(rng, 20, END)
    batches = in_few_batches(rng, history)
    late = len(batches) // 2
    here, jobs = both = Watch(), Watch(folder / "w", memory="1MB", spark=spark)
    for number, batch in enumerate(batches):
        for prefix in [""] * (number == 0) + ["late_"] * (number == late):
            for view in views:
                here_made, jobs_made = (watch.create(view, prefix + view.name) for watch in both)
                assert here_made == jobs_made, view.sql
        for watch in both:
            watch.tell(batch)
        for name, view in here.views.items():
            assert jobs.reported[name] == here.reported[name], f"{name}: {view.sql}"
        if number == late:
            jobs.restart()
    assert not jobs.wrong(oracle, history)
    for watch in both:
        watch.engine.close()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + int(MORE or 4)))
def test_nested_views_change_alike_and_are_duckdbs(seed: int, tmp_path: Path, spark: Any) -> None:
    check(seed, Answers(), tmp_path, spark)


@pytest.mark.parametrize("seed", range(FIRST + 10_000, FIRST + 10_000 + int(MORE or 8)))
def test_nested_views_change_alike_and_are_postgres(seed: int, tmp_path: Path, spark: Any, postgres: Any) -> None:
    check(seed, PostgresAnswers(postgres), tmp_path, spark)


@pytest.mark.parametrize("name", ["local", "spark"])
def test_what_is_there_without_rows_is_in_the_first_changes(name: Any, tmp_path: Path, spark: Any) -> None:
    with hj.Engine(tmp_path / "w", runner=name, spark=spark, clock="own") as engine:
        engine.execute("CREATE TABLE a (k int)")
        engine.apply({"a": [{"k": 1}, {"k": 2}]}, time=0, close=False)
        engine.execute("CREATE MATERIALIZED VIEW few AS SELECT x FROM (VALUES (1), (1), (2)) AS q (x)")
        engine.execute("CREATE MATERIALIZED VIEW each AS SELECT k FROM a UNION ALL SELECT x FROM (VALUES (1)) AS q (x)")
        engine.execute("CREATE MATERIALIZED VIEW one AS SELECT count(*) AS n, max(k) AS m FROM a")
        engine.execute("CREATE MATERIALIZED VIEW none AS SELECT count(*) AS n, max(k) AS m FROM a WHERE k > 5")
        changes = engine.advance(to=1).diffs
    assert {view: sorted((row, diff) for row, _, diff in updates(table)) for view, table in changes.items()} == {
        "few": [((1,), 2), ((2,), 1)], "each": [((1,), 2), ((2,), 1)], "one": [((2, 2), 1)], "none": [((0, None), 1)],
    }  # fmt: skip

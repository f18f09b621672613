"""The view law for aggregates, outer joins, subqueries, set operations, top-k and windows, nested three deep.

Views are made before, amid and after the data; times close in any order of arrival; engines on disk are restarted.
DuckDB answers, and PostgreSQL where it is installed.
"""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.histories import random_history, told
from tests.oracle.judges import Answers, PostgresAnswers
from tests.oracle.values import Oracle
from tests.oracle.watch import Watch, some_views
from tests.support.ordering import read_in_order
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ")
FIRST = first_seed() if MORE else 0
DEPTH = int(os.environ.get("HALFJOIN_DEPTH", "3"))
SEEDS = range(FIRST, FIRST + int(MORE or 30))


def check(seed: int, oracle: Answers, folder: Path) -> str:
    """Tell an engine of a random history, with random views made early and again later."""
    rng = random.Random(seed)
    views, end = some_views(rng, 3, DEPTH, oracle.name), rng.choice((4, 8))
    history = random_history(rng, rng.choice((8, 20, 35)), end)
    batches = list(told(rng, history, end))
    durable = rng.random() < 0.3
    watch = Watch(folder / "w" if durable else None, retain=rng.choice((1, 3, 1000, 1000)))
    late = rng.randrange(len(batches) + 1)
    for number, batch in enumerate([None, *batches]):
        if batch is not None:
            watch.tell(batch)
        for again in range((number == 0) + (number == late)):
            for view in views:
                watch.create(view, view.name if again == number == 0 else f"late_{view.name}")
        if durable and rng.random() < 0.2:
            watch.restart()
    found = watch.wrong(oracle, history)
    watch.engine.close()
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_views_agree_with_duckdb(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_in_order(monkeypatch, bool(seed % 2))
    assert not check(seed, Answers(), tmp_path)


@pytest.mark.parametrize("seed", range(FIRST + 10_000, FIRST + 10_000 + int(MORE or 15)))
def test_views_agree_with_postgres(
    seed: int, tmp_path: Path, postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_order(monkeypatch, bool(seed % 2))
    assert not check(seed, PostgresAnswers(postgres), tmp_path)


# What every form of the grammar is known by in the text of a view.
FORMS = (
    "GROUP BY", "HAVING", "FILTER (", "DISTINCT ON", "ROLLUP", "CUBE", "GROUPING SETS", "grouping(", "UNION ALL",
    "INTERSECT", "EXCEPT ALL", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "USING", ", LATERAL", "LEFT JOIN LATERAL",
    "ROWS FROM", "WITH ORDINALITY", "generate_series(1, least", "repeat_row(-", "repeat_row(greatest", "NOT EXISTS",
    "NOT IN", "> ALL", "<= ANY", "ARRAY(SELECT", "WITH TIES", "OFFSET", "QUALIFY", "WINDOW w", "ROWS BETWEEN",
    "RANGE BETWEEN", "GROUPS BETWEEN", "EXCLUDE TIES", "EXCLUDE CURRENT ROW", "nth_value", "percentile_cont",
    "twice(", "least_and_count(", "mz_now()",
)  # fmt: skip


@pytest.mark.parametrize("oracle", ["duckdb", "postgres"])
def test_the_grammar_makes_every_form(oracle: Oracle) -> None:
    grammars = (random.Random(seed) for seed in range(200))
    texts = " ".join(view.sql for rng in grammars for view in some_views(rng, 3, DEPTH, oracle))
    only = ("IGNORE NULLS",) if oracle == "duckdb" else ()
    assert [form for form in (*FORMS, *only) if form not in texts] == []
    assert re.search(r"\([^()]+, [^()]+\) (<|=|IN|NOT IN) \(", texts), "row values"

"""The view law for forms that few queries have, each with views of its own.

Views are made before, amid and after the data; times close in any order of arrival; engines on disk are restarted.
PostgreSQL answers, and DuckDB where it reads a form alike.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.corners import FORMS, IN_DUCKDB, Corners
from tests.oracle.histories import random_history, told
from tests.oracle.judges import Answers, PostgresAnswers
from tests.oracle.watch import View, Watch
from tests.support.ordering import read_in_order

pytest_plugins = ("tests.support.postgres",)

SEEDS = range(12)


def check(form: str, seed: int, oracle: Answers, folder: Path) -> str:
    """Tell an engine of a random history, with views of a form made early and again later."""
    rng = random.Random(f"{form} {seed}")
    grammar, end = Corners(rng, oracle.name), rng.choice((4, 8))
    views = [View(f"v{number}", text, text) for number, text in enumerate(grammar.query(form) for _ in range(3))]
    history = random_history(rng, rng.choice((8, 20, 35)), end)
    batches = list(told(rng, history, end))
    durable = rng.random() < 0.3
    watch = Watch(folder / "w" if durable else None, retain=rng.choice((1, 3, 1000)))
    late = rng.randrange(len(batches) + 1)
    for number, batch in enumerate([None, *batches]):
        if batch is not None:
            watch.tell(batch)
        for again in range((number == 0) + (number == late)):
            for view in views:
                watch.create(view, view.name if again == number == 0 else f"late_{view.name}")
        if durable and rng.random() < 0.2:
            watch.restart()
    assert len(watch.views) == 2 * len(views), "all have a plan"
    found = watch.wrong(oracle, history)
    watch.engine.close()
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form", IN_DUCKDB)
def test_each_form_agrees_with_duckdb(form: str, seed: int, tmp_path: Path) -> None:
    assert not check(form, seed, Answers(), tmp_path)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form", FORMS)
def test_each_form_agrees_with_postgres(
    form: str, seed: int, tmp_path: Path, postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_order(monkeypatch, bool(seed % 2))
    assert not check(form, seed, PostgresAnswers(postgres), tmp_path)

"""The view law for all that a query may have, nested three deep.

Views are made before, amid and after the data; times close in any order of arrival; engines on disk are restarted.
DuckDB answers, and PostgreSQL where it is installed.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.histories import Batch, random_history, told
from tests.oracle.judges import Answers, PostgresAnswers
from tests.oracle.values import Oracle
from tests.oracle.watch import View, Watch, some_views
from tests.support.ordering import read_in_order
from tests.support.seeds import first_seed, some

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


@pytest.mark.parametrize("seed", range(FIRST + 10_000, FIRST + 10_000 + int(MORE or 48)))
def test_views_agree_with_postgres(
    seed: int, tmp_path: Path, postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_in_order(monkeypatch, bool(seed % 2))
    assert not check(seed, PostgresAnswers(postgres), tmp_path)


# What the forms of the grammar are known by in the text of a view; those in `RARE` are PostgreSQL's alone.
FORMS = (
    "GROUP BY", "HAVING", "FILTER (", "DISTINCT ON", "ROLLUP", "CUBE", "GROUPING SETS", "grouping(", "UNION ALL",
    "INTERSECT", "EXCEPT ALL", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "USING", ", LATERAL", "LEFT JOIN LATERAL",
    "ROWS FROM", "WITH ORDINALITY", "generate_series(1, least", "repeat_row(-", "repeat_row(greatest", "NOT EXISTS",
    "NOT IN", "> ALL", "<= ANY", "ARRAY(SELECT", "WITH TIES", "OFFSET", "QUALIFY", "WINDOW w", "ROWS BETWEEN",
    "RANGE BETWEEN", "GROUPS BETWEEN", "EXCLUDE TIES", "EXCLUDE CURRENT ROW", "nth_value", "percentile_cont",
    "twice(", "least_and_count(", "mz_now()",
)  # fmt: skip
RARE = (
    "WITH w", "NATURAL", ") AS u", "LATERAL (VALUES", "LATERAL (SELECT generate_series", "LIMIT (SELECT",
    "LIMIT greatest", "FETCH FIRST ((SELECT", "mode() WITHIN", "rank(1", "cume_dist(", "percentile_disc(least",
    "percentile_cont(ARRAY[",
    "GROUPING SETS (ROLLUP", "DISTINCT ROLLUP", "(VALUES", "unnest(ARRAY(", "= ANY (ARRAY(", "CASE ((", "ROW(",
    "row_number() OVER ()", "days' PRECEDING", "EXCLUDE GROUP",
)  # fmt: skip


def made(oracle: Oracle, count: int) -> list[View]:
    grammars = (random.Random(seed) for seed in range(count))
    return [view for rng in grammars for view in some_views(rng, 3, DEPTH, oracle)]


def depths(text: str) -> Iterator[tuple[int, str]]:
    """The pieces of a query between parentheses, each with how many queries there are around it and in it."""
    within = [1]
    for piece in re.split(r"(?=[()])", text):
        if piece.startswith(")"):
            within.pop()
        elif piece.startswith("("):
            within.append(within[-1] + piece.startswith(("(SELECT", "(WITH", "(VALUES")))
        yield within[-1], piece


@pytest.mark.parametrize("oracle", ["duckdb", "postgres"])
def test_the_grammar_makes_every_form(oracle: Oracle) -> None:
    texts = " ".join(view.sql for view in made(oracle, 200))
    only = ("IGNORE NULLS",) if oracle == "duckdb" else RARE
    assert [form for form in (*FORMS, *only) if form not in texts] == []
    assert re.search(r"\([^()]+, [^()]+\) (<|=|IN|NOT IN) \(", texts), "row values"


DEEP = (
    "GROUP BY", "GROUPING SETS", "ROLLUP", "WITHIN GROUP", "LATERAL", "VALUES", "FULL JOIN", "ROWS FROM", "OVER", "ROW",
    "PARTITION BY", "DISTINCT ON", "WITH TIES", "LIMIT", "ALL", "ANY", "EXISTS", "UNION", "EXCEPT", "USING", "WITH w",
    "CASE", "FILTER",
)  # fmt: skip


def test_forms_are_nested_three_deep() -> None:
    pieces = (piece for view in made("postgres", 200) for piece in depths(view.sql))
    deep = " ".join(piece for depth, piece in pieces if depth > DEPTH)
    assert [form for form in DEEP if form not in deep] == []


def test_most_views_have_a_plan_and_rows() -> None:
    rng, planned, rows = random.Random(1), list[bool](), list[bool]()
    history = random_history(rng, 60, 1)
    views = made("postgres", some(12))
    for number in range(0, len(views), 3):
        watch = Watch()
        watch.tell(Batch(tuple(history), 1))
        for view in views[number : number + 3]:
            planned.append(watch.create(view, view.name))
        found = [bool(watch.engine.read(name).num_rows) for name in watch.views]
        rows += found
        watch.engine.close()
    assert sum(planned) >= 0.8 * len(planned), f"{sum(planned)} of {len(planned)} have a plan"
    assert sum(rows) >= 0.5 * len(rows), f"{sum(rows)} of {len(rows)} have rows"

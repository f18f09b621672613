"""The view law for aggregates in parts: DISTINCT beside sums and orders, and mode, in one GROUP BY.

Groups are grouped over tables, joins and views. DuckDB answers, and PostgreSQL where it is installed.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.planner.reduces import parted
from tests.oracle.histories import random_history, told
from tests.oracle.judges import Answers, PostgresAnswers
from tests.oracle.values import Oracle
from tests.oracle.watch import View, Watch
from tests.support.ordering import read_in_order
from tests.support.seeds import first_seed

pytest_plugins = ("tests.support.postgres",)

MORE = os.environ.get("HALFJOIN_FUZZ")
FIRST = first_seed() if MORE else 0
SEEDS = range(FIRST, FIRST + int(MORE or 25))

# Columns of numbers and texts of what is grouped.
FROM = {
    "a": (("a.k", "a.v"), ("a.s",)),
    "a JOIN b ON a.k = b.k": (("a.v", "b.k", "b.x"), ("a.s",)),
    "a LEFT JOIN b ON a.v = b.x": (("a.k", "b.k"), ("a.s",)),
    "(SELECT DISTINCT k, v, s FROM a) AS d": (("d.k", "d.v"), ("d.s",)),
    "(SELECT k, count(DISTINCT v) AS n, min(s) AS s FROM a GROUP BY k) AS g": (("g.k", "g.n"), ("g.s",)),
    "(SELECT k, v, s FROM a UNION ALL SELECT k, x, NULL FROM b) AS u": (("u.k", "u.v"), ("u.s",)),
}


def _call(rng: random.Random, numbers: tuple[str, ...], texts: tuple[str, ...], oracle: Oracle) -> str:
    x, y, s = rng.choice(numbers), rng.choice(numbers), rng.choice(texts)
    either = rng.choice((x, f"{x} + {y}", f"coalesce({x}, 7)"))
    distinct = [f"count(DISTINCT {either})", f"count(DISTINCT {s})", f"sum(DISTINCT {either})", f"avg(DISTINCT {x})",
                f"var_pop(DISTINCT {x})", f"bit_xor(DISTINCT {x})"]  # fmt: skip
    modes = [f"mode() WITHIN GROUP (ORDER BY {one}{way})" for one in (either, s) for way in ("", " DESC")]
    others = ["count(*)", f"sum({either})", f"count({s})", f"min({either})", f"max({s})", f"bool_or({x} > 0)",
              f"percentile_disc(0.5) WITHIN GROUP (ORDER BY {x})", f"array_agg({x} ORDER BY {x})"]  # fmt: skip
    kinds = [distinct, distinct, modes, others] if oracle == "postgres" else [distinct, distinct, others]
    made = rng.choice(rng.choice(kinds))
    return f"{made} FILTER (WHERE {y} > 0)" if rng.random() < 0.25 and "percentile" not in made else made


def _view(rng: random.Random, number: int, oracle: Oracle) -> View:
    table = rng.choice(tuple(FROM))
    numbers, texts = FROM[table]
    keys = rng.sample([*numbers, *texts, f"{numbers[0]} + 1"], rng.choice((0, 1, 1, 2)))
    calls = [_call(rng, numbers, texts, oracle) for _ in range(rng.choice((1, 2, 3)))]
    shown = [*keys, *calls]
    items = ", ".join(f"{text} AS c{place}" for place, text in enumerate(shown))
    sql = f"SELECT {items} FROM {table}"
    if keys:
        grouped = ", ".join(keys)
        sql += f" GROUP BY {rng.choice((grouped, grouped, f'ROLLUP ({grouped})'))}"
    if rng.random() < 0.2:
        sql += f" HAVING {rng.choice(('count(*) > 1', f'count(DISTINCT {numbers[0]}) > 1'))}"
    return View(f"v{number}", sql, sql)


def check(seed: int, oracle: Answers, folder: Path) -> str:
    """Tell an engine of a random history, with random views made early and again later."""
    rng = random.Random(seed)
    views, end = [_view(rng, number, oracle.name) for number in range(3)], rng.choice((4, 8))
    history = random_history(rng, rng.choice((8, 20, 35)), end)
    batches = list(told(rng, history, end))
    durable = rng.random() < 0.3
    memory = "1kB" if durable and rng.random() < 0.5 else None  # then state is in files
    watch = Watch(folder / "w" if durable else None, retain=rng.choice((1, 3, 1000, 1000)), memory=memory)
    late = rng.randrange(len(batches) + 1)
    for number, batch in enumerate([None, *batches]):
        if batch is not None:
            watch.tell(batch)
        for again in range((number == 0) + (number == late)):
            for view in views:
                assert watch.create(view, view.name if again == number == 0 else f"late_{view.name}")
        if durable and rng.random() < 0.2:
            watch.restart()
    found = watch.wrong(oracle, history)
    watch.engine.close()
    return found


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many parts aggregates were put together of, from now on."""
    made: list[int] = []
    together = parted._Parts.together

    def counted(self: Any, several: Any) -> Any:
        made.append(len(several))
        return together(self, several)

    monkeypatch.setattr(parted._Parts, "together", counted)
    return made


@pytest.mark.parametrize("seed", SEEDS)
def test_parts_agree_with_duckdb(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: list[int]
) -> None:
    read_in_order(monkeypatch, bool(seed % 2))
    assert not check(seed, Answers(), tmp_path)
    assert parts


@pytest.mark.parametrize("seed", SEEDS)
def test_parts_agree_with_postgres(
    seed: int, tmp_path: Path, postgres: Any, monkeypatch: pytest.MonkeyPatch, parts: list[int]
) -> None:
    read_in_order(monkeypatch, bool(seed % 2))
    assert not check(seed, PostgresAnswers(postgres), tmp_path)
    assert parts


def test_the_views_have_parts_of_all_kinds() -> None:
    grammars = [random.Random(seed) for seed in SEEDS]
    texts = " ".join(_view(rng, number, "postgres").sql for rng in grammars for number in range(3))
    assert [form for form in (*FROM, "mode()", "sum(DISTINCT", "min(", "ROLLUP", "HAVING") if form not in texts] == []


def test_a_loop_reads_parts_as_any_other_rows() -> None:
    engine, rng, there = hj.Engine(clock="own"), random.Random(3), list[dict[str, int]]()
    parts = "SELECT b, count(DISTINCT a) AS n, min(a) AS m, mode() WITHIN GROUP (ORDER BY a) AS o FROM g GROUP BY b"
    engine.execute(f"CREATE TABLE g (a int, b int); CREATE MATERIALIZED VIEW q AS {parts}")
    for name, rows in (("inside", f"({parts})"), ("before", "q")):
        engine.execute(f"""CREATE MATERIALIZED VIEW {name} AS WITH RECURSIVE r(n) AS (
            SELECT a FROM g WHERE a = 0
            UNION SELECT g.b FROM r JOIN g ON g.a = r.n JOIN {rows} AS p ON p.b = g.b AND p.n > 1 AND p.o <= p.m + 1)
            SELECT n FROM r""")
    seen = set[str]()
    for time in range(1, 20):
        gone = [there.pop(rng.randrange(len(there))) for _ in range(min(2, len(there)))]
        come = [{"a": rng.randrange(6), "b": rng.randrange(6)} for _ in range(4)]
        there += come
        engine.apply({"g": [*come, *({**row, "__diff": -1} for row in gone)]}, time=time)
        answers = [str(sorted(row["n"] for row in engine.read(name).to_pylist())) for name in ("inside", "before")]
        assert answers[0] == answers[1]
        seen.add(answers[0])
    assert len(seen) > 3  # the answers change

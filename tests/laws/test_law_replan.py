"""New plans change no answer: the view law, open updates and errors hold for any plans."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfjoin as hj
from halfjoin.engine.statements import replan
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM
from halfjoin.planner.plan import ArrangementKey
from tests.oracle.choice import Drawn
from tests.oracle.replay import Replay
from tests.oracle.rows import Bag, updates
from tests.oracle.streams import Program, random_program
from tests.support.interrupting import KINDS, Ender


class Whims(replan.Statistics):
    """Random statistics, so that plans differ in the order of joins and in keys."""

    seed = 0

    def rows(self, collection: str) -> int:
        return self._drawn(collection).choice((1, 50, 2_000, 10**6))

    def distinct(self, key: ArrangementKey) -> int | None:
        return self._drawn(repr(key)).choice((None, 1, 40, 10**6))

    def users(self, key: ArrangementKey) -> tuple[str, ...] | None:
        return ("somebody",) if self._drawn(str(key)).random() < 0.5 else None

    def _drawn(self, of: str) -> random.Random:
        return random.Random(f"{self.seed} {of}")


@contextmanager
def whims() -> Iterator[None]:
    """Make every new plan on random statistics."""
    before, replan.Statistics = replan.Statistics, Whims  # type: ignore[misc]
    try:
        yield
    finally:
        replan.Statistics = before  # type: ignore[misc]


def refresh(engine: hj.Engine, seed: int) -> int:
    """Plan every view anew on other random statistics. Returns how many plans changed."""
    Whims.seed = seed
    before = {name: view.dataflow for name, view in engine._state.views.items()}
    for name in before:
        engine.execute(f"REFRESH PLAN {name}")
    return sum(view.dataflow is not before[name] for name, view in engine._state.views.items())


@st.composite
def programs(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Program:
    return random_program(Drawn(draw))


@given(programs(), st.integers(0, 1_000))
def test_the_view_law_holds_through_new_plans(program: Program, seed: int) -> None:
    with whims():
        replay = Replay(program.retain)
        for number, step in enumerate(program.steps):
            replay.step(step)
            if (seed + number) % 3:
                refresh(replay.engine, seed + number)
            replay.check_now()
        replay.check_all()


def test_the_view_law_holds_through_new_plans_on_disk(tmp_path: Path) -> None:
    for seed in range(4):
        program = random_program(_Random(seed))
        with whims():
            replay = Replay(1_000, tmp_path / f"w{seed}")
            for number, step in enumerate(program.steps):
                replay.step(step)
                refresh(replay.engine, number)
                if number % 2:
                    replay.engine.close()
                    replay.engine = hj.Engine(tmp_path / f"w{seed}")
                replay.check_now()
            replay.check_all()
            replay.engine.close()


class _Random:
    """`tests.oracle.choice.Choices` of a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def one_of(self, items: Any) -> Any:
        return self._random.choice(list(items))


TABLES = "CREATE TABLE a (k bigint, x bigint, n bigint); CREATE TABLE b (k bigint, x bigint, m bigint);" \
         "CREATE TABLE c (k bigint, x bigint, upto bigint)"  # fmt: skip
VIEWS = {
    "failing": "SELECT a.k, 12 / (a.n + b.m + c.x) AS q FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.x = c.x",
    "temporal": "SELECT a.k, b.m, c.x FROM a, b, c WHERE a.k = b.k AND a.x = b.x AND b.x = c.x AND mz_now() < c.upto",
    "filters": "SELECT a.n FROM a, b, c WHERE a.k = b.k AND a.x = b.x AND c.k = b.m AND 12 / a.n > 3 AND 12 / c.k < 9",
    "above": "SELECT f.q, t.m FROM failing f, temporal t, a WHERE f.k = t.k AND a.k = t.k AND a.x = t.x",
}


def change(choices: random.Random, low: int) -> dict[str, list[dict[str, int]]]:
    """Add and remove rows of a few keys, at times that may be far ahead."""
    columns = {"a": ("k", "x", "n"), "b": ("k", "x", "m"), "c": ("k", "x", "upto")}
    return {
        table: [{**{name: choices.randrange(3) if name != "upto" else low + choices.randrange(9) for name in names},
                 "__time": low + choices.choice((0, 0, 1, 4)), "__diff": choices.choice((1, 1, 2, -1))}
                for _ in range(choices.randrange(1, 6))]
        for table, names in columns.items() if choices.random() < 0.7
    }  # fmt: skip


def whole(engine: hj.Engine) -> dict[str, tuple[Bag, Bag]]:
    """All updates of each view and of its errors, including those at open times."""
    found = {}
    for name, view in engine._state.views.items():
        tables = (one.changes(MINIMUM, MAXIMUM).table(changes=True) for one in (view.contents, view.errors))
        contents, errors = (Counter({(row, time): diff for row, time, diff in updates(table)}) for table in tables)
        found[name] = contents, errors
    return found


@pytest.mark.parametrize("seed", range(6))
def test_any_plan_makes_the_same_open_updates_and_errors(seed: int) -> None:
    choices, swapped, low = random.Random(seed), 0, 0
    with hj.Engine(clock="own") as engine, hj.Engine(clock="own") as steady, whims():
        for one in (engine, steady):
            one.execute(";".join([TABLES, *(f"CREATE MATERIALIZED VIEW {n} AS {sql}" for n, sql in VIEWS.items())]))
        for number in range(12):
            batch, close = change(choices, low), choices.random() < 0.6
            if not batch:
                continue
            for one in (engine, steady):
                upper = one.apply(batch, time=low, close=close).upper
            low = max(low, upper)
            swapped += refresh(engine, 100 * seed + number)
            assert whole(engine) == whole(steady), number
        assert any(errors for _, errors in whole(engine).values()), "no row has failed"
        assert swapped > 10, "the plans stay the same"


def joins(engine: hj.Engine) -> list[object]:
    """The lookups of the views, and the users of each arrangement."""
    found: list[object] = []
    for name in engine._state.views:
        for join in json.loads(engine.explain(name, "json"))["joins"]:
            found += [(name, path["input"], [(one["arrangement"]["name"], one["by"]) for one in path["lookups"]])
                      for path in join]  # fmt: skip
    users = {(one.name, tuple(sorted(one.users))) for one in engine.stats().arrangements}
    return [found, sorted(users), [one.planned for one in engine.stats().collections]]


@pytest.fixture(params=["memory", "folder"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return None if request.param == "memory" else tmp_path / "w"


def loaded(folder: Path | None) -> hj.Engine:
    engine = hj.Engine(folder, clock="own")
    engine.execute(";".join([TABLES, *(f"CREATE MATERIALIZED VIEW {n} AS {sql}" for n, sql in VIEWS.items())]))
    engine.apply(change(random.Random(3), 0), time=0)
    return engine


@pytest.mark.parametrize("kind", KINDS)
def test_a_refresh_has_not_happened_or_is_done(folder: Path | None, kind: type[BaseException]) -> None:
    engine = loaded(folder)
    with hj.Engine(clock="own") as steady, whims():
        steady.execute(";".join([TABLES, *(f"CREATE MATERIALIZED VIEW {n} AS {sql}" for n, sql in VIEWS.items())]))
        steady.apply(change(random.Random(3), 0), time=0)
        ender, choices = Ender(kind), random.Random(4)

        def call() -> object:
            return engine.execute("REFRESH PLAN failing")

        def plan(seed: int) -> list[object]:
            Whims.seed = seed
            call()
            return joins(engine)

        one = plan(0)
        other = next(seed for seed in range(1, 99) if plan(seed)[0] != one[0])
        for at in ender.points(call):
            before = plan(0)
            after = plan(other)
            assert plan(0) == before != after
            Whims.seed = other
            ender.ends(call, at)
            assert joins(engine) in (before, after), ender.where
            batch = change(choices, engine.stats().upper)
            batch["a"] = [{"k": at, "x": at, "n": at}]
            for each in (engine, steady):
                each.apply(batch, time=each.stats().upper)
            assert whole(engine) == whole(steady), ender.where
            now = joins(engine)
            if folder is not None and at % 5 == 0:
                engine.close()
                engine = hj.Engine(folder)
                assert joins(engine) == now, ender.where
        engine.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_done_when_its_new_plans_are_interrupted(
    folder: Path | None, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replan, "outgrown", lambda *given: True)  # every batch looks at every plan
    engine = loaded(folder)
    with hj.Engine(clock="own") as steady, whims():
        steady.execute(";".join([TABLES, *(f"CREATE MATERIALIZED VIEW {n} AS {sql}" for n, sql in VIEWS.items())]))
        steady.apply(change(random.Random(3), 0), time=0)
        ender, number = Ender(kind), 0

        def call() -> object:
            return engine.apply(batch, number, f"batch {number}")

        def prepare() -> None:
            nonlocal number, batch
            number = engine.stats().upper
            batch = change(random.Random(number), number)
            batch["a"] = [{"k": 1, "x": 1, "n": 0, "__time": number}]
            Whims.seed += 1

        batch: dict[str, list[dict[str, int]]] = {}
        Whims.seed = 0
        prepare()
        points = ender.points(call)
        steady.apply(batch, number)
        for at in points:
            prepare()
            ender.ends(call, at)
            upper = engine.stats().upper
            call()  # the same batch: it is done, or done now
            steady.apply(batch, number)
            assert upper in (number, steady.stats().upper), ender.where
            assert whole(engine) == whole(steady), ender.where
        engine.close()
        if folder is not None:
            with hj.Engine(folder) as again:
                assert whole(again) == whole(steady)

"""When a plan is made again, on which statistics, and that equal statistics give an equal plan."""

from __future__ import annotations

import doctest
import importlib

import pytest

from halfjoin.planner.drift import FEW, GROWTH, limit, outgrown, raised, same_work
from halfjoin.planner.explain import arrangement_name
from halfjoin.planner.figures import Noted, Replayed
from halfjoin.planner.plan import ViewPlan
from halfjoin.planner.plan_view import plan
from tests.planner.test_plan_golden import DDL, SCRIPTS, SIZES
from tests.support.plan_facts import World

FLIGHTS = """
CREATE TABLE flights (id bigint PRIMARY KEY, origin text, hour bigint);
CREATE TABLE weather (origin text, hour bigint, wind bigint, PRIMARY KEY (origin, hour));
CREATE TABLE airports (faa text PRIMARY KEY, name text)
"""
BOARD = "SELECT f.id, a.name FROM flights f JOIN airports a ON f.origin = a.faa"
WINDY = "SELECT f.id, w.wind FROM flights f JOIN weather w ON f.origin = w.origin AND f.hour = w.hour"
LOADED = {"flights": 300_000, "weather": 26_000, "airports": 1_400}
LONG, SHORT = "flights(hour, origin)", "flights(origin)"


def names(planned: ViewPlan) -> set[str]:
    return {arrangement_name(key) for key in planned.arrangements}


@pytest.mark.parametrize("counted", [{}, {SHORT: 3}], ids=["guessed", "counted"])
@pytest.mark.parametrize("sizes", [{}, LOADED], ids=["empty", "loaded"])
def test_the_longer_key_wins_unless_measured(sizes: dict[str, int], counted: dict[str, int]) -> None:
    world = World(FLIGHTS, sizes, counted=counted)
    assert SHORT in names(world.create("board", BOARD))
    assert LONG in names(world.create("windy", WINDY))


def test_a_shorter_key_measured_as_good_is_shared() -> None:
    world = World(FLIGHTS, LOADED, counted={SHORT: 20_000, LONG: 30_000})
    world.create("board", BOARD)
    assert names(world.create("windy", WINDY)) == {SHORT, "weather(hour, origin)"}


def test_few_rows_measure_nothing() -> None:
    world = World(FLIGHTS, {"flights": 20, "weather": 9, "airports": 3}, counted={SHORT: 3})
    world.create("board", BOARD)
    assert LONG in names(world.create("windy", WINDY))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_figures_of_a_plan_make_it_again(path: object) -> None:
    sql = path.read_text().partition("-" * 20)[0].strip()  # type: ignore[attr-defined]
    for world in (World(DDL), World(DDL, SIZES)):
        world.create("other", "SELECT 1 AS one FROM a, b, c WHERE a.x = b.x AND b.y = c.y")
        facts = Noted(world)
        made = plan(world.relation(sql), facts, "v")
        figures = facts.figures(5)
        for later in (World(DDL), World(DDL, dict.fromkeys(SIZES, 77)), World(DDL, SIZES, counted={"b(x)": 3})):
            assert plan(later.relation(sql), Replayed(later, figures), "v") == made


def test_an_empty_collection_leaves_its_last_figures() -> None:
    full, empty = World(FLIGHTS, LOADED, counted={SHORT: 3, LONG: 26_000}), World(FLIGHTS)
    before = Noted(full)
    made = plan(full.relation(WINDY), before, "windy")
    after = Noted(empty, before.figures(1))
    assert plan(empty.relation(WINDY), after, "windy") == made
    assert after.figures(2) == before.figures(1).model_copy(update={"upper": 2})


def test_a_view_follows_only_the_views_before_it() -> None:
    world = World(FLIGHTS, LOADED, counted={SHORT: 20_000, LONG: 30_000})
    world.create("board", BOARD)
    assert SHORT in names(plan(world.relation(WINDY), Noted(world), "windy"))
    assert LONG in names(plan(world.relation(WINDY), Noted(world, aside={"board"}), "windy"))


def test_limits_never_sink() -> None:
    """Two tables are filled and emptied by turns. A look due to one table does not lower the limit of the other."""
    limits, looks = {"t": limit(0), "u": limit(0)}, 0
    for turn in range(200):
        rows = {"t": 100_000 if turn % 2 else 3, "u": 3 if turn % 2 else 100_000}
        if outgrown(limits, rows):
            looks, limits = looks + 1, raised(limits, rows, rows.__getitem__)
    assert looks == 2 and limits == {"t": 800_000, "u": 800_000}


def test_looks_at_a_growing_table_are_logarithmic() -> None:
    limits, looks = {"t": limit(0)}, 0
    for count in range(0, 1_000_000, 7):
        if outgrown(limits, {"t": count}):
            looks, limits = looks + 1, raised(limits, ["t"], lambda _, count=count: count)  # type: ignore[misc]
    assert looks == 5  # at 128, 1,024, ..., 524,288
    assert not outgrown(limits, {"other": 10**9}) and limit(0) == GROWTH * FEW


def test_which_path_fills_makes_no_other_plan() -> None:
    sql = "SELECT a.k, b.s FROM a JOIN b ON a.x = b.x"
    one, other = (World(DDL, {"a": x, "b": y}).plan(sql) for x, y in ((10_000, 9_000), (9_000, 20_000)))
    assert one.joins[-1].branches[0].fill != other.joins[-1].branches[0].fill and same_work(one, other)
    assert not same_work(one, World(DDL).plan(f"{sql} AND a.s = b.s"))


def test_the_examples_in_the_text_hold() -> None:
    assert doctest.testmod(importlib.import_module("halfjoin.planner.drift")).failed == 0

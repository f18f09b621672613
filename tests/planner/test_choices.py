"""Which joins have choices, and which have not: cycles, sizes, unique keys, large cliques."""

from __future__ import annotations

from itertools import combinations

import pytest

from halfjoin.planner.plan import Path
from tests.support.plan_facts import World

DDL = """
CREATE TABLE e (x bigint, y bigint);
CREATE TABLE f (x bigint, y bigint, z bigint);
CREATE TABLE customer (c bigint PRIMARY KEY, nation bigint);
CREATE TABLE supplier (s bigint PRIMARY KEY, nation bigint);
CREATE TABLE sale (c bigint, s bigint);
CREATE TABLE pair (x bigint, y bigint, PRIMARY KEY (x, y))
"""
TRIANGLE = "SELECT a.x FROM e a, e b, e c WHERE a.y = b.x AND b.y = c.y AND a.x = c.x"


def paths(sql: str, sizes: dict[str, int] | None = None) -> tuple[Path, ...]:
    return World(DDL, sizes or {}).plan(sql, "v").branches[0].paths


def chooses(path: Path) -> bool:
    return any(stage.otherwise for stage in path.every_stage)


@pytest.mark.parametrize("sql", [
    TRIANGLE,
    "SELECT a.x FROM pair a, pair b, pair c WHERE a.y = b.x AND b.y = c.y AND a.x = c.x",
    "SELECT a.x FROM e a, f b, e c WHERE a.y = b.x AND b.y = c.y AND a.x = c.x AND b.z > 3",
    "SELECT a.x FROM e a, e b, e c, e d WHERE a.y = b.x AND b.y = c.x AND c.y = d.x AND d.y = a.x",
    "SELECT a.x FROM e a, e b, e c WHERE a.y = b.x AND coalesce(b.y, 0) = c.y AND a.x IS NOT DISTINCT FROM c.x",
    "SELECT a.x FROM e a, e b, e c LEFT JOIN f ON f.x = c.x WHERE a.y = b.x AND b.y = c.y AND a.x = c.x",
])  # fmt: skip
def test_the_inputs_of_a_cycle_have_choices(sql: str) -> None:
    assert all(chooses(path) for path in paths(sql) if path.alias in "abcd")


@pytest.mark.parametrize("sql", [
    "SELECT a.x FROM e a, e b, e c WHERE a.y = b.x AND b.y = c.x",
    "SELECT a.x FROM e a, e b, e c WHERE a.y = b.x AND a.y = c.x AND b.x = c.x",  # one link, three times
    "SELECT a.x FROM e a, e b, f c WHERE a.x = c.x AND a.y = c.y AND b.x = c.y AND b.y = c.z",  # c has all links
    "SELECT a.x FROM e a, e b, e c WHERE a.y = b.x AND b.y = c.y AND a.x = c.x AND a.x = 7",  # a constant cuts it
    "SELECT a.s FROM customer c, supplier s, sale a WHERE a.c = c.c AND a.s = s.s AND c.nation = s.nation",
    "SELECT a.x FROM e a, e b, e c WHERE a.y = b.x AND 10 / b.y = c.y AND a.x = c.x",  # may fail
    "SELECT a.x FROM e a, e b, e c WHERE a.y < b.x AND b.y = c.y AND a.x = c.x",
    "SELECT a.x FROM e a JOIN e b ON a.x = b.x LEFT JOIN e c ON b.y = c.y AND a.y = c.x",
])  # fmt: skip
def test_without_a_cycle_there_is_no_choice(sql: str) -> None:
    assert not any(map(chooses, paths(sql)))


def test_small_inputs_are_no_choice() -> None:
    assert not any(map(chooses, paths(TRIANGLE, {"e": 64})))
    assert all(map(chooses, paths(TRIANGLE, {"e": 65})))


def test_an_order_that_finds_far_more_rows_is_left_out() -> None:
    sql = "SELECT a.x FROM e a, f b, sale c WHERE a.y = b.x AND b.y = c.s AND a.x = c.c"
    assert all(map(chooses, paths(sql, {"e": 10_000, "f": 12_000, "sale": 20_000})))
    assert not chooses(paths(sql, {"e": 10_000, "f": 10_000_000, "sale": 100})[0])


def test_partners_are_confirmed_by_all_links() -> None:
    """Even where a shorter key has an arrangement and finds few rows on average."""
    for path in paths(TRIANGLE, {"e": 100_000}):
        for stage in path.every_stage:
            keys = {expr.name for expr in stage.half_join.arrangement.keys}
            begins = stage in {path.stages[0], *(order[0] for order in path.stages[0].otherwise)}
            assert keys == {"x", "y"} or begins


def clique(size: int) -> str:
    edges = [f"e{one}{other}" for one, other in combinations(range(size), 2)]
    places = {node: [f"{edge}.{'xy'[edge.index(str(node), 1) - 1]}" for edge in edges if str(node) in edge[1:]]
              for node in range(size)}  # fmt: skip
    equal = " AND ".join(f"{one} = {found[0]}" for found in places.values() for one in found[1:])
    return f"SELECT {places[0][0]} FROM {', '.join(f'e {edge}' for edge in edges)} WHERE {equal}"


@pytest.mark.parametrize(("size", "most"), [(3, 4), (4, 48), (5, 40), (7, 120)])
def test_plans_of_cliques_stay_small(size: int, most: int) -> None:
    """Where all orders would be too many, the links come in one order, and rows choose who proposes values for them."""
    found = paths(clique(size))
    assert all(map(chooses, found))
    assert max(len(path.every_stage) for path in found) <= most


def test_each_order_looks_up_the_same_inputs_in_the_same_versions() -> None:
    for sql in (TRIANGLE, clique(4), clique(5)):
        for path in paths(sql):
            for number, stage in enumerate(path.stages):
                for order in stage.otherwise:
                    replaced = path.stages[number : number + len(order)]
                    assert versions(order) == versions(replaced)


def versions(stages: tuple[object, ...]) -> set[object]:
    return {(stage.half_join.input, stage.half_join.version) for stage in stages}  # type: ignore[attr-defined]

"""The graph of a plan: where it is cut, how its nodes are named, and how they are shown."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from halfjoin.planner import regions
from halfjoin.planner.explain import as_json, html, mermaid, text
from halfjoin.planner.group_functions import Aggregates, Ordered, Sums
from halfjoin.planner.plan import ArrangementKey, Join, Reduce, ViewPlan
from halfjoin.sql.expr import Column
from halfjoin.sql.types import BIGINT, BYTEA, INTEGER
from tests.planner.test_plan_laws import DDL, TABLES, all_updates, contents, random_stream, run
from tests.support.plan_facts import World
from tests.support.plan_interpreter import evaluate

UNION = "(SELECT a, b FROM r UNION ALL SELECT a, c FROM s WHERE c > {} UNION ALL SELECT 1, 2)"
OTHER = "(SELECT a, c FROM r UNION ALL SELECT a, b FROM t)"
JOIN = "SELECT u.a, w.b FROM {} AS u(a, b), {} AS w(a, b) WHERE u.a = w.a"


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make a join of two unions enough for a node."""
    monkeypatch.setattr(regions, "MOST_JOINS", 1)
    yield


def nodes(sql: str, world: World | None = None) -> list[str]:
    return [node.output for node in (world or World(DDL)).plan(sql).below]


def union(table: str, parts: int) -> str:
    return "(" + " UNION ALL ".join(f"SELECT a, b FROM {table} WHERE b = {i}" for i in range(parts)) + ")"


def test_a_join_of_unions_is_linear_in_its_parts() -> None:
    for count in (2, 3, 5, 8):
        unions = ", ".join(f"{union('rst'[i % 3], 6)} AS u{i}(a, b)" for i in range(count))
        where = " AND ".join(f"u0.a = u{i}.a" for i in range(1, count))
        plan = World(DDL).plan(f"SELECT 1 AS one FROM {unions} WHERE {where}")
        assert sum(len(join.branches) for join in plan.joins) <= 3 * 6 + 1
        assert len(plan.below) == min(count - 1, 3)


def test_few_joins_are_not_cut() -> None:
    assert nodes(JOIN.format(union("r", 4), union("s", 4))) == []
    assert len(nodes(JOIN.format(union("r", 5), union("s", 4)))) == 1


def test_one_union_below_a_join_is_not_cut() -> None:
    assert nodes(f"SELECT u.a FROM {union('r', 40)} AS u(a, b), s WHERE u.a = s.a") == []


def test_a_union_that_is_the_view_is_not_cut() -> None:
    assert nodes(f"SELECT a FROM {union('r', 60)} AS u(a, b) WHERE a > 1") == []


@pytest.mark.parametrize("arm", [
    "SELECT a / b, c FROM r", "SELECT a, b FROM r WHERE 1 / b = 1", "SELECT n, a FROM r, generate_series(a, b, c) f(n)",
])  # fmt: skip
def test_what_may_fail_is_not_cut(arm: str, eager: None) -> None:
    failing = f"({arm} UNION ALL SELECT a, b FROM t)"
    assert nodes(JOIN.format(failing, failing)) == []


def test_a_union_used_twice_is_one_node(eager: None) -> None:
    sql = f"WITH u AS {UNION.format(3)} SELECT p.a FROM u p JOIN u q ON p.a = q.b"
    plan = World(DDL).plan(sql)
    assert len(plan.below) == 1 and len(plan.branches) == 1


def test_a_union_in_a_part_of_a_union_comes_first(eager: None) -> None:
    inner = JOIN.format(UNION.format(1), OTHER)
    plan = World(DDL).plan(JOIN.format(f"({inner} UNION ALL SELECT a, b FROM t)", UNION.format(1)))
    seen = set(TABLES)
    for node in plan.nodes:
        assert set(node.collections) <= seen
        seen.add(node.output)
    assert set(plan.collections) <= set(TABLES)


def test_fingerprints_do_not_know_aliases(eager: None) -> None:
    first = f"SELECT u.a FROM {UNION.format(3)} AS u(a, b), {OTHER} AS w(a, b) WHERE u.a = w.a"
    second = ("SELECT big.y FROM s, (SELECT q.a AS z, q.b FROM r AS q UNION ALL SELECT s.a, s.c FROM s WHERE s.c > 3 "
              "UNION ALL SELECT 1 AS n, 2) AS big(x, y), (SELECT r.b, r.b FROM r UNION ALL SELECT 3, 4) AS small(i, j) "
              "WHERE big.x = small.i AND s.a = big.y")  # fmt: skip
    assert nodes(first)[:1] == nodes(second)[:1] != []


def test_fingerprints_know_constants_and_order(eager: None) -> None:
    names = {nodes(JOIN.format(one, OTHER))[0] for one in (
        UNION.format(3), UNION.format(4), UNION.format("3::bigint"), UNION.format(3).replace("a, c", "c, a"),
        UNION.format(3).replace("FROM s", "FROM r"), UNION.format(3).replace("1, 2", "2, 1"),
    )}  # fmt: skip
    assert len(names) == 6


def test_fingerprints_know_incarnations(eager: None) -> None:
    first, second = World(DDL, incarnations={"r": "one"}), World(DDL, incarnations={"r": "two"})
    sql = JOIN.format(UNION.format(3), OTHER)
    assert nodes(sql, first) == nodes(sql, first) != nodes(sql, second)


VIEWS = (
    JOIN.format(UNION.format(0), OTHER),
    JOIN.format(UNION.format(0), OTHER) + " AND mz_now() < u.b * 3",
    f"WITH u AS {UNION.format(0)} SELECT p.a, q.b FROM u p, u q, t WHERE p.a = q.b AND q.a = t.b",
    JOIN.format(f"({JOIN.format(OTHER, UNION.format(1))} UNION ALL SELECT a, b FROM t)", UNION.format(1)),
    JOIN.format("(SELECT a, b FROM r WHERE mz_now() <= b * 4 UNION ALL SELECT b, c FROM t)", OTHER),
    JOIN.format("(SELECT n, a FROM r, generate_series(0, 2) f(n) UNION ALL SELECT 1, b FROM t)", UNION.format(0)),
)


@pytest.mark.parametrize("sql", VIEWS)
def test_nodes_add_up_to_the_view(sql: str, eager: None) -> None:
    assert nodes(sql)
    for seed in range(6):
        choices = random.Random(seed)
        stream, world = random_stream(choices), World(DDL)
        relation, updates = world.relation(sql), all_updates(stream)
        for view in (run(world, sql, stream), run(world, sql, stream, fill_after=len(stream) // 2)):
            for time in range(20):
                expected = evaluate(relation, {table: contents(updates[table], time) for table in TABLES}, time)
                assert contents(view.output, time) == expected, (sql, time)


def by_hand() -> ViewPlan:
    """A reduce over a join, made by hand."""
    world = World(DDL)
    join = world.plan("SELECT r.a, s.b FROM r, s WHERE r.a = s.a").output
    assert isinstance(join, Join)
    a, b, n = Column("a", INTEGER), Column("b", BIGINT), Column("n", BIGINT)
    largest = Ordered(Column("#value2", BIGINT), "max", (b,))
    function = Aggregates(n, (Sums(Column("#sum1", BYTEA), "integers", (b,)),), (largest,))
    return ViewPlan((replace(join, output="join#1"), Reduce("v", (a, n), "join#1", (a,), function)))


def test_reduces_are_shown() -> None:
    plan, world = by_hand(), World(DDL)
    shown = text(plan, world, "v")
    for line in ("v (a integer, n bigint)", "├─ reduce join#1 by a",
                 "├─ keep for each group: its number of rows, the sum of b, max(b)",
                 "node join#1 (a integer, b bigint)"):  # fmt: skip
        assert line in shown.splitlines(), shown
    page, chart, data = html(plan, world, "v"), mermaid(plan, world, "v"), as_json(plan, world, "v")
    assert page.count("<svg") == 2 and "reduce join#1 by a" in page
    assert "reduce join#35;1 by a" in chart
    assert [(node["name"], node["kind"]) for node in data["nodes"]] == [("join#1", "join")]
    assert data["steps"][0] == "reduce join#1 by a"


def test_a_key_of_an_arrangement_hashes_anew_in_another_process() -> None:
    key = ArrangementKey("t", (Column("k", BIGINT),))
    again = pickle.loads(pickle.dumps(key))
    assert again == key and hash(again) == hash(key) and again is not key
    code = f"import pickle; k = pickle.loads({pickle.dumps(key)!r}); print({{k: 1}}[type(k)(k.collection, k.keys)])"
    other = {**os.environ, "PYTHONHASHSEED": "7"}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=other)
    assert found.stdout == "1\n"

"""Plans: sharing, the order of joins, where operators run, and what is refused."""

from __future__ import annotations

import doctest
import importlib
import json
from collections.abc import Callable
from itertools import permutations

import pytest

from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.cost import path_cost
from halfjoin.planner.estimates import Estimates
from halfjoin.planner.explain import arrangement_name, as_json, html, mermaid, text
from halfjoin.planner.linear import Explode, Extend, Filter, Keep, Temporal
from halfjoin.planner.plan import Path, Version, ViewPlan
from halfjoin.planner.plan_view import plan as plan_of
from halfjoin.sql.expr import Call, Column, Expr, Now
from halfjoin.sql.functions import render
from halfjoin.sql.relation import Filter as Filter_
from halfjoin.sql.relation import Project, Relation
from halfjoin.sql.types import BOOLEAN, MZ_TIMESTAMP
from tests.planner.test_plan_golden import DDL, SIZES
from tests.support.plan_facts import World

# The packages export functions of these names, which hide the modules.
fold_constants = importlib.import_module("halfjoin.planner.rules.fold_constants")
text_module = importlib.import_module("halfjoin.planner.explain.text")

Q5 = (
    "SELECT n_name, l_extendedprice FROM {} WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = "
    "s_suppkey AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND o_orderdate >= date '1994-01-01'"
)
Q5_INPUTS = ("customer", "orders", "lineitem", "supplier", "nation")


def arrangements(plan: ViewPlan) -> set[str]:
    return {arrangement_name(key) for key in plan.arrangements}


def path_of(plan: ViewPlan, alias: str) -> Path:
    return next(path for path in plan.branches[0].paths if path.alias == alias)


def order(path: Path) -> list[str]:
    return [stage.half_join.alias for stage in path.stages]


@pytest.mark.parametrize("sizes", [{}, SIZES], ids=["empty", "sized"])
def test_the_order_of_from_decides_nothing(sizes: dict[str, int]) -> None:
    world = World(DDL, sizes)
    estimates = Estimates(world, {}, "query")
    found = set()
    for inputs in permutations(Q5_INPUTS):
        plan = world.plan(Q5.format(", ".join(inputs)))
        paths = sorted(plan.branches[0].paths, key=lambda path: path.alias)
        costs = tuple((tuple(order(path)), path_cost(path, estimates)) for path in paths)
        found.add((frozenset(arrangements(plan)), costs, inputs[plan.branches[0].fill]))
    assert len(found) == 1


def test_before_and_after_follow_the_numbers_of_the_inputs() -> None:
    plan = World(DDL).plan(Q5.format(", ".join(Q5_INPUTS)))
    for path in plan.branches[0].paths:
        assert [stage.half_join.version for stage in path.stages] == [
            Version.AFTER if stage.half_join.input < path.input else Version.BEFORE for stage in path.stages
        ]
        assert {stage.half_join.input for stage in path.stages} | {path.input} == set(range(5))


def test_views_share_arrangements() -> None:
    world = World(DDL, SIZES)
    world.create("one", "SELECT o_orderkey, c_mktsegment FROM orders, customer WHERE o_custkey = c_custkey")
    plan = world.create("two", "SELECT o_orderdate AS d FROM customer AS c JOIN orders AS o ON c_custkey = o_custkey")
    assert arrangements(plan) == {"customer(c_custkey)", "orders(o_custkey)"}
    shown = text(plan, world, "two")
    assert "orders(o_custkey): existing, shared with one" in shown
    assert "customer(c_custkey): existing, unique, shared with one, primary key of customer" in shown


def test_a_view_that_is_replaced_keeps_nothing_alive() -> None:
    world = World(DDL, SIZES)
    world.create("v", "SELECT a.k FROM a JOIN b ON a.x = b.x")
    sql = "SELECT 1 AS one FROM a, b WHERE a.x = b.x AND a.s = b.s"
    assert arrangements(world.plan(sql, "v")) == {"a(s, x)", "b(s, x)"}


def test_self_joins_share_arrangements() -> None:
    plan = World(DDL).plan("SELECT p.x FROM b AS p JOIN b AS q ON p.x = q.x JOIN b AS r ON q.x = r.x")
    assert arrangements(plan) == {"b(x)"}


def test_table_functions_by_other_names_share_arrangements() -> None:
    world = World(DDL)
    world.create("one", "SELECT a.k, b.s FROM a, generate_series(1, a.x) AS g(n), b WHERE b.y = g.n")
    plan = world.plan("SELECT z.k FROM b AS w, a AS z, LATERAL generate_series(1, z.x) AS other(m) WHERE other.m = w.y")
    assert all(world.users(key) is not None for key in plan.arrangements)


def test_a_column_of_any_integer_width_is_the_same_key() -> None:
    plan = World(DDL).plan("SELECT a.k FROM a JOIN b ON a.x = b.y")
    assert arrangements(plan) == {"a(x)", "b(y)"}


def test_an_existing_arrangement_nearly_as_selective_is_taken() -> None:
    world = World(DDL, SIZES, counted={"a(x)": 600})
    assert arrangements(world.plan("SELECT 1 AS one FROM a, b WHERE a.x = b.x AND a.s = b.s")) == {"a(s, x)", "b(s, x)"}
    world.create("v", "SELECT a.k FROM a JOIN b ON a.x = b.x")
    plan = world.plan("SELECT 1 AS one FROM a, b WHERE a.x = b.x AND a.s = b.s")
    assert "a(x)" in arrangements(plan)
    residual = [step for stage in path_of(plan, "b").stages for step in stage.then.steps if isinstance(step, Filter)]
    assert [render(p) for step in residual for p in step.predicates] == ["a.s = b.s"]


def test_a_unique_key_is_preferred_to_a_longer_one() -> None:
    plan = World(DDL).plan("SELECT b.d FROM b JOIN a ON b.x = a.k AND b.s = a.s AND b.y = a.x")
    assert order(path_of(plan, "b")) == ["a"]
    assert "a(k)" in arrangements(plan)


def test_cross_products_come_last_and_are_warned_of() -> None:
    plan = World(DDL).plan("SELECT a.k FROM c, a, b WHERE a.x = b.x")
    assert order(path_of(plan, "a")) == ["b", "c"]
    assert any("cross product" in warning for warning in plan.warnings)


def test_columns_are_fetched_only_if_needed_and_dropped_at_once() -> None:
    plan = World(DDL).plan("SELECT l_extendedprice FROM customer, orders, lineitem WHERE c_custkey = o_custkey AND "
                           "o_orderkey = l_orderkey AND c_mktsegment = 'X'")  # fmt: skip
    path = path_of(plan, "customer")
    assert [column for column, _ in path.fetch] == ["c_custkey", "c_mktsegment"]
    assert path.source.steps[-1] == Keep(("customer.c_custkey",))
    assert [[column for column, _ in stage.half_join.fetch] for stage in path.stages] == [["o_orderkey"],
                                                                                         ["l_extendedprice"]]
    assert path.stages[0].then.steps == (Keep(("orders.o_orderkey",)),)
    assert path.stages[1].then.steps == (Keep(("lineitem.l_extendedprice",)),)


def test_each_path_ends_with_the_columns_of_the_view() -> None:
    plan = World(DDL).plan("SELECT b.y, a.x AS \"b.y#\", a.x AS \"a.k\", a.k AS y2 FROM a JOIN b ON a.k = b.x")
    for path in plan.branches[0].paths:
        last = path.final.steps[-1]
        names = last.columns if isinstance(last, Keep) else [c.name for c, _ in last.items]  # type: ignore[union-attr]
        assert list(names) == ["y", "b.y#", "a.k", "y2"]


def test_what_may_fail_over_two_inputs_runs_on_complete_rows() -> None:
    plan = World(DDL).plan("SELECT a.k FROM a, b, c WHERE a.x = b.x AND b.y = c.y AND a.k * b.y > 3")
    for path in plan.branches[0].paths:
        assert path.final.reports
        assert any(isinstance(step, Filter) for step in path.final.steps)
        assert not any(stage.then.reports for stage in path.stages)


def test_temporal_filters_go_down_into_the_inputs() -> None:
    plan = World(DDL).plan("SELECT a.k FROM a, c WHERE a.x = c.y AND mz_now() < c.hi")
    assert any(isinstance(step, Temporal) for step in path_of(plan, "c").source.steps)
    assert any(isinstance(step, Temporal) for step in path_of(plan, "a").stages[0].then.steps)


def test_a_weight_runs_as_soon_as_it_is_bound() -> None:
    plan = World(DDL).plan("SELECT b.s FROM a JOIN b ON a.x = b.x, repeat_row(a.k)")
    assert any(isinstance(step, Explode) for step in path_of(plan, "a").source.steps)


def test_an_infallible_computed_column_runs_early() -> None:
    plan = World(DDL).plan("SELECT upper(a.s) AS u, b.d FROM a JOIN b ON a.x = b.x")
    assert any(isinstance(step, Extend) for step in path_of(plan, "a").source.steps)


def test_numerics_are_stored_with_38_digits() -> None:
    world = World("CREATE TABLE t (n numeric(38,4))")
    assert str(world.plan("SELECT n + n AS m FROM t").columns[0].type) == "numeric(38,4)"
    with pytest.raises(UnsupportedSQL, match=r"column m has 4\d digits after the point.*round"):
        World("CREATE TABLE t (n numeric(38,20))").plan("SELECT n * n AS m FROM t")


def test_too_many_joins_below_union_all() -> None:
    union = "(" + " UNION ALL ".join(["SELECT 1 / x AS x FROM a"] * 6) + ")"
    sql = f"SELECT 1 AS one FROM {union} AS p, {union} AS q, {union} AS r, {union} AS s"
    with pytest.raises(UnsupportedSQL, match=r"1296 joins.*at most 1024.*materialized view"):
        World(DDL).plan(sql)


def test_a_filter_larger_than_its_result_is_warned_of() -> None:
    plan = World(DDL, SIZES).plan("SELECT 1 AS one FROM customer, orders WHERE c_custkey = o_custkey AND o_orderdate > "
                                  "date '1995-01-01'")  # fmt: skip
    assert not plan.warnings  # the index has only these rows once it is large
    plan = World(DDL, SIZES).plan("SELECT 1 AS one FROM customer, orders WHERE c_custkey = o_custkey "
                                  "AND 10 / o_orderkey > 2")  # fmt: skip
    assert plan.warnings == (
        "orders(o_custkey) holds every row of orders, though 10 / orders.o_orderkey > 2 is asked for: "
        "a materialized view of those rows would be smaller",
    )


def test_every_format_names_what_is_there() -> None:
    world = World(DDL, SIZES)
    plan = world.plan("SELECT a.k, b.s || '<&>\"' AS t FROM a JOIN b ON a.x = b.x AND a.s < 'x\"'")
    page, chart = html(plan, world, "v<1>"), mermaid(plan, world, "v")
    assert page.startswith("<!doctype html>") and page.count("<svg") == 1 and "v&lt;1&gt;" in page
    assert "http" not in page and "src=" not in page
    assert chart.startswith("flowchart LR") and "b(x)" in chart and "'x#quot;'" in chart
    data = json.loads(json.dumps(as_json(plan, world, "v")))
    assert [path["input"] for path in data["joins"][0]] == ["a", "b"]
    assert data["arrangements"][0] == {"name": "a(x)", "state": "new", "unique": False, "shared_with": [],
                                     "only": "s < 'x\"'", "made": ""}


def test_explanations_are_stable() -> None:
    sql = Q5.format(", ".join(Q5_INPUTS))
    assert len({text(World(DDL, SIZES).plan(sql), World(DDL, SIZES), "v") for _ in range(3)}) == 1


@pytest.mark.parametrize("module", [fold_constants, text_module], ids=["fold_constants", "text"])
def test_examples_in_docstrings(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("build", [
    lambda scan, now: Filter_(scan, Call("is null", (now,), BOOLEAN)),
    lambda scan, now: Filter_(scan, Call("<", (now, now), BOOLEAN)),
    lambda scan, now: Project(scan, ((Column("n", MZ_TIMESTAMP), now),)),
])  # fmt: skip
def test_mz_now_elsewhere_is_refused(build: Callable[[Relation, Expr], Relation]) -> None:
    world = World(DDL)
    with pytest.raises(UnsupportedSQL, match=r"mz_now\(\) is used in .*compare it in WHERE"):
        plan_of(build(world.relation("SELECT k FROM a"), Now()), world)

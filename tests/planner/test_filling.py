"""A query has no more paths than it needs, and fills by the one that a plan with all paths would choose."""

from __future__ import annotations

import random
from dataclasses import replace
from unittest.mock import patch

import pytest

import halfjoin as hj
from halfjoin.engine.arrange.index import Index
from halfjoin.engine.batch.state import State
from halfjoin.engine.join import dataflow
from halfjoin.engine.statements.evaluating import planned_query
from halfjoin.planner.cost import path_cost
from halfjoin.planner.estimates import Estimates
from halfjoin.planner.filling import join_with_known
from halfjoin.planner.links import equality
from halfjoin.planner.plan import InputKind, Join, ViewPlan
from halfjoin.planner.plan_view import plan
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.relation import Relation


@pytest.fixture(scope="module")
def engine() -> hj.Engine:
    engine = hj.Engine()
    engine.execute("CREATE TABLE a (k bigint PRIMARY KEY, x integer); CREATE TABLE b (k bigint, y bigint, z bigint); "
                   "CREATE TABLE c (y bigint PRIMARY KEY, d numeric(8,2)); CREATE INDEX ON b (k)")  # fmt: skip
    engine.apply({"a": [{"k": k, "x": k % 7} for k in range(3000)],
                  "b": [{"k": k % 3000, "y": k % 500, "z": k} for k in range(9000)],
                  "c": [{"y": y, "d": 1} for y in range(500)]})  # fmt: skip
    return engine


def relation(engine: hj.Engine, sql: str) -> Relation:
    return bind(parse_query(sql), engine._state.catalog, sql)


def paths(engine: hj.Engine, sql: str) -> tuple[list[str], str]:
    """The aliases of the paths of a query's first join, and that of the path that fills."""
    planned = planned_query(engine._state, relation(engine, sql))
    (branch,) = planned.joins[0].branches
    return [path.alias for path in branch.paths], branch.paths[branch.fill].alias


@pytest.mark.parametrize(("sql", "made"), [
    ("SELECT b.z FROM a, b WHERE b.k = a.k AND a.k = 5", ["a"]),
    ("SELECT b.z, c.d FROM a, b, c WHERE b.k = a.k AND c.y = b.y AND a.k IN (5, 6)", ["a"]),
    ("SELECT b.z, c.d FROM b, c WHERE c.y = b.y AND c.y = 5", ["b", "c"]),  # looked up from c, b needs an index
    ("SELECT b.z FROM a, b WHERE b.k = a.k AND a.k = 5 AND 10 / b.z > 1", ["a", "b"]),  # rows of b may be errors
    ("SELECT b.z FROM a LEFT JOIN b ON b.k = a.k WHERE a.k = 5", ["a"]),
    ("SELECT count(*) AS n FROM a, b WHERE b.k = a.k", ["a", "b"]),  # to look all of a up costs more than to read b
])  # fmt: skip
def test_only_needed_paths_are_made(engine: hj.Engine, sql: str, made: list[str]) -> None:
    assert paths(engine, sql)[0] == made


def test_a_query_begins_where_it_needs_no_index(engine: hj.Engine) -> None:
    assert paths(engine, "SELECT b.z, c.d FROM b, c WHERE c.y = b.y")[1] == "b"  # more rows, but c has an index


def test_a_question_for_a_key_gives_a_row_once(engine: hj.Engine) -> None:
    """However many rows the key has; and a unique key stays unique among rows that meet conditions."""
    for asked in ("SELECT y FROM c WHERE d < 1", "SELECT z FROM b AS q WHERE z < 9000"):
        sql = f"SELECT a.x FROM a, b WHERE b.k = a.k AND a.x IN ({asked})"
        estimates = Estimates(engine._state, {}, "query")
        (branch,) = planned_query(engine._state, relation(engine, sql)).joins[0].branches
        for path in branch.paths:
            assert all(stage.left <= stage.lookups for stage, step in
                       zip(path_cost(path, estimates).stages, path.stages, strict=True)
                       if step.half_join.kind is InputKind.PRESENT)  # fmt: skip


def with_known(plan: ViewPlan, state: State) -> ViewPlan:
    """The plan of a view with the known keys of its inputs, as a query has them."""
    own, estimates = [node.output for node in plan.nodes], Estimates(state, {}, plan.output.output)
    return replace(plan, nodes=tuple(join_with_known(node, own, estimates, state.arranged)
                                     if isinstance(node, Join) else node for node in plan.nodes))  # fmt: skip


def fills(planned: ViewPlan) -> list[str]:
    return [branch.paths[branch.fill].alias for node in planned.nodes if isinstance(node, Join)
            for branch in node.branches]  # fmt: skip


def test_a_query_fills_by_the_path_that_costs_least_of_all(engine: hj.Engine) -> None:
    state, pick = engine._state, random.Random(2).choice
    for _ in range(150):
        where = ["b.k = a.k", "c.y = b.y",
                 *(pick(["a.k = 7", "a.k IN (1, 2)", "b.k = 9", "c.y = 3", "a.x = 1", "b.z < 10", "b.z = 5"])
                   for _ in range(pick([0, 1, 2])))]  # fmt: skip
        sql = f"SELECT {pick(['a.x, c.d', 'count(*) AS n'])} FROM a, b, c WHERE {' AND '.join(where)}"
        whole = with_known(plan(relation(engine, sql), state, "query"), state)
        own = planned_query(state, relation(engine, sql))
        assert fills(own) == fills(whole), sql
        assert set(own.collections) == set(whole.collections)
        assert sum(len(branch.paths) for node in own.joins for branch in node.branches) <= 4


def test_what_a_new_query_asks_for_is_found_once(engine: hj.Engine) -> None:
    """Equalities of columns, distinct keys of an index; and a query has no gates, which only batches pass."""
    sql = "SELECT b.z, c.d FROM a, b, c WHERE b.k = a.k AND c.y = b.y AND a.k = {0} LIMIT 1{0}"  # each another shape
    for key in (1, 2):  # the first one builds an index
        engine.query(sql.format(key))
    known = equality.cache_info().misses
    with patch.object(Index, "distinct", side_effect=AssertionError), patch.object(
        Index, "_sampled", side_effect=AssertionError
    ), patch.object(dataflow, "gates_of", side_effect=AssertionError):
        assert engine.query(sql.format(3)).num_rows == 3
    assert equality.cache_info().misses == known + 2  # of two columns and the new constant


@pytest.mark.parametrize(("condition", "begins"), [
    ("p.kind = 'a' AND q.day = 5", "q"),  # half of p, a hundredth of q
    ("p.kind IN ('a', 'c') AND q.day = 5", "q"),
    ("p.size = 3 AND q.day < 50", "p"),
    ("p.size = 3 AND q.day = 5", "p"),
])  # fmt: skip
def test_a_query_begins_with_the_rarest_values(condition: str, begins: str) -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE p (k bigint PRIMARY KEY, kind text, size smallint)")
        engine.execute("CREATE TABLE q (k bigint PRIMARY KEY, day bigint)")
        engine.execute("CREATE TABLE f (p bigint, q bigint, x bigint)")
        engine.apply({"p": [{"k": k, "kind": "ab"[k % 2], "size": k % 400} for k in range(2000)],
                      "q": [{"k": k, "day": k % 100} for k in range(2000)],
                      "f": [{"p": n % 2000, "q": n % 1999, "x": n} for n in range(40_000)]})  # fmt: skip
        sql = f"SELECT sum(f.x) AS s FROM p, q, f WHERE f.p = p.k AND f.q = q.k AND {condition}"
        assert paths(engine, sql)[1] == begins


@pytest.mark.parametrize(("values", "about"), [(1, 1), (7, 7), (200, 200), (50_000, 50_000)])
def test_a_sample_tells_about_how_many_values_there_are(values: int, about: int) -> None:
    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (x bigint, s text)")
        engine.apply({"t": [{"x": n % values, "s": f"s{n * 11 % values}"} for n in range(50_000)]})
        assert [about / 2 <= (engine._state.values("t", name) or 0) <= about * 2 for name in ("x", "s")] == [True, True]
        assert engine._state.values("u", "x") is None

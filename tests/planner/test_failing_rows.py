"""Views whose joins compare what may fail of several inputs: rows are found by its value, and have the rows and the
errors of a join that meets every row."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.planner import paths, plan_view
from halfjoin.planner.plan import Branch
from tests.planner.test_daring_joins import QUERIES, SCHEMA, SUMS
from tests.planner.test_plan_laws import DDL, contents, random_stream, run
from tests.support.joins import contents as kept
from tests.support.plan_facts import World

# Of `r`, `s` and `t` of the laws of plans: sums become quotients, which fail often.
JOINS = {
    "a quotient": "SELECT s.a, t.c FROM r, s, t WHERE r.a = s.a AND t.b = r.b / s.c",
    "two of the same inputs": "SELECT t.a FROM r, s, t WHERE r.a = s.a AND t.b = r.b / s.c AND t.c = s.b / r.c",
    "null-safe": "SELECT t.a FROM r, s, t WHERE r.a = s.a AND t.b IS NOT DISTINCT FROM r.b / s.c",
    "what fails beside it": "SELECT t.a FROM r, s, t WHERE r.a = s.a AND t.b = r.b / s.c AND s.b / r.c <> 2",
    "what fails in the output": "SELECT 2 / t.c AS x FROM r, s, t WHERE r.a = s.a AND t.b = r.b / s.c",
    "what fails of one input": "SELECT t.a FROM r, s, t WHERE r.a = s.a AND t.b = r.b / s.c AND 2 / r.c = 1",
    "in a class": "SELECT t.a FROM r, s, t, r AS q WHERE r.a = s.a AND t.b = r.b / s.c AND t.b = q.b",
    "with time": "SELECT t.a FROM r, s, t WHERE r.a = s.a AND t.b = r.b / s.c AND mz_now() < s.b",
    "without an equality": "SELECT t.a FROM r, s, t WHERE t.b = r.b / s.c AND r.a < s.a",
}  # fmt: skip
WHOLE = {  # conditions for which rows that fail cannot be told before they are complete
    "one that reads all": "SELECT t.a FROM r, s, t WHERE r.a = s.a AND t.b = r.b / s.c AND t.c / r.c > s.b",
    "times that may fail": "SELECT t.a FROM r, s, t WHERE r.a = s.a AND t.b = r.b / s.c AND mz_now() < t.c / s.b",
    "what rows that it finds fail for":
        "SELECT q.a FROM r, s, t, r AS q WHERE r.a = s.a AND t.b = r.b / s.c AND q.c = s.b / t.c",
    "another key": "SELECT t.a FROM r, s, t WHERE r.a = s.a AND t.b = r.b / s.c AND t.a = r.a",
}  # fmt: skip


def _whole(block: Any, *given: Any) -> tuple[Branch, ...]:
    return (paths.branch(block, *given),)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", [*JOINS, *WHOLE])
def test_rows_and_errors_are_those_of_the_one_join(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    choices, sql = random.Random(seed), {**JOINS, **WHOLE}[name]
    stream, world, late = random_stream(choices), World(DDL), choices.randint(1, 2)
    found = [run(world, sql, stream), run(world, sql, stream, fill_after=late)]
    assert (len(found[0].plan.branches) > 1) is (name in JOINS)
    monkeypatch.setattr(plan_view, "branches_of", _whole)
    expected = run(world, sql, stream)
    assert len(expected.plan.branches) == 1
    for time in range(20):
        for view in found:
            assert contents(view.output, time) == contents(expected.output, time), (sql, time)
            assert contents(view.errors, time) == contents(expected.errors, time), (sql, time)


@pytest.mark.parametrize("sql", [SUMS, QUERIES[3]])
def test_only_what_fails_meets_every_row(sql: str) -> None:
    world = World(SCHEMA, {"t": 1000, "s": 1000, "u": 1000})
    first, *others = world.plan(sql, "v").branches
    assert others
    for i, path in enumerate(first.paths):
        assert i in first.whole or all(stage.half_join.probe for stage in path.stages)
    for path in (path for branch in others for path in branch.paths):
        met = next(place for place, stage in enumerate(path.stages) if not stage.half_join.probe)
        assert "value fails" in str(path.stages[met - 1].then)


def test_explain_says_so() -> None:
    engine = hj.Engine()
    engine.execute(SCHEMA)
    text = engine.explain(SUMS)
    assert "look up u(a) by value or null(t.x + s.y)" in text and "filter value fails(t.x + s.y)" in text
    assert text.count("join of t, s, u") == 2
    assert "a change of t meets" not in text and "a change of s meets" not in text
    assert "a change of u meets every row of" in text


def _errors(engine: hj.Engine) -> Counter[Any]:
    return kept(engine._state.maintained["v"].errors, engine._state.upper - 1)


def test_what_fails_is_an_error_of_complete_rows_alone() -> None:
    engine = hj.Engine()
    engine.execute(f"{SCHEMA}; CREATE MATERIALIZED VIEW v AS {SUMS}")
    engine.execute("INSERT INTO t VALUES (2147483647, 1), (1, 2); INSERT INTO s VALUES (1, 5), (2, 3)")
    assert engine.read("v").to_pylist() == []
    engine.execute("INSERT INTO u VALUES (4, 7)")
    with pytest.raises(hj.DataError, match=r"integer out of range in u\.a = t\.x \+ s\.y"):
        engine.read("v")
    engine.execute("DELETE FROM s WHERE k = 1")
    assert engine.read("v").to_pylist() == [{"x": 1, "k": 2, "b": 7}] and not _errors(engine)
    engine.execute("INSERT INTO s VALUES (1, 6)")
    assert _errors(engine).total() == 1
    engine.execute("DELETE FROM u")
    assert engine.read("v").to_pylist() == [] and not _errors(engine)


def test_what_fails_of_one_input_is_reported_once() -> None:
    engine = hj.Engine()
    engine.execute(f"{SCHEMA}; CREATE MATERIALIZED VIEW v AS {SUMS} AND 1 / t.y = 1")
    engine.execute("INSERT INTO t VALUES (1, 0)")
    assert _errors(engine).total() == 1
    engine.execute("DELETE FROM t")
    assert not _errors(engine)


def test_a_view_of_an_older_plan_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older, hj.Engine(tmp_path / "w") as engine:
        older.setattr(plan_view, "branches_of", _whole)
        engine.execute(f"{SCHEMA}; CREATE MATERIALIZED VIEW v AS {SUMS}")
        engine.execute("INSERT INTO t VALUES (2147483647, 1), (1, 2); INSERT INTO s VALUES (1, 5), (2, 3)")
        engine.execute("INSERT INTO u VALUES (4, 7)")
        assert _errors(engine).total() == 1
    with hj.Engine(tmp_path / "w") as engine:
        assert len(engine._state.maintained["v"].plan.branches) > 1
        engine.execute("INSERT INTO u VALUES (5, 8); DELETE FROM t WHERE x > 1; INSERT INTO t VALUES (2, 2)")
        assert not _errors(engine)
        assert sorted(row["b"] for row in engine.read("v").to_pylist()) == [7, 8]

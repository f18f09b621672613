"""Deeply nested statements: how deep does not depend on who calls, and the interpreter's limit is as it was."""

import math
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

import halfjoin as hj
from halfjoin import nesting
from halfjoin.engine.spark.task_errors import call
from halfjoin.nesting import bounded
from halfjoin.sql.expr import Call, Column, Expr
from halfjoin.sql.functions.growth import most_bytes
from halfjoin.sql.types import TEXT

# Python 3.12 counts what C calls, as the hash of a tuple in a tuple, apart: up to 1500, and nothing raises that limit.
LINKS = 440 if sys.version_info[:2] == (3, 12) else 490
DEEP = {
    "calls": "coalesce(" * 90 + "a" + ", 0)" * 90,
    "cases": "".join(f"CASE WHEN a = {i} THEN {i} ELSE " for i in range(120)) + "a" + " END" * 120,
    "chain": " + ".join(["a"] * LINKS),
}


def from_below(frames: int, work: Callable[[], Any]) -> Any:
    """What a function gives if it is called from a stack of so many frames."""
    return work() if frames == 0 else from_below(frames - 1, work)


@pytest.mark.parametrize("deep", DEEP)
def test_a_view_opens_from_any_stack(tmp_path: Path, deep: str) -> None:
    with hj.Engine(tmp_path / "w", clock="own") as engine:
        engine.execute(f"CREATE TABLE t (a integer); CREATE MATERIALIZED VIEW v AS SELECT {DEEP[deep]} AS x FROM t")
        engine.apply({"t": [{"a": 1000}]}, time=1)
    for frames in (0, 300, 800):
        with from_below(frames, lambda: hj.Engine(tmp_path / "w")) as engine:
            assert engine.read("v").to_pylist() == [{"x": 1000 * (LINKS if deep == "chain" else 1)}]


@pytest.mark.parametrize("deep", DEEP)
def test_a_statement_may_be_nested_as_deep_from_any_stack(deep: str) -> None:
    engine = hj.Engine()
    found = [from_below(frames, lambda: engine.query(f"SELECT {DEEP[deep]} AS x FROM (SELECT 1 AS a) AS t").to_pylist())
             for frames in (0, 500)]  # fmt: skip
    assert found[0] == found[1]


@pytest.mark.parametrize("deep", DEEP)
def test_a_batch_may_come_from_any_stack(deep: str) -> None:
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE t (a integer); CREATE TABLE u (b integer);"
                       f"CREATE MATERIALIZED VIEW v AS SELECT {DEEP[deep]} AS x FROM t;"
                       f"CREATE MATERIALIZED VIEW w AS SELECT t.a FROM t JOIN u ON {DEEP[deep]} = u.b")
        for number, frames in enumerate((0, 400, 850)):
            from_below(frames, lambda time=number: engine.apply({"t": [{"a": 2000}], "u": [{"b": 7}]}, time=time))
            assert engine.read("v").num_rows == number + 1
            assert from_below(frames, engine.stats).arrangements


def test_a_bound_of_a_long_chain_looks_at_its_end() -> None:
    text = Column("b", TEXT)
    chain = Call("||", (Call("||", (cast("Expr", None), text), TEXT), text), TEXT)
    assert most_bytes(chain) == math.inf


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT " + "(" * 3000 + "1" + ")" * 3000])
def test_the_limit_of_the_interpreter_is_as_it_was(sql: str) -> None:
    engine, before = hj.Engine(), sys.getrecursionlimit()

    def ask(number: int) -> bool:
        try:
            return engine.query(f"{sql} + {number} AS x").num_rows == 1
        except hj.UnsupportedSQL as problem:
            return "nested too deep" in str(problem)

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(ask, range(12)))
    assert sys.getrecursionlimit() == before


def test_a_limit_that_the_user_sets_meanwhile_stays() -> None:
    before = sys.getrecursionlimit()
    try:
        with bounded():
            sys.setrecursionlimit(before + 77)
        assert sys.getrecursionlimit() == before + 77
    finally:
        sys.setrecursionlimit(before)


def test_a_task_that_ends_in_another_thread_lowers_the_limit() -> None:
    before, task = sys.getrecursionlimit(), call(iter, iter([1, 2]))
    next(task)
    assert sys.getrecursionlimit() > before
    with ThreadPoolExecutor(1) as threads:
        threads.submit(task.close).result()
    assert sys.getrecursionlimit() == before


def test_an_interrupt_leaves_the_limit_to_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    before, engine = sys.getrecursionlimit(), hj.Engine()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(nesting._Headroom, "leave", interrupted)
        with pytest.raises(KeyboardInterrupt):
            from_below(5, lambda: engine.query("SELECT 1 AS x"))
    assert sys.getrecursionlimit() > before
    engine.query("SELECT 1 AS x")
    assert sys.getrecursionlimit() == before

"""State law: no view has answers of two functions that had the same name, one after the other."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.intake.incarnation import code_of


def reduce(by: int) -> Callable[[Any], Any]:
    def function(rows: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"n": [by * sum(rows["x"].to_pylist())]})

    return function


def pulse(by: int) -> Callable[[Any], Any]:
    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict(
            {"n": pa.array(by * batch["0"].to_numpy()), "__row": pa.array(np.arange(len(batch)))})

    return function


KINDS: dict[str, tuple[str, Callable[[hj.Engine, int, str | None], None]]] = {
    "reduce": ("SELECT r.k, r.n FROM f(TABLE t PARTITION BY k) AS r",
               lambda engine, by, version: engine.register_reduce(
                   "f", reduce(by), returns={"n": "bigint"}, version=version)),
    "table function": ("SELECT t.k, f.n FROM t, f(t.x) AS f(n)",
                       lambda engine, by, version: engine.register_table_function(
                           "f", pulse(by), returns={"n": "bigint"}, version=version)),
    "aggregate": ("SELECT k, f(x) AS n FROM t GROUP BY k",
                  lambda engine, by, version: engine.register_aggregate(
                      "f", ["bigint"], "bigint", lambda rows, counts: by * sum(rows["0"].to_pylist()),
                      version=version)),
    "lift": ("SELECT k, f(x) AS n FROM t GROUP BY k",
             lambda engine, by, version: engine.register_aggregate(
                 "f", ["bigint"], "bigint", lift=lambda x: {"s": by * np.asarray(x)}, result=lambda s: s,
                 version=version)),
    "result": ("SELECT k, f(x) AS n FROM t GROUP BY k",
               lambda engine, by, version: engine.register_aggregate(
                   "f", ["bigint"], "bigint", lift=lambda x: {"s": np.asarray(x)}, result=lambda s: by * s,
                   version=version)),
}  # fmt: skip


def answers(engine: hj.Engine) -> dict[int, int]:
    return {row["k"]: row["n"] for row in engine.read("v").to_pylist()}


def made(folder: Path, kind: str, version: str | None = None) -> str:
    query, register = KINDS[kind]
    with hj.Engine(folder, clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint, x bigint)")
        register(engine, 2, version)
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        engine.apply({"t": [{"k": 1, "x": 10}, {"k": 2, "x": 20}]}, time=1)
        if version is None:
            with pytest.raises(hj.Conflict, match="f is not the function of which v has answers: its code is another"):
                register(engine, 3, version)
    return query


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_may_register_a_function_again(kind: str) -> None:
    """The second run of a cell was a Conflict that said to choose another name, and new code needed a new engine."""
    query, register = KINDS[kind]
    with hj.Engine(clock="own") as engine:
        engine.execute("CREATE TABLE t (k bigint, x bigint)")
        engine.apply({"t": [{"k": 1, "x": 10}]}, time=1)
        for by in (2, 2, 3):
            if by == 3:
                with pytest.raises(hj.Conflict, match="its code is another"):
                    register(engine, by, None)
                engine.execute("DROP MATERIALIZED VIEW v")
            register(engine, by, None)
            assert engine.query(query)["n"].to_pylist() == [10 * by]
            engine.execute(f"CREATE MATERIALIZED VIEW IF NOT EXISTS v AS {query}")
            assert answers(engine) == {1: 10 * by}
        engine.apply({"t": [{"k": 2, "x": 5}]}, time=2)
        assert answers(engine) == {1: 30, 2: 15}


@pytest.mark.parametrize("kind", KINDS)
def test_other_code_does_not_mix_with_old_answers(kind: str, tmp_path: Path) -> None:
    query, (_, register) = made(tmp_path, kind), KINDS[kind]
    with hj.Engine(tmp_path) as engine:
        with pytest.raises(hj.Conflict, match="f is not the function of which v has answers: its code is another"):
            register(engine, 3, None)
        register(engine, 2, None)
        engine.apply({"t": [{"k": 2, "x": 5, "__diff": 1}, {"k": 2, "x": 20, "__diff": -1}]}, time=2)
        assert answers(engine) == {1: 20, 2: 10}
        engine.execute("DROP MATERIALIZED VIEW v")
    with hj.Engine(tmp_path) as engine:
        register(engine, 3, None)
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        assert answers(engine) == {1: 30, 2: 15}
    with hj.Engine(tmp_path) as engine, pytest.raises(hj.Conflict, match="its code is another"):
        register(engine, 2, None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_version_says_what_is_the_same(kind: str, tmp_path: Path) -> None:
    register, _ = KINDS[kind][1], made(tmp_path, kind, "one")
    with hj.Engine(tmp_path) as engine:
        with pytest.raises(hj.Conflict, match="its version is another"):
            register(engine, 2, "two")
        register(engine, 3, "one")  # the user says so
    with hj.Engine(tmp_path) as engine:
        with pytest.raises(hj.Conflict, match="its code is another"):
            register(engine, 2, None)
        register(engine, 3, None)
    with hj.Engine(tmp_path) as engine:
        register(engine, 4, "one")  # a version is kept


def test_code_of_another_python_is_the_same_if_the_user_says_so(tmp_path: Path) -> None:
    made(tmp_path, "reduce")
    with hj.Engine(tmp_path) as engine:
        kept = engine._state.catalog.incarnations
        (name,) = kept
        kept[name] = (kept[name][0], "cpython-30 " + kept[name][1].partition(" ")[2])
        engine.execute("CREATE TABLE other (x bigint)")
    with hj.Engine(tmp_path) as engine:
        with pytest.raises(hj.Conflict, match="another version of Python compiled"):
            KINDS["reduce"][1](engine, 2, None)
        KINDS["reduce"][1](engine, 2, "1")
    with hj.Engine(tmp_path) as engine:
        KINDS["reduce"][1](engine, 2, None)


def test_a_reader_does_not_mix_either(tmp_path: Path) -> None:
    made(tmp_path, "reduce")
    with hj.Engine(tmp_path, read_only=True) as engine:
        with pytest.raises(hj.Conflict, match="its code is another"):
            KINDS["reduce"][1](engine, 3, None)
        KINDS["reduce"][1](engine, 2, None)


def test_code_from_before_is_taken_as_it_comes(tmp_path: Path) -> None:
    """An older version of halfjoin has not kept it."""
    made(tmp_path, "reduce")
    with hj.Engine(tmp_path) as engine:
        engine._state.catalog.incarnations.clear()
        engine.execute("CREATE TABLE other (x bigint)")
    for by, taken in ((3, True), (3, True), (2, False)):
        with hj.Engine(tmp_path) as engine:
            if taken:
                KINDS["reduce"][1](engine, by, None)
            else:
                with pytest.raises(hj.Conflict, match="its code is another"):
                    KINDS["reduce"][1](engine, by, None)


def compiled(text: str) -> Any:
    module = types.ModuleType("somewhere")
    exec(compile(text, "somewhere", "exec"), module.__dict__)
    return module.f


BASE = """
def helper(x):
    return x + 1
class Rule:
    least = 3
    def holds(self, x):
        return x > self.least
TABLE = {"a": 1}
def f(rows, by=2):
    def inner(x):
        return helper(x) * by + TABLE["a"]
    return [inner(x) for x in rows if Rule().holds(x)]
"""
OTHER = ["x + 2", "least = 4", "x >= self.least", '{"a": 2}', "by=3", "helper(x) + by", "not Rule()"]
INSTEAD_OF = ["x + 1", "least = 3", "x > self.least", '{"a": 1}', "by=2", "helper(x) * by", "Rule()"]


@pytest.mark.parametrize(("old", "new"), [*zip(INSTEAD_OF, OTHER, strict=True)])
def test_what_code_reads_is_part_of_it(old: str, new: str) -> None:
    assert BASE.count(old) >= 1
    other = BASE.replace(f" {old}" if old == "Rule()" else old, f" {new}" if old == "Rule()" else new)
    assert other != BASE and code_of(compiled(BASE)) != code_of(compiled(other))


def test_looks_are_no_part_of_code() -> None:
    one = BASE.replace("def f(rows, by=2):", 'def f(rows, by=2):\n    "Something."')
    other = BASE.replace("def f(rows, by=2):", 'def f(rows,   by = 2):  # all\n    "What it does."')
    assert one != BASE != other and code_of(compiled(one)) == code_of(compiled("\n\n" + other))
    assert code_of(functools.partial(max, 3)) != code_of(functools.partial(max, 4))
    assert code_of(functools.lru_cache(compiled(BASE))) == code_of(compiled(BASE))
    assert code_of(compiled(BASE)) == code_of(compiled(BASE))


def test_the_line_of_a_class_in_a_function_is_no_part_of_code() -> None:
    """Since Python 3.13 the body of a class stores its line: a comment above it made another function of it."""
    inside = """
def f(rows):
    # why
    class Rule:
        least, line = 3, 4
        names = ("a", "b")
        if least:
            most = 5
        def holds(self, x):
            return self.least < x < self.most
    return [x for x in rows if Rule().holds(x)]
"""
    digest = code_of(compiled(inside))
    assert {code_of(compiled(inside.replace("# why", "# why\n" * lines))) for lines in (1, 2, 3, 300)} == {digest}
    others = {"3, 4": "4, 3", '"b"': '"c"', "if least": "if not least", "= 5": "= 6", "< x <": "< x <=",
              "names": "named", "        def": "            other = 7\n        def"}  # fmt: skip
    for old, new in others.items():
        assert inside.count(old) == 1 and code_of(compiled(inside.replace(old, new))) != digest
    within, behind = (compiled(inside.replace("= 5", f"= 5\n{spaces}other = 7")) for spaces in (" " * 12, " " * 8))
    assert code_of(within) != code_of(behind)

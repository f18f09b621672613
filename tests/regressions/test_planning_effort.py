"""The effort of planning grows with the length of the statement. The tests count calls instead of measuring time."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import halfjoin as hj
from tests.support.counting import calls


def _effort(shape: Callable[[int], str], terms: int) -> int:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (a bigint, b text)")
    return calls(lambda: engine.explain(shape(terms)))


_LISTS = {
    "in": lambda n: f"SELECT a FROM t WHERE a IN ({', '.join(map(str, range(n)))})",
    "in of texts": lambda n: f"SELECT a FROM t WHERE b IN ({', '.join(map(repr, map(str, range(n))))})",
    "and": lambda n: f"SELECT a FROM t WHERE {' AND '.join(f'a <> {i}' for i in range(n))}",
    "or": lambda n: f"SELECT a FROM t WHERE {' OR '.join(f'a = {i}' for i in range(n))}",
    "union": lambda n: " UNION ALL ".join(f"SELECT a + {i} AS a FROM t" for i in range(n)),
    "values": lambda n: f"SELECT x FROM (VALUES {', '.join(f'({i})' for i in range(n))}) AS v(x) JOIN t ON v.x = t.a",
}


@pytest.mark.parametrize("shape", _LISTS.values(), ids=_LISTS)
def test_planning_a_list_follows_its_length(shape: Callable[[int], str]) -> None:
    _effort(shape, 8)  # what is done once in a process
    short, long = _effort(shape, 150), _effort(shape, 600)
    assert long < 6 * short


_JOINS = {
    "chain": lambda i: f"t{i}.a = t{i - 1}.b",
    "star": lambda i: f"t{i}.a = t0.b",
    "one class": lambda i: f"t{i}.a = t0.a",
}


@pytest.mark.parametrize("condition", _JOINS.values(), ids=_JOINS)
def test_planning_a_join_follows_its_paths(condition: Callable[[int], str]) -> None:
    def effort(inputs: int) -> int:
        engine = hj.Engine()
        for number in range(inputs):
            engine.execute(f"CREATE TABLE t{number} (a bigint, b bigint)")
        joins = " ".join(f"JOIN t{i} ON {condition(i)}" for i in range(1, inputs))
        return calls(lambda: engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT t0.a FROM t0 {joins}"))

    effort(3)
    assert effort(32) < 6 * effort(16)  # there are four times as many stages


def test_not_in_of_two_columns_asks_each_condition_once() -> None:
    """Its nine alternatives ask three conditions of a left row. To split at each alternative made 2^9 joins."""
    engine = hj.Engine()
    engine.execute("CREATE TABLE v (a int); CREATE TABLE w (i int, k int)")
    sql = """CREATE MATERIALIZED VIEW m AS SELECT w.i FROM v LEFT JOIN w
        ON (CASE WHEN v.a > 0 THEN w.k ELSE w.i END, w.i * -1)
            NOT IN (SELECT u.k, u.i * 2 FROM w AS u WHERE u.i = w.i)"""
    assert calls(lambda: engine.execute(sql)) < 600_000


def test_a_union_of_a_thousand_queries_is_a_view() -> None:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (a bigint)")
    engine.execute("CREATE MATERIALIZED VIEW v AS " + _LISTS["union"](1000))
    engine.apply({"t": pa.table({"a": [1, 2]})}, time=1)
    assert sorted(engine.read("v")["a"].to_pylist()) == sorted(a + i for a in (1, 2) for i in range(1000))

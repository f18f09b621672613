"""A query for the first rows of groups that leaves most rows out before it puts them in order has the answer of one
that orders all of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.arrange import query_run
from halfjoin.engine.reduce import at_once, flow, leaders
from halfjoin.engine.statements.remembered import Remembered
from tests.oracle.rows import bag
from tests.support.kernels import both_ways  # noqa: F401

QUERIES = [
    "SELECT * FROM (SELECT *, {f}() OVER (PARTITION BY {k} ORDER BY {o}) AS n FROM t) q WHERE n <= {limit}",
    "SELECT * FROM (SELECT *, {f}() OVER (PARTITION BY {k} ORDER BY {o}) AS n FROM t WHERE x > 3) q WHERE n = 1",
    "SELECT DISTINCT ON ({k}) * FROM t ORDER BY {k}, {o}",
    "SELECT o.k, z.id, z.x FROM (SELECT DISTINCT k FROM t) o, LATERAL (SELECT id, x FROM t WHERE t.k = o.k ORDER BY "
    "{o} LIMIT {limit}) z",
    "SELECT * FROM t ORDER BY {o} LIMIT {limit}",
]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many rows were left out, each time that some were."""
    left_out = list[int]()
    for module, name in ((leaders, "FROM"), (at_once, "FROM"), (query_run, "_LARGE")):
        monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(Remembered, "find", lambda *_: None)  # each way makes the query anew
    whole = leaders.leaders

    def noted(updates: Any, *args: Any) -> Any:
        few = whole(updates, *args)
        left_out.extend([] if few is None else [len(updates) - len(few)])
        return few

    monkeypatch.setattr(leaders, "leaders", noted)
    monkeypatch.setattr(flow, "leaders", noted)
    yield left_out


def query(pick: random.Random) -> str:
    order = ", ".join(pick.choice(("x", "x DESC", "y", "y DESC NULLS LAST", "s", "f DESC", "x % 3", "id DESC"))
                      for _ in range(pick.randrange(1, 3)))  # fmt: skip
    text = pick.choice(QUERIES)
    order += ", id" if "{f}" in text and pick.random() < 0.5 else ""
    return text.format(f=pick.choice(("row_number", "rank")), k=pick.choice(("k", "s", "k, f")), o=order,
                       limit=pick.choice((1, 1, 2, 5)))  # fmt: skip


def plainly(engine: hj.Engine, sql: str) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow, "leaders", lambda *_: None)
        patch.setattr(flow.ReduceFlow, "_leading", lambda *_: None)
        return bag(engine.query(sql))


@pytest.mark.parametrize("seed", range(6))
def test_the_first_rows_of_groups_are_those_of_all_rows(seed: int, found: list[int]) -> None:
    pick = random.Random(seed)
    null = lambda value: None if pick.random() < 0.1 else value  # noqa: E731

    def row(number: int) -> dict[str, Any]:
        return {"id": number, "k": null(pick.randrange(4)), "x": null(pick.randrange(9)), "y": null(pick.randrange(99)),
                "s": null(pick.choice("abc")), "f": null(pick.choice((-0.0, 0.0, 1.5, float("nan"))))}  # fmt: skip

    with hj.Engine() as engine:
        engine.execute("CREATE TABLE t (id bigint PRIMARY KEY, k integer, x bigint, y bigint, s text, "
                       "f double precision)")  # fmt: skip
        engine.apply({"t": [row(number) for number in range(200)]})
        for _ in range(4):
            for _ in range(15):
                sql = query(pick)
                assert str(sorted(map(str, bag(engine.query(sql)).items()))) == str(
                    sorted(map(str, plainly(engine, sql).items()))), sql
            engine.apply({"t": hj.upserts([row(pick.randrange(220)) for _ in range(1)])})
            engine.apply({"t": hj.upserts([row(number) for number in pick.sample(range(220), 12)])})
    assert sum(found) > 1000

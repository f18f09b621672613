"""Lookups that meet keys with a history make as many rows as there are changes, not their product."""

from collections.abc import Iterator
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.join import path
from tests.oracle.rows import bag

CHANGES = 30
PARTS = ("sum(x) AS s", "count(*) AS n", "max(x) AS m", "min(x) AS l", "avg(x) AS a")
BY_KEY = " JOIN ".join(f"(SELECT k, {part} FROM t GROUP BY k HAVING sum(x) > -{place}) AS q{place} USING (k)"
                       if place else f"(SELECT k, {part} FROM t GROUP BY k) AS q0"
                       for place, part in enumerate(PARTS))  # fmt: skip
QUERIES = {
    "joined": f"SELECT * FROM {BY_KEY}",
    "scalar": "SELECT " + ", ".join(f"(SELECT {part} FROM t WHERE x > -{place}) AS v{place}"
                                    for place, part in enumerate(PARTS)),
}  # fmt: skip


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that pass the stages of delta paths."""
    rows, onward = list[int](), path.CompiledPath._onward

    def counted(path: Any, stream: Any, *more: Any) -> Iterator[None]:
        rows.append(len(stream))
        yield from onward(path, stream, *more)

    monkeypatch.setattr(path.CompiledPath, "_onward", counted)
    return rows


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("first", ["the view", "the rows", "the rows at many times"])
def test_rows_of_history_do_not_multiply(name: str, first: str, passed: list[int]) -> None:
    engine = hj.Engine(clock="own", retain=1_000)
    engine.execute("CREATE TABLE t (k integer, x integer)")
    if first == "the view":
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {QUERIES[name]}")
    rows = [{"k": 1, "x": place, "__time": place} for place in range(1, CHANGES)]
    if first == "the rows at many times":
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {QUERIES[name]}")
        engine.apply({"t": rows}, time=CHANGES)
    else:
        for row in rows:
            engine.apply({"t": [row]}, time=row["__time"])
    if first == "the rows":
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {QUERIES[name]}")
    assert sum(passed) < 80 * CHANGES**2  # each lookup multiplies by one history; all of them, by its fourth power
    for time in (1, CHANGES // 2, CHANGES - 1):
        assert bag(engine.read("v", as_of=time)) == bag(engine.query(QUERIES[name], as_of=time))

"""Grouping sets over a join: the join is one node for all sets, so a change runs it once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import halfjoin
from halfjoin.planner.plan import Join, Reduce

SETS = {
    "GROUP BY ROLLUP (g, h)": 3,
    "GROUP BY CUBE (g, h, f.j)": 8,
    "GROUP BY GROUPING SETS ((g), (h), (g, f.k + 1))": 3,
}
FROM = {
    "tables": "f JOIN d ON f.k = d.k",
    "a subquery": "f JOIN (SELECT k AS key, g, h, g || h AS both FROM d WHERE g <> 'x') AS d ON f.k = d.key",
    "an outer join": "f LEFT JOIN d ON f.k = d.k AND d.g <> 'x'",
}
CALLS = "sum(x) AS s, count(*) FILTER (WHERE x > 1) AS n, avg(x + j) AS a"


@pytest.fixture
def engine() -> Iterator[halfjoin.Engine]:
    with halfjoin.Engine() as engine:
        engine.execute("CREATE TABLE f (k integer, j integer, x integer)")
        engine.execute("CREATE TABLE d (k integer PRIMARY KEY, g text, h text)")
        engine.execute("INSERT INTO d VALUES (1, 'a', 'b'), (2, 'a', NULL), (3, 'x', 'b')")
        engine.execute("INSERT INTO f VALUES (1, 1, 1), (1, NULL, 2), (2, 1, 5), (3, 1, NULL), (4, 1, 2), (NULL, 1, 1)")
        yield engine


def joins_below(engine: halfjoin.Engine, sql: str) -> tuple[int, int]:
    """How many joins and reduces are below a view of the query."""
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    below = engine._state.maintained["v"].plan.below
    return sum(isinstance(node, Join) for node in below), sum(isinstance(node, Reduce) for node in below)


@pytest.mark.parametrize("source", FROM)
@pytest.mark.parametrize("sets", SETS)
def test_sets_of_groups_have_one_join(engine: halfjoin.Engine, sets: str, source: str) -> None:
    sql = f"SELECT {CALLS} FROM {FROM[source]} {sets}"
    assert joins_below(engine, sql) == (1, SETS[sets])


def test_rows_that_are_kept_are_kept_once(engine: halfjoin.Engine) -> None:
    sql = f"SELECT g, h, max(x) AS most, {CALLS} FROM {FROM['tables']} GROUP BY ROLLUP (g, h)"
    assert joins_below(engine, sql) == (1, 3)


@pytest.mark.parametrize("calls", [CALLS, "max(x) AS most", "count(DISTINCT x) AS d, sum(x) AS s"])
def test_each_set_has_the_groups_of_a_query_of_its_own(engine: halfjoin.Engine, calls: str) -> None:
    engine.execute(f"CREATE MATERIALIZED VIEW v AS SELECT g, h, {calls} FROM {FROM['tables']} GROUP BY ROLLUP (g, h)")
    for change in ("UPDATE d SET g = 'z' WHERE k = 1", "DELETE FROM f WHERE x = 5", "INSERT INTO f VALUES (3, 2, 7)"):
        engine.execute(change)
        each = [f"SELECT {keys}, {calls} FROM {FROM['tables']} {by}" for keys, by in (
            ("g, h", "GROUP BY g, h"), ("g, NULL AS h", "GROUP BY g"), ("NULL AS g, NULL AS h", ""))]  # fmt: skip
        wanted = [row for sql in each for row in zip(*engine.query(sql).to_pydict().values(), strict=True)]
        assert sorted(zip(*engine.read("v").to_pydict().values(), strict=True), key=str) == sorted(wanted, key=str)

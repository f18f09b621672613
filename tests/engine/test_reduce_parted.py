"""DISTINCT aggregates, mode and all other functions of groups that follow the change read a few rows of a large group.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from tests.support.read_rows import rows_read

LENGTH, MOST = 10_000, 600
FOLLOWING = {
    "a distinct count": "SELECT g, count(DISTINCT x) AS a FROM t GROUP BY g",
    "several": "SELECT g, count(DISTINCT x) AS a, avg(DISTINCT f) AS b, sum(DISTINCT g) AS c, count(*) AS d FROM t "
    "GROUP BY g",
    "beside an order": "SELECT count(DISTINCT x) AS a, sum(f) AS b, min(x) AS c, count(DISTINCT g) AS d FROM t",
    "a condition": "SELECT g, count(DISTINCT x) FILTER (WHERE f > 9) AS a, sum(x) FILTER (WHERE f > 9) AS b FROM t "
    "GROUP BY g",
    "sets": "SELECT g, x % 3 AS y, count(DISTINCT x) AS a, max(x) AS b FROM t "
    "GROUP BY GROUPING SETS ((g), (g, x % 3), ())",
    "over a join": "SELECT t.g, count(DISTINCT t.x) AS a, sum(u.x) AS b FROM t JOIN t AS u ON t.x = u.x GROUP BY t.g",
    "mode": "SELECT g, mode() WITHIN GROUP (ORDER BY x) AS a, count(DISTINCT x) AS b FROM t GROUP BY g",
    "modes": "SELECT mode() WITHIN GROUP (ORDER BY f DESC) AS a, mode() WITHIN GROUP (ORDER BY g) AS b, "
    "mode() WITHIN GROUP (ORDER BY x) FILTER (WHERE f > 9) AS c FROM t",
    "any value": "SELECT g, any_value(x) AS a, any_value(f ORDER BY x DESC) AS b FROM t GROUP BY g",
    "bits": "SELECT g, bit_and(x) AS a, bit_xor(x) AS b, bool_or(f > 0) AS c, every(f > 0) AS d FROM t GROUP BY g",
    "an offset": "SELECT * FROM t ORDER BY x LIMIT 10 OFFSET 10",
    "ties": "SELECT * FROM t ORDER BY x / 2 FETCH FIRST 10 ROWS WITH TIES",
    "the first of each": "SELECT DISTINCT ON (g) * FROM t ORDER BY g, f DESC",
    "a filtered maximum": "SELECT g, max(x) FILTER (WHERE f > 9) AS a FROM t GROUP BY g",
}


def _many(numbers: Any, diff: int, time: int) -> pa.Table:
    numbers = list(numbers)
    return pa.table({
        "g": pa.array([0] * len(numbers), pa.int64()), "x": pa.array(numbers, pa.int64()),
        "f": pa.array([x / 2 for x in numbers]), "__time": pa.array([time] * len(numbers), pa.int64()),
        "__diff": pa.array([diff] * len(numbers), pa.int64()),
    })  # fmt: skip


@pytest.mark.parametrize("view", FOLLOWING)
def test_a_change_of_a_large_group_reads_a_few_rows(monkeypatch: pytest.MonkeyPatch, view: str) -> None:
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE t (g bigint, x bigint, f double precision)")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {FOLLOWING[view]}")
    numbers = list(range(LENGTH))
    Random(1).shuffle(numbers)
    engine.apply({"t": _many(numbers, 1, 1)})
    read = rows_read(monkeypatch)
    middle = [(number, diff) for number in range(5_000, 5_005) for diff in (1, -1)]
    ends = [(number, -1) for number in (0, 1, LENGTH - 1, 2, LENGTH - 2, 5_000, 4_999)]
    for time, (number, diff) in enumerate([*middle, (-1, 1), (-1, -1), *ends], 2):
        read.clear()
        engine.apply({"t": _many([number], diff, time)})
        assert 0 < sum(read) < MOST, (number, diff)
    assert sorted(map(str, engine.read("v").to_pylist())) == sorted(map(str, engine.query(FOLLOWING[view]).to_pylist()))


COUNTS = "(SELECT g, count(*) AS n, sum(x) AS s FROM t GROUP BY g) AS below"


@pytest.mark.parametrize(("sql", "answers"), [
    (f"SELECT count(DISTINCT n) AS a FROM {COUNTS}", [[(2,)], [(1,)], [(2,)]]),
    (f"SELECT n, count(DISTINCT n) AS a FROM {COUNTS} GROUP BY n", [[(1, 1), (2, 1)], [(2, 1)], [(1, 1), (2, 1)]]),
    (f"SELECT n, sum(DISTINCT n) AS a, count(*) AS b, count(DISTINCT s) AS c FROM {COUNTS} GROUP BY n",
     [[(1, 1, 2, 2), (2, 2, 1, 1)], [(2, 2, 3, 3)], [(1, 1, 1, 1), (2, 2, 2, 2)]]),
    (f"SELECT mode() WITHIN GROUP (ORDER BY n) AS a FROM {COUNTS}", [[(1,)], [(2,)], [(2,)]]),
    (f"SELECT count(DISTINCT m) AS a FROM (SELECT n, count(*) AS m FROM {COUNTS} GROUP BY n) AS above",
     [[(2,)], [(1,)], [(2,)]]),
])  # fmt: skip
def test_values_are_the_counts_of_groups_below(sql: str, answers: list[list[tuple[int, ...]]]) -> None:
    """The columns of the reduce below are keys of the first part, and it counts its own rows."""
    engine = hj.Engine()
    engine.execute(f"CREATE TABLE t (g integer, x bigint); CREATE MATERIALIZED VIEW v AS {sql}")
    for statement, answer in zip((
        "INSERT INTO t VALUES (1, 1), (2, 2), (2, 3), (3, 9)", "INSERT INTO t VALUES (1, 1), (3, 4)",
        "DELETE FROM t WHERE x = 9",
    ), answers, strict=True):  # fmt: skip
        engine.execute(statement)
        for found in (engine.read("v"), engine.query(sql)):
            assert sorted(tuple(map(int, row.values())) for row in found.to_pylist()) == answer

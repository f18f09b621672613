"""Joins that ask whether keys are present, under Spark: fills and bulk changes are those of the local runner."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.spark import asking, flow, probing, runner
from tests.oracle.rows import tuples, updates
from tests.support.seeds import some_views

DDL = ("CREATE TABLE t (k int, x double precision, v int); CREATE TABLE u (k bigint, x double precision, w int);"
       " CREATE TABLE s (k int, g text)")
LOADED = {  # every task loads the rows to look up
    "partners": "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.w > 0)",
    "not_ins": "SELECT k, v FROM t WHERE k NOT IN (SELECT k FROM s)",
}
SHUFFLED = {  # a shuffle brings them together with the rows that look them up
    "failing": "SELECT t.v, 10 / u.w AS q FROM t LEFT JOIN u ON t.k = u.k AND 6 / (t.v + 9) > 0",
    "fulls": "SELECT t.v, u.w FROM t FULL JOIN u ON t.x = u.x",
    "none": "SELECT k, v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.x = t.x)",
    "chain": "SELECT t.v, u.w, s.g FROM t LEFT JOIN u ON t.k IS NOT DISTINCT FROM u.k LEFT JOIN s ON s.k = u.w",
    "sums": "SELECT u.k, count(t.v) AS n, sum(u.w) AS w FROM t RIGHT JOIN u ON t.k = u.k AND t.x = u.x GROUP BY u.k",
}
FRAMES = {
    "t": "k int, x double, v int, __time bigint, __diff bigint",
    "u": "k bigint, x double, w int, __time bigint, __diff bigint",
    "s": "k int, g string, __time bigint, __diff bigint",
}
VALUES: dict[str, dict[str, tuple[Any, ...]]] = {
    "t": {"k": (None, 1, 2, 3, 4), "x": (None, 0.0, -0.0, float("nan")), "v": (None, 1, 2, 3, 0)},
    "u": {"k": (None, 1, 2, 3), "x": (None, 0.0, -0.0, float("nan")), "w": (None, 0, 1, 2)},
    "s": {"k": (None, 1, 2, 5), "g": (None, "a", "b")},
}
COUNTS = {"t": 8, "u": 4, "s": 2}


def _batches(rng: random.Random) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """Batches that come by twos. The first stays open. The second closes three times, but not all rows of the first.
    Keys come and go: in the second most rows of each table go."""
    there: dict[str, list[dict[str, Any]]] = {name: [] for name in VALUES}
    for low in (0, 3):
        for times in ((low, low + 1, low + 4), (low, low + 1, low + 2)):
            batch = {}
            for name, values in VALUES.items():
                rows = []
                for _ in range(COUNTS[name]):
                    row = {column: rng.choice(some) for column, some in values.items()}
                    rows.append({**row, "__time": rng.choice(times), "__diff": rng.choice((1, 1, 2))})
                if max(times) == low + 2:
                    for row in [one for one in there[name] if one["__time"] <= low and rng.random() < 0.7]:
                        there[name].remove(row)
                        rows.append({**row, "__time": rng.choice(times), "__diff": -row["__diff"]})
                there[name] += [row for row in rows if row["__diff"] > 0]
                batch[name] = rows
            yield batch


def _seen(engine: hj.Engine, name: str, time: int) -> Any:
    with suppress(hj.HalfjoinError):
        return Counter(map(repr, tuples(engine.read(name, as_of=time))))
    with pytest.raises(hj.DataError) as problem:
        engine.read(name, as_of=time)
    return _failure(str(problem.value))


def _failure(message: str | None) -> list[str]:
    """The time of an error and how many others there are. Which of several errors is named is not settled."""
    return re.findall(r"as of \d+|and \d+ more", message or "")


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often jobs have looked keys up, by the way in which they did."""
    found = Counter[str]()

    def counted(name: str) -> None:
        real = getattr(flow, name)

        def call(*args: Any) -> Any:
            found[name] += 1
            return real(*args)

        monkeypatch.setattr(flow, name, call)

    for name in ("by_loading", "by_key", "appearing"):
        counted(name)
    monkeypatch.setattr(runner, "FEW", 0)
    return found


def test_loaded_lookups_give_the_local_diffs(spark: Any, tmp_path: Path, jobs: Counter[str]) -> None:
    _agree(spark, tmp_path, LOADED)
    assert jobs["by_loading"] and jobs["appearing"] and not jobs["by_key"]


def test_shuffled_lookups_give_the_local_diffs(
    spark: Any, tmp_path: Path, jobs: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "GROUP_ROWS", 30)  # several tasks
    monkeypatch.setattr(probing, "STREAM_ROWS", 0)
    monkeypatch.setattr(asking, "STREAM_ROWS", 0)
    _agree(spark, tmp_path, some_views(SHUFFLED))
    assert jobs["by_key"] and jobs["appearing"] and not jobs["by_loading"]


def _agree(spark: Any, folder: Path, views: dict[str, str]) -> None:
    """Views that are made of closed and open rows; then a bulk change, which closes times."""
    engines = [hj.Engine(runner="local", clock="own", retain=100),
               hj.Engine(folder / "w", spark=spark, runner="spark", clock="own", retain=100)]  # fmt: skip
    for engine in engines:
        engine.execute(DDL)
    for number, rows in enumerate(_batches(random.Random(5))):
        found = []
        for engine in engines:
            if number == 3:
                for name, sql in views.items():
                    engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
            given = {table: spark.createDataFrame(found, FRAMES[table]) for table, found in rows.items()}
            closed = engine.apply(given if engine is engines[1] else rows, close=number % 2 == 1)
            found.append({name: (Counter((repr(row), time, diff) for row, time, diff in updates(table)),
                                 _failure(closed.errors.get(name)))
                          for name, table in closed.diffs.items()})  # fmt: skip
        for name in found[0]:
            assert found[0][name] == found[1][name], name
    for time in range(6):
        for name in views:
            local, tasks = (_seen(engine, name, time) for engine in engines)
            assert local == tasks, f"{name} at {time}"
    for engine in engines:
        engine.close()


def test_outer_joins_are_dataframes(spark: Any, tmp_path: Path) -> None:
    with hj.Engine(tmp_path / "w", spark=spark, runner="spark", clock="own") as engine:
        engine.execute("CREATE TABLE t (k int); CREATE TABLE u (k int)")
        engine.apply({"t": [{"k": 1}, {"k": 2}, {"k": None}], "u": [{"k": 1}, {"k": 2}]}, time=1)
        engine.apply({"u": hj.deletes([{"k": 2}])}, time=2)
        engine.execute("CREATE VIEW l AS SELECT t.k, u.k AS other FROM t LEFT JOIN u ON t.k = u.k")
        rows = [tuple(row) for row in engine.dataframe("l").collect()]
        assert Counter(rows) == Counter([(1, 1), (2, None), (None, None)])

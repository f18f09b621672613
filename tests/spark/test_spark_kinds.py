"""Each kind of reduce under Spark: first fills and bulk changes are those of the local runner, errors as well."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import halfjoin as hj
from halfjoin.engine.spark import reducing, runner
from halfjoin.engine.spark.files import StateFiles
from halfjoin.engine.spark.reducing import Reducing
from halfjoin.engine.storage import parquet
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates.updates import Updates
from tests.oracle.rows import tuples, updates
from tests.support.seeds import some_views

DDL = ("CREATE TABLE t (k int, g text, v int, w bigint, x double precision, d numeric(30, 4)); CREATE TABLE u (k int)")
VIEWS = some_views({
    "sums": "SELECT k, g, count(*) AS n, sum(v) AS s, avg(w) AS a, sum(d) AS d, bool_or(v > 1) AS o,"
            " bit_xor(v) AS b FROM t GROUP BY k, g",
    "floats": "SELECT x, sum(x) AS s, stddev(x) AS e, corr(x, v) AS c, count(*) FILTER (WHERE v > 0) AS n"
              " FROM t GROUP BY x",
    "one": "SELECT sum(x) AS s, count(*) AS n, sum(w) AS w FROM t",
    "joined": "SELECT t.k, sum(t.v * u.k) AS s FROM t JOIN u ON t.k = u.k GROUP BY t.k",
    "failing": "SELECT k, sum(10 / v) AS s FROM t GROUP BY k",
    "waiting": "SELECT g, sum(w) AS s, count(v) AS n FROM t WHERE mz_now() >= v * 4 GROUP BY g",
    "rollup": "SELECT k, g, sum(v) AS s FROM t GROUP BY ROLLUP (k, g)",
    "distinct_sum": "SELECT k, count(DISTINCT v) AS n, sum(DISTINCT w) AS s, sum(v) AS t FROM t GROUP BY k",
    "extremes": "SELECT g, min(v) AS a, max(x) AS b, sum(v) AS s FROM t GROUP BY g",
    "modes": "SELECT g, avg(DISTINCT x) AS a, mode() WITHIN GROUP (ORDER BY v DESC) AS m, any_value(w ORDER BY v, x)"
             " AS w FROM t GROUP BY g",
    "lists": "SELECT k, array_agg(v ORDER BY v) AS a, string_agg(g, ',' ORDER BY g) AS s, mode() WITHIN GROUP"
             " (ORDER BY w) AS m FROM t GROUP BY k",
    "one_list": "SELECT array_agg(v ORDER BY v, w) AS a, max(d) AS d FROM t WHERE g = 'a'",
    "different": "SELECT DISTINCT g, x FROM t",
    "sets": "SELECT k FROM t INTERSECT ALL SELECT k FROM u",
    "ranks": "SELECT k, v, w, rank() OVER (PARTITION BY k ORDER BY v) AS r, sum(v) OVER (PARTITION BY k) AS s FROM t",
    "numbers": "SELECT w, row_number() OVER (ORDER BY w, v, x) AS r FROM t WHERE k = 1",
    "top": "SELECT g, v, w FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v DESC NULLS LAST) AS r FROM t)"
           " AS q WHERE r <= 2",
    "first": "SELECT w, v FROM t ORDER BY w DESC NULLS LAST, v LIMIT 3 OFFSET 1",
    "nested": "SELECT s, count(*) AS n FROM (SELECT k, sum(v) AS s FROM t GROUP BY k) AS q GROUP BY s",
})  # fmt: skip
FLOATS = (None, 0.0, -0.0, 1.5, float("nan"), float("inf"), float("-inf"), 1e300, -1e300, 1e-320)


FRAMES = {
    "t": "k int, g string, v int, w bigint, x double, d decimal(30, 4), __time bigint, __diff bigint",
    "u": "k int, __time bigint, __diff bigint",
}
VALUES: dict[str, tuple[Any, ...]] = {
    "k": (None, 1, 2, 3), "g": (None, "a", "b"), "v": (None, 0, 1, 2, -3), "w": (None, 2**62, -(2**62), 7),
    "x": FLOATS, "d": (None, Decimal("1e20"), Decimal(3)),
}  # fmt: skip


def _batches(rng: random.Random) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """Batches that come by twos. The first stays open. The second closes three times, but not all rows of the first.
    Some rows come twice. In the second many go, and some do that were not there."""
    there: list[dict[str, Any]] = []
    for low in (0, 3, 6):
        for times in ((low, low + 1, low + 4), (low, low + 1, low + 2)):
            rows = []
            for _ in range(15):
                row = {name: rng.choice(values) for name, values in VALUES.items()}
                rows.append({**row, "__time": rng.choice(times), "__diff": rng.choice((1, 1, 2))})
            if max(times) == low + 2:
                for row in [one for one in there if one["__time"] <= low and rng.random() < 0.6]:
                    there.remove(row)
                    rows.append({**row, "__time": rng.choice(times), "__diff": -1})
                rows.append({**rows[0], "w": 11, "__time": low + 2, "__diff": -1 if low in (0, 3) else 1})
            there += [row for row in rows if row["__diff"] > 0]
            yield {"t": rows, "u": [{"k": rng.choice((None, 1, 2)), "__time": low + 2, "__diff": 1}]}


def _seen(engine: hj.Engine, name: str, time: int) -> Any:
    with suppress(hj.HalfjoinError):
        return Counter(map(repr, tuples(engine.read(name, as_of=time))))
    with pytest.raises(hj.DataError) as problem:
        engine.read(name, as_of=time)
    return str(problem.value)


def test_each_kind_gives_the_local_diffs(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "FEW", 0)
    monkeypatch.setattr(parquet, "FILE_ROWS", 10)  # several tasks read a batch
    monkeypatch.setattr(reducing, "GROUP_ROWS", 20)
    engines = [hj.Engine(runner="local", clock="own", retain=100),
               hj.Engine(tmp_path / "w", spark=spark, runner="spark", clock="own", retain=100)]  # fmt: skip
    for engine in engines:
        engine.execute(DDL)
    for number, rows in enumerate(_batches(random.Random(5))):
        found = []
        for engine in engines:
            if number == 4:
                for name, sql in VIEWS.items():
                    engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
            given = {table: spark.createDataFrame(found, FRAMES[table]) for table, found in rows.items()}
            closed = engine.apply(given if engine is engines[1] else rows, close=number % 2 == 1)
            found.append({name: (Counter((repr(row), time, diff) for row, time, diff in updates(table)),
                                 closed.errors.get(name)) for name, table in closed.diffs.items()})  # fmt: skip
        for name in found[0]:
            assert found[0][name] == found[1][name], name
    for time in range(9):
        for name in VIEWS:
            local, tasks = (_seen(engine, name, time) for engine in engines)
            assert local == tasks, f"{name} at {time}"
    for engine in engines:
        engine.close()


def test_tasks_add_up_before_the_shuffle(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shuffled, loaded, divided, load = list[int](), list[int](), Reducing._divided, StateFiles.loaded

    def _divided(self: Reducing, frame: Any, rows: int) -> Any:
        shuffled.append(frame.count())
        return divided(self, frame, rows)

    def _loaded(self: StateFiles, run: StoredRun) -> Updates:
        loaded.append(len(run))
        return load(self, run)

    monkeypatch.setattr(runner, "FEW", 100)
    monkeypatch.setattr(Reducing, "_divided", _divided)
    monkeypatch.setattr(StateFiles, "loaded", _loaded)
    rows = spark.range(0, 4000, 1, 2).selectExpr("CAST(id % 4 AS int) AS k", "CAST(id AS int) AS v")
    with hj.Engine(tmp_path / "w", spark=spark, runner="spark", clock="own") as engine:
        engine.execute("CREATE TABLE t (k int, v int); CREATE TABLE u (k int, w int)")
        engine.apply({"t": rows, "u": [{"k": k, "w": 2} for k in range(4)]}, time=1)
        engine.execute("CREATE MATERIALIZED VIEW j AS SELECT k, sum(v * w) AS s FROM t JOIN u USING (k) GROUP BY k")
        engine.execute("CREATE MATERIALIZED VIEW one AS SELECT sum(v) AS s FROM t")
        filled = len(shuffled)
        engine.apply({"t": rows}, time=2)
        assert filled == 2 and len(shuffled) == 4  # both views, then both again
        assert max(shuffled) <= 4 * 8 and max(loaded) <= 100  # at most 8 tasks of 4 groups; never the 4,000 rows
        assert engine.read("one").to_pylist() == [{"s": sum(range(4000)) * 2}]
        found = {row["k"]: row["s"] for row in engine.read("j").to_pylist()}
        assert found == {k: 4 * sum(range(k, 4000, 4)) for k in range(4)}


def test_plain_views_of_reduces_are_dataframes(spark: Any, tmp_path: Path) -> None:
    views = {
        "d": ("SELECT DISTINCT k FROM t", [(0,), (1,)]),
        "w": ("SELECT v, row_number() OVER (PARTITION BY k ORDER BY v) AS r FROM t", [(0, 1), (1, 1), (2, 2)]),
        "l": ("SELECT v FROM t ORDER BY v DESC LIMIT 2", [(1,), (2,)]),
        "s": ("SELECT sum(v) AS s FROM t WHERE v > 9", [(None,)]),
    }  # fmt: skip
    with hj.Engine(tmp_path / "w", spark=spark, runner="spark", clock="own") as engine:
        engine.execute("CREATE TABLE t (k int, v int)")
        engine.apply({"t": [{"k": v % 2, "v": v} for v in range(5)]}, time=1)
        engine.apply({"t": hj.deletes([{"k": v % 2, "v": v} for v in (3, 4)])}, time=2)
        for name, (sql, rows) in views.items():
            engine.execute(f"CREATE VIEW {name} AS {sql}")
            assert sorted(map(tuple, engine.dataframe(name).collect())) == rows, name

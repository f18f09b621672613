"""What Spark has to do is bounded: the jobs of a bulk change, and the rows that a first fill shuffles."""

from __future__ import annotations

import gc
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.engine.spark import flow, probing, runner, task_errors, writing
from halfjoin.engine.spark.flow import SparkFlow
from tests.oracle.rows import bag

TABLES = ["CREATE TABLE a (k bigint PRIMARY KEY, x bigint)", "CREATE TABLE b (k bigint PRIMARY KEY, a bigint)",
          "CREATE TABLE c (k bigint PRIMARY KEY, b bigint)"]  # fmt: skip
VIEW = """CREATE MATERIALIZED VIEW v AS
          SELECT c.k, a.x, 100 / (b.k + 1) AS part FROM a, b, c WHERE a.x = 1 AND a.k = b.a AND b.k = c.b"""


def _rows(first: int, count: int, other: str, among: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table({"k": pa.array(numbers, pa.int64()), other: pa.array([n % among for n in numbers], pa.int64())})


def _batch(first: int, size: int) -> dict[str, pa.Table]:
    return {"a": _rows(first, size, "x", 10), "b": _rows(first, 2 * size, "a", size),
            "c": _rows(first, 8 * size, "b", 2 * size)}  # fmt: skip


def _jobs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Filled with the kinds of tasks in each job that writes files."""
    found, collected = list[int](), writing._collected
    monkeypatch.setattr(writing, "_collected", lambda frame, kinds: found.append(kinds) or collected(frame, kinds))  # type: ignore[func-returns-value]
    return found


def test_a_bulk_change_of_three_tables_is_four_jobs(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the rows, check the keys, take the first half-joins, take the last ones."""
    with hj.Engine() as local, hj.Engine(spark=spark, runner="spark") as other:
        for engine in (local, other):
            for sql in (*TABLES, VIEW):
                engine.execute(sql)
            engine.apply(_batch(0, 20), time=1)
        frames = {name: spark.createDataFrame(rows) for name, rows in _batch(1000, 20).items()}
        jobs = _jobs(monkeypatch)
        other.apply(frames, time=2)
        assert len(jobs) <= 4
        local.apply(_batch(1000, 20), time=2)
        assert bag(other.read("v")) == bag(local.read("v"))
        assert bag(other.read("v"))


def test_many_results_are_added_up_by_a_job(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for few in (True, False):
        with monkeypatch.context() as patch, hj.Engine() as local, hj.Engine(spark=spark, runner="spark") as other:
            patch.setattr("halfjoin.engine.spark.runner.FEW", 1 << 16 if few else 0)
            for engine in (local, other):
                engine.execute("CREATE TABLE a (k bigint, x bigint); CREATE TABLE b (k bigint, y bigint)")
                engine.execute("CREATE MATERIALIZED VIEW v AS SELECT x, 10 / y AS z FROM a, b WHERE a.k = b.k")
            batch = {
                "a": [{"k": n % 3, "x": n % 2} for n in range(12)],
                "b": [{"k": n % 3, "y": n} for n in range(1, 9)],
            }
            for engine in (local, other):
                engine.apply(batch, time=0)
            jobs = _jobs(patch)
            found, wanted = (engine.apply(batch, time=1).diffs["v"] for engine in (other, local))
            assert bag(found) == bag(wanted)
            assert len(jobs) == (1 if few else 2)


def test_a_lookup_in_a_larger_table_makes_more_keys(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One key of ten finds a tenth of `b`, and that finds a tenth of `c`: so few that no job adds them up."""
    monkeypatch.setattr(runner._Known, "distinct", lambda *_: None)
    monkeypatch.setattr(flow, "STREAM_ROWS", 500)
    few, are_few = list[bool](), SparkFlow._are_few
    monkeypatch.setattr(SparkFlow, "_are_few", lambda *given: few.append(are_few(*given)) or few[-1])
    tables = {"a": _rows(0, 10, "x", 10), "b": _rows(0, 500, "a", 10), "c": _rows(0, 2000, "b", 500)}
    with hj.Engine(spark=spark, runner="spark") as engine:
        for sql in (*TABLES, VIEW.replace("a.x = 1 AND", "")):
            engine.execute(sql)
        engine.apply(tables)
        few.clear()
        found = engine.apply({"a": [{"k": 1, "x": 1, "__diff": -1}, {"k": 1, "x": 7}]}).diffs["v"]
        assert (found.num_rows, few) == (400, [True])


def test_a_fill_shuffles_no_table_for_few_rows(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows that pass the filters are counted, and found to be so few that every task may have them."""
    monkeypatch.setattr(probing, "STREAM_ROWS", 50)
    counted, held = list[int](), list[SparkFlow]()
    count, close = SparkFlow._counted, SparkFlow.close

    def counting(self: SparkFlow, stream: Any) -> Any:
        found = count(self, stream)
        counted.append(found[1])
        assert (found[0].is_small, len(self._cached)) == (True, len(counted))
        return found

    monkeypatch.setattr(SparkFlow, "_counted", counting)
    monkeypatch.setattr(SparkFlow, "close", lambda self: (close(self), held.append(self)))
    monkeypatch.setattr(flow, "STREAM_ROWS", 50)
    with hj.Engine() as local, hj.Engine(spark=spark, runner="spark") as other:
        for engine in (local, other):
            for sql in TABLES:
                engine.execute(sql)
            engine.apply(_batch(0, 200), time=1)
            engine.execute(VIEW)
        assert counted == [40]
        assert held and not any(one._cached for one in held)
        assert bag(other.read("v")) == bag(local.read("v"))
        assert bag(other.read("v"))


def test_a_task_spares_the_collector_what_its_modules_hold() -> None:
    task_errors._freeze.cache_clear()
    before = gc.get_freeze_count()
    try:
        assert list(task_errors.call(iter, iter([1]))) == [1]
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()

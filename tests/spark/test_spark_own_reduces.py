"""The user's reduces under Spark: tasks call the functions, and give what the local runner gives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import halfjoin as hj
from halfjoin.engine.spark import runner
from halfjoin.engine.spark.reducing import Reducing
from halfjoin.engine.spark.rounds import SparkSteps
from tests.oracle.rows import bag, updates

VIEWS = (
    "SELECT r.k, r.* FROM runs(TABLE t PARTITION BY k ORDER BY x) AS r",
    "SELECT k, half, m FROM sizes(TABLE (SELECT k, x / 5 AS half FROM t) PARTITION BY k, half)",
)
FAILS = "SELECT r.k FROM choosy(TABLE t PARTITION BY k) AS r"


@pytest.fixture(autouse=True)
def _everything_stays_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "FEW", 0)


def register(engine: hj.Engine) -> None:
    def runs(rows: pa.RecordBatch) -> pa.RecordBatch:
        made: list[dict[str, Any]] = []
        for x, count in zip(rows["x"].to_pylist(), rows["__diff"].to_pylist(), strict=True):
            if not made or abs(x - made[-1]["last"]) > 1:
                made.append({"low": x, "n": 0, "last": x})
            made[-1] |= {"n": made[-1]["n"] + count, "last": x}
        return pa.RecordBatch.from_pylist([{"low": one["low"], "n": one["n"]} for one in made])

    def sizes(rows: pa.RecordBatch) -> pa.RecordBatch:
        found = pa.TableGroupBy(pa.Table.from_batches([rows]), "__group").aggregate([("__diff", "sum")])
        return found.rename_columns(["__group", "m"]).combine_chunks().to_batches()[0]

    def choosy(rows: pa.RecordBatch) -> pa.RecordBatch:
        if pc.max(rows["x"]).as_py() > 7:
            raise ValueError("far")
        return pa.RecordBatch.from_pydict({"n": [1]})

    engine.register_reduce("runs", runs, returns={"low": "bigint", "n": "bigint"})
    engine.register_reduce("sizes", sizes, returns={"m": "bigint"}, vectorised=True)
    lock = Lock()  # no task can hold it
    engine.register_reduce("unused", lambda rows: rows.slice(lock.locked()), returns={"x": "bigint"})
    engine.register_reduce("choosy", choosy, returns={"n": "bigint"})


def _counted(method: Any, calls: Counter[str]) -> Any:
    def call(self: Any, *args: Any, **named: Any) -> Any:
        calls[method.__name__] += 1
        return method(self, *args, **named)

    return call


def contents(engine: hj.Engine, name: str, time: int) -> Any:
    try:
        return bag(engine.read(name, as_of=time))
    except hj.DataError as problem:
        return str(problem)


def test_own_reduces_are_the_same_under_both_runners(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, tasks = Random(5), Counter[str]()
    for called in ("fill", "changes"):
        monkeypatch.setattr(Reducing, called, _counted(getattr(Reducing, called), tasks))
    own = hj.Engine(tmp_path / "w", spark=spark, runner="spark", clock="own", memory="1MB", retain=100)
    engines = [hj.Engine(runner="local", clock="own", retain=100), own]
    for engine in engines:
        engine.execute("CREATE TABLE t (k text, x bigint)")
        register(engine)
    there: list[dict[str, Any]] = []
    for number in range(2):
        for engine in engines:
            for place, sql in enumerate((*VIEWS, FAILS)):
                if place % 2 == number:
                    engine.execute(f"CREATE MATERIALIZED VIEW v{place} AS {sql}")
        batch = []
        for _ in range(12):
            if len(there) > 4 and random.random() < 0.4:
                row, diff = there.pop(random.randrange(len(there))), -1
            else:
                row, diff = {"k": random.choice(["a", "b", None]), "x": random.randrange(10)}, 1
                there.append(row)
            batch.append({**row, "__time": 5 * number + random.randrange(3) + 3 * (diff < 0), "__diff": diff})
        found = []
        for engine in engines:
            applied = engine.apply({"t": batch}, close=False)
            closed = engine.advance(to=5 * number + 4)
            found.append({name: Counter({(row, time): diff for row, time, diff in updates(table)})
                          for name, table in {**applied.diffs, **closed.diffs}.items()})  # fmt: skip
        assert found[0] == found[1]
    failed = 0
    for time in range(0, 9, 2):
        for place in range(len(VIEWS) + 1):
            local, sparks = (contents(engine, f"v{place}", time) for engine in engines)
            assert local == sparks, f"v{place} at {time}"
            failed += isinstance(local, str)
    assert failed
    sql = VIEWS[0]
    assert bag(engines[1].query(sql)) == bag(engines[0].query(sql)) == bag(engines[1].read("v0"))
    for engine in engines:
        engine.close()
    assert set(tasks) == {"fill", "changes"}


def test_own_reduces_in_loops_are_the_same_under_both_runners(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = Counter[str]()
    monkeypatch.setattr(SparkSteps, "reduce", _counted(SparkSteps.reduce, jobs))
    contents: list[Any] = []
    for engine in (hj.Engine(runner="local", clock="own"), hj.Engine(runner="spark", spark=spark, clock="own")):
        register(engine)
        engine.execute("CREATE TABLE t (k text, x bigint)")
        engine.apply({"t": [{"k": k, "x": x} for k, x in (("a", 1), ("a", 2), ("b", 5), ("b", 9))]}, time=1)
        engine.execute("""
            CREATE MATERIALIZED VIEW v AS
            WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 3) w (k text, x bigint) AS (
                SELECT r.k, r.low + r.n FROM runs(TABLE (
                    SELECT k, x FROM t UNION ALL SELECT k, x FROM w) AS i PARTITION BY k ORDER BY x) AS r)
            SELECT k, x FROM w""")
        engine.apply({"t": [{"k": "b", "x": 6}, {"k": "a", "x": 1, "__diff": -1}]}, time=2)
        contents.append([bag(engine.read("v", as_of=time)) for time in (1, 2)])
        engine.close()
    assert contents[0] == contents[1] and contents[0][0] != contents[0][1]
    assert jobs["reduce"] > 2

"""A round trip through a Spark Connect server, in a separate process: a process has only one kind of session."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

import pyarrow as pa

import halfjoin as hj
from tests.support.small_jobs import FORKED, INTERPRETED


def main() -> None:
    """Start a server and a session, then run a batch, a first fill, a failing row, a DataFrame, and a sink."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote("local[1]").config("spark.sql.shuffle.partitions", "1")
    for name, value in {**INTERPRETED, **FORKED}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    assert type(session).__module__.startswith("pyspark.sql.connect.")
    engine = hj.Engine(spark=session, runner="spark")
    engine.execute("CREATE TABLE a (k bigint, x bigint); CREATE TABLE b (k bigint, y bigint)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a.k, b.y / a.x AS q FROM a, b WHERE a.k = b.k")
    engine.apply({"a": session.sql("SELECT id AS k, id + 1 AS x FROM range(10)")})
    applied = engine.apply({"b": pa.table({"k": [1, 2, 99], "y": [10, 12, 14]})})
    assert applied.runner == "spark", applied.runner
    assert sorted(map(tuple, (row.values() for row in engine.read("v").to_pylist()))) == [(1, 5), (2, 4)]
    engine.execute("CREATE MATERIALIZED VIEW filled AS SELECT * FROM v WHERE q > 4")
    assert engine.dataframe("filled").toArrow().to_pylist() == [{"k": 1, "q": 5}]
    engine.create_table("moments", like=session.sql("SELECT timestamp'2024-01-01' AS at"))
    engine.apply({"a": [{"k": 1, "x": 0}]})
    try:
        engine.read("v")
    except hj.DataError as problem:
        assert "division by zero" in str(problem), problem
    else:
        raise AssertionError("a failing row was not noticed")
    stream = session.readStream.format("rate").load().selectExpr("value AS k", "value AS x").writeStream
    try:
        stream.foreachBatch(engine.sink("a"))
    except Exception as problem:
        assert "start the query from a classic session" in repr(problem.__context__), problem
    else:
        raise AssertionError("a sink was sent to the server")
    engine.close()
    _in_a_warehouse(session)
    session.stop()


def _in_a_warehouse(session: Any) -> None:
    """Let tasks check rows and messages, compare them with a key, and write their results to the warehouse's files."""
    from halfjoin.engine.spark import runner, runners
    from halfjoin.engine.storage.stored_run import StoredRun

    runner.FEW = runners.NEAR = 0
    with tempfile.TemporaryDirectory() as folder, hj.Engine(folder, spark=session) as engine:
        engine.execute("CREATE TABLE a (k bigint PRIMARY KEY, x bigint); CREATE TABLE b (k bigint, y bigint)")
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a.k, b.y + a.x AS s FROM a, b WHERE a.k = b.k")
        engine.apply({"a": session.sql("SELECT id AS k, id + 1 AS x FROM range(10)")}, time=1)
        applied = engine.apply({"b": session.sql("SELECT id AS k, 1 AS y FROM range(4)")}, time=2)
        assert isinstance(engine._state.views["v"].contents.held[0], StoredRun)
        assert applied.dataframe("v").count() == applied.diffs["v"].num_rows == 4
        try:
            engine.apply({"a": session.sql("SELECT 3L AS k")}, time=3)
        except hj.InvalidRow as problem:
            assert "second row with the key (k) = (3)" in str(problem), problem
        else:
            raise AssertionError("a second row of a key was taken")
        engine.flush()
        engine.apply({"a": hj.upserts(session.sql("SELECT 3L AS k, 7L AS x"))}, time=3)
        assert sorted(row["s"] for row in engine.dataframe("v").toArrow().to_pylist()) == [2, 3, 4, 8]
        said = ['{"op": "d", "before": {"k": 3}}', '{"op": "u", "after": {"k": 2, "x": 9}}', '{"op": "t"}',
                '{"op": "c", "after": {"k": 1, "x": 5}}']  # fmt: skip
        for count, sums in ((2, [2, 3, 10]), (4, [6])):
            messages = session.createDataFrame([(said[i], i) for i in range(count)], "value string, offset bigint")
            engine.apply({"a": hj.debezium(messages)}, time=3 + count)
            assert sorted(row["s"] for row in engine.dataframe("v").toArrow().to_pylist()) == sums


if __name__ == "__main__":
    main()

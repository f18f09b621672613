"""Invalid rows on Spark: the same errors as in this process, in one line, without Java's stack trace."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import halfjoin as hj

MOST = 2**63 - 1
TABLES = "CREATE TABLE t (k bigint, n bigint, s text)"
VIEWS = """
    CREATE MATERIALIZED VIEW long AS SELECT k, lpad(s, n::integer) AS x FROM t WHERE k < 10;
    CREATE MATERIALIZED VIEW series AS SELECT k, g FROM t, generate_series(n, 2000000000) AS g WHERE k < 10;
    CREATE MATERIALIZED VIEW raises AS SELECT k, y FROM t, odd(k) AS o(y);
    CREATE MATERIALIZED VIEW heavy AS SELECT a.k FROM t a JOIN t b ON a.k = b.k JOIN t c ON b.k = c.k;
    CREATE MATERIALIZED VIEW fine AS SELECT k FROM t"""


def odd(batch: pa.RecordBatch) -> pa.RecordBatch:
    values = batch.column(0).to_pylist()
    if any(value % 2 for value in values):
        raise ValueError("odd")
    return pa.RecordBatch.from_pydict({"__row": pa.array(range(len(values)), pa.int64()), "y": batch.column(0)})


def test_both_runners_give_the_same_bound_errors(spark: Any) -> None:
    found = []
    for runner in ("spark", "local"):
        with hj.Engine(spark=spark, runner=runner) as engine:
            engine.execute(TABLES)
            engine.register_table_function("odd", odd, returns={"y": "bigint"})
            engine.execute(VIEWS)
            bad = [{"k": 1, "n": 2**31 - 1, "s": "x"}, {"k": 3, "n": 1, "s": None}]
            good = [{"k": 2, "n": 2**31 - 1, "s": None}, {"k": 20, "n": 0, "s": "y", "__diff": 2**31}]
            engine.apply({"t": bad + good}, time=1)
            errors = {}
            for view in ("long", "series", "raises", "heavy"):
                with pytest.raises(hj.DataError) as problem:
                    engine.read(view)
                errors[view] = str(problem.value)
            assert engine.read("fine", multiplicity=True).num_rows == 4
            engine.apply({"t": [{**row, "__diff": -row.get("__diff", 1)} for row in bad + good[1:]]}, time=2)
            left = {view: engine.read(view).to_pylist() for view in ("long", "series", "raises", "heavy", "fine")}
            found.append((errors, left))
    assert found[0] == found[1]
    errors, left = found[0]
    assert "in lpad(t.s, t.n::integer), for a row with t.n = 2147483647, t.s = x" in errors["long"]
    assert "failed: ValueError: odd in odd(t.k), for a row with t.k = " in errors["raises"]
    assert left["raises"] == [{"k": 2, "y": 2}] and left["series"] == []


COLUMNS = [
    ("INTERVAL '1' YEAR", "interval year"), ("array()", "array<void>"), ("parse_json('1')", "variant"),
    ("map('a', parse_json('1'))", "variant"), ("array(array())", "array<array<void>>"),
]


@pytest.mark.parametrize(("value", "kind"), COLUMNS)
def test_columns_that_no_table_takes_are_refused_by_the_schema(spark: Any, value: str, kind: str) -> None:
    calls = spark.sparkContext.statusTracker()
    for runner in ("spark", "local"):
        with hj.Engine(spark=spark, runner=runner) as engine:
            engine.execute(TABLES)
            frame, before = spark.sql(f"SELECT 1L AS k, 1L AS n, {value} AS s"), len(calls.getJobIdsForGroup())
            with pytest.raises(hj.InvalidRow, match=f"t.s: a column of Spark's type {kind} is not taken; cast it"):
                engine.apply({"t": frame})
            assert len(calls.getJobIdsForGroup()) == before
            engine.apply({"t": spark.sql("SELECT 1L AS k, null AS n, null AS s")})
            assert engine.read("t").num_rows == 1


def test_a_streaming_frame_is_told_how_to_be_given(spark: Any) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("value AS id")
    with hj.Engine(spark=spark) as engine:
        engine.execute("CREATE TABLE t (id bigint PRIMARY KEY)")
        for given in (stream, hj.upserts(stream)):
            with pytest.raises(hj.InvalidRow, match=r"^t: a streaming DataFrame .*foreachBatch\(engine.sink\('t'\)\)"):
                engine.apply({"t": given})


def test_a_refused_row_of_a_frame_fails_no_job_and_is_named(spark: Any) -> None:
    tracker = spark.sparkContext.statusTracker()
    with hj.Engine(spark=spark, runner="spark") as engine:
        engine.execute("CREATE TABLE t (k bigint NOT NULL, n smallint)")
        before = set(tracker.getJobIdsForGroup())
        with pytest.raises(hj.InvalidRow) as problem:
            engine.apply({"t": spark.sql("SELECT id AS k, 70000 * id AS n FROM range(2)")})
        assert str(problem.value) == "t.n: the row with (k, n) = (1, 70000): 70000 is out of range for smallint"
        assert "java" not in "".join(traceback.format_exception(problem.value)).lower()
        jobs = set(tracker.getJobIdsForGroup()) - before
        assert jobs and {tracker.getJobInfo(job).status for job in jobs} == {"SUCCEEDED"}


OTHER_PYTHON = """
import sys, traceback
import halfjoin as hj
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", False).getOrCreate()
session.sparkContext.setLogLevel("OFF")
with hj.Engine(sys.argv[1] or None, spark=session, runner="spark") as engine:
    engine.execute("CREATE TABLE t (k bigint)")
    try:
        engine.apply({"t": session.range(3).toDF("k")})
    except hj.HalfjoinError as problem:
        print(str(problem).count(chr(10)), problem)
        print("java" in "".join(traceback.format_exception(problem)).lower())
"""


def test_workers_with_another_python_are_named_in_one_line(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PYSPARK_PYTHON": str(program)}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", OTHER_PYTHON, ""], capture_output=True, text=True,
                          env=environment, cwd=Path(__file__).parents[2])  # fmt: skip
    lines, java = done.stdout.splitlines()[-2:]
    assert lines.startswith("0 the Python of Spark's tasks is not this one") and java == "False", done.stderr[-2000:]
    assert f"PYSPARK_PYTHON={sys.executable}" in lines

"""TPC-H's query 3: maintained views against recomputing them in DuckDB, on the same contents and batches, in one run.

`python -m tests.benchmarks.q3 --sf 1`. The views are the query in three steps: its join (`lines`), with GROUP BY
(`groups`), and the whole query (`top 10`). The tables have its columns and primary keys. There are two profiles.
`uniform` has TPC-H's refreshes and customers that change segment; few of its rows reach the view. Batches of `hot`
change about as many rows of the join as they have rows. Times are medians of the whole call, in milliseconds.
`quickest` is the least time, which shows how busy the machine was. `no kernels` is the time of the same
kind of batches without native kernels; every second batch runs so.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from examples.recompute import Recompute, settled
from examples.tpch import Q3_COLUMNS, Q3_VIEWS, Changes, load
from halfjoin.engine.kernels import native
from tests.benchmarks.alone import loaded, measure
from tests.benchmarks.durable import durable
from tests.benchmarks.sizes import ROWS, SIZES

RECOMPUTED = 9  # of each size's batches, so many are recomputed too


def main() -> None:
    """Print the table of both profiles, then the figures of the engine alone."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sf", default="1", help="TPC-H scale factor")
    options.add_argument("--spark", action="store_true", help="recompute in Spark, too (once per profile)")
    options.add_argument("--durable", action="store_true", help="the same in a warehouse on disk, beside it")
    given = options.parse_args()
    if given.durable:
        print(f"TPC-H's query 3 at scale {given.sf}, on disk; medians in ms")
        for view in Q3_VIEWS:
            durable(given.sf, view)
        return
    print(f"TPC-H's query 3 at scale {given.sf}; medians in ms")
    titles = f"{'view':7} {'profile':8} {'batch':>6} {'maintain':>9} {'quickest':>9} {'no kernels':>10}"
    print(f"{titles} {'recompute':>10} {'times':>7} {'view rows changed':>18}")
    for view in Q3_VIEWS:
        for profile in ("uniform", "hot"):
            _side_by_side(given.sf, view, profile, given.spark)
    for view in Q3_VIEWS:
        _alone(given.sf, view)


def _side_by_side(scale: str, view: str, profile: str, spark: bool) -> None:
    tables, sql = load(scale, Q3_COLUMNS, Q3_COLUMNS), Q3_VIEWS[view]
    engine, _ = loaded(tables)
    engine.execute(f"CREATE MATERIALIZED VIEW q3 AS {sql}")
    duckdb = Recompute()
    for name, rows in tables.items():
        duckdb.load(name, rows)
    changes, at = Changes(tables, ROWS, seed=1, hot=profile == "hot"), 10
    del tables, rows
    for size, count in SIZES.items():
        maintained, without, recomputed, changed = [], [], [], []
        for number in range(count):
            batch, at = changes.take(size), at + 1
            with native.used(number % 2 == 0):
                started = time.perf_counter()
                applied = engine.apply(batch, time=at)
                (without if number % 2 else maintained).append(time.perf_counter() - started)
            changed.append(applied.diffs["q3"].num_rows if "q3" in applied.diffs else 0)
            duckdb.apply(batch)
            if number < RECOMPUTED:
                recomputed.append(duckdb.run(sql)[1])
        ours, theirs = statistics.median(maintained) * 1e3, statistics.median(recomputed) * 1e3
        print(
            f"{view:7} {profile:8} {size:6} {ours:9.2f} {min(maintained) * 1e3:9.2f} "
            f"{statistics.median(without) * 1e3:10.2f} {theirs:10.1f} "
            f"{theirs / ours:6.1f}x {statistics.mean(changed):18.1f}",
            flush=True,
        )
    found = engine.read("q3")
    if not duckdb.same(settled(sql, found.column_names), found):
        raise SystemExit(f"{view}, {profile}: the maintained view differs from the recomputed one")
    if spark:
        print(f"{view:7} {profile:8} recomputing once in Spark: {_spark_seconds(duckdb, sql) * 1e3:.0f} ms")


def _spark_seconds(duckdb: Recompute, sql: str) -> float:
    """The median of three runs over cached tables, after a first run that does not count."""
    from pyspark.sql import SparkSession

    session: Any = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        for name in Q3_COLUMNS:
            path = Path(folder) / f"{name}.parquet"
            pq.write_table(duckdb.run(f"SELECT * FROM {name}")[0], path)
            session.read.parquet(str(path)).cache().createOrReplaceTempView(name)
        seconds = []
        for _ in range(4):
            started = time.perf_counter()
            session.sql(sql).toArrow()
            seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])


def _alone(scale: str, view: str) -> None:
    figures = {size: measure(size, view) for size in dict.fromkeys((scale, "0.1"))}
    of = figures[scale]
    print(
        f"\n{view}, the engine alone at scale {scale}: load {of['load']:.1f} s, first fill {of['fill']:.2f} s, "
        f"peak memory {of['peak'] / 1e9:.2f} GB"
    )
    hot = measure(scale, view, "hot")["medians"]
    for size, seconds in of["medians"].items():
        small = figures["0.1"]["medians"][size]
        print(f"batches of {size:>6}: {seconds * 1e3:.2f} ms, {seconds / small:.2f} x that at scale 0.1; "
              f"hot: {hot[size] * 1e3:.2f} ms")  # fmt: skip


if __name__ == "__main__":
    main()

"""TPC-H Q3's join: a maintained view against recomputing it in DuckDB, on the same contents and batches, in one run.

`python -m tests.benchmarks.q3 --sf 1`. The tables have Q3's columns and primary keys. There are two profiles. `uniform`
has TPC-H's refreshes and customers that change segment; few of its rows reach the view. Batches of `hot` change about
as many rows of the view as they have rows. Times are medians of the whole call, in milliseconds. `quickest` is the
least time, which shows how busy the machine was.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from examples.recompute import Recompute
from examples.tpch import Q3_COLUMNS, Q3_LINES, Changes, load
from tests.benchmarks.alone import ROWS, SIZES, loaded, measure
from tests.benchmarks.durable import durable

RECOMPUTED = 9  # of each size's batches, so many are recomputed too


def main() -> None:
    """Print the table of both profiles, then the figures of the engine alone."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sf", default="1", help="TPC-H scale factor")
    options.add_argument("--spark", action="store_true", help="recompute in Spark, too (once per profile)")
    options.add_argument("--durable", action="store_true", help="the same in a warehouse on disk, beside it")
    given = options.parse_args()
    if given.durable:
        print(f"TPC-H Q3's join at scale {given.sf}, on disk; medians in ms")
        durable(given.sf)
        return
    print(f"TPC-H Q3's join at scale {given.sf}; medians in ms")
    titles = f"{'profile':8} {'batch':>6} {'maintain':>9} {'quickest':>9} {'recompute':>10} {'times':>7}"
    print(f"{titles} {'view rows changed':>18}")
    for profile in ("uniform", "hot"):
        _side_by_side(given.sf, profile, given.spark)
    _alone(given.sf)


def _side_by_side(scale: str, profile: str, spark: bool) -> None:
    tables = load(scale, Q3_COLUMNS, Q3_COLUMNS)
    engine, _ = loaded(tables)
    engine.execute(f"CREATE MATERIALIZED VIEW q3 AS {Q3_LINES}")
    duckdb = Recompute()
    for name, rows in tables.items():
        duckdb.load(name, rows)
    changes, at = Changes(tables, ROWS, seed=1, hot=profile == "hot"), 10
    del tables, rows
    for size, count in SIZES.items():
        maintained, recomputed, changed = [], [], []
        for number in range(count):
            batch, at = changes.take(size), at + 1
            started = time.perf_counter()
            applied = engine.apply(batch, time=at)
            maintained.append(time.perf_counter() - started)
            changed.append(applied.diffs["q3"].num_rows)
            duckdb.apply(batch)
            if number < RECOMPUTED:
                recomputed.append(duckdb.run(Q3_LINES)[1])
        ours, theirs = statistics.median(maintained) * 1e3, statistics.median(recomputed) * 1e3
        print(
            f"{profile:8} {size:6} {ours:9.2f} {min(maintained) * 1e3:9.2f} {theirs:10.1f} {theirs / ours:6.1f}x "
            f"{statistics.mean(changed):18.1f}",
            flush=True,
        )
    if not duckdb.same(Q3_LINES, engine.read("q3")):
        raise SystemExit(f"{profile}: the maintained view differs from the recomputed one")
    if spark:
        print(f"{profile:8} recomputing once in Spark: {_spark_seconds(duckdb) * 1e3:.0f} ms")


def _spark_seconds(duckdb: Recompute) -> float:
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
            session.sql(Q3_LINES).toArrow()
            seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])


def _alone(scale: str) -> None:
    figures = {size: measure(size) for size in dict.fromkeys((scale, "0.1"))}
    of = figures[scale]
    print(
        f"\nThe engine alone at scale {scale}: load {of['load']:.1f} s, first fill {of['fill']:.2f} s, "
        f"peak memory {of['peak'] / 1e9:.2f} GB"
    )
    hot = measure(scale, "hot")["medians"]
    for size, seconds in of["medians"].items():
        small = figures["0.1"]["medians"][size]
        print(f"batches of {size:>6}: {seconds * 1e3:.2f} ms, {seconds / small:.2f} x that at scale 0.1; "
              f"hot: {hot[size] * 1e3:.2f} ms")  # fmt: skip


if __name__ == "__main__":
    main()

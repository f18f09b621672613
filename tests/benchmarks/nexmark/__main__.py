"""Nexmark's queries as maintained views, one after the other, beside DuckDB, which computes them again.

`python -m tests.benchmarks.nexmark [EVENTS] [BATCH] [QUERY ...]`. Each query becomes a view of an empty engine, and
gets the same events in batches. All events stay in the tables, in memory. Times are of CPU, all threads counted, so
`events a second` are those of one core; `none` has no view: what it takes to keep the events. `batch` is the median of
the last ten batches, `DuckDB` that of computing the query over all events once. At the end each view is compared with
its answer. `Flink` has published figures of others, with other machines, durable state and no tables
(`queries.FLINK`).
"""

from __future__ import annotations

import statistics
import sys
import time

import duckdb
import numpy as np
import pyarrow as pa

import halfjoin as hj
from tests.benchmarks.nexmark.events import SCHEMA, events, side
from tests.benchmarks.nexmark.queries import FLINK, MISSING, QUERIES
from tests.oracle.answers import assert_same
from tests.oracle.rows import tuples

Batch = dict[str, pa.Table]
LAST = 10  # batches whose times are told


def batches(count: int, size: int) -> list[Batch]:
    """The events, in batches."""
    random = np.random.default_rng(1)
    return [events(start, min(size, count - start), random) for start in range(0, count, size)]


def maintained(sql: str, given: list[Batch]) -> tuple[hj.Engine, float, float]:
    """An engine with the view over all events, the seconds of CPU of the batches, and those of one of the last."""
    engine = hj.Engine(clock="own", retain=0)
    engine.execute(";".join(f"CREATE TABLE {name} ({columns})" for name, columns in SCHEMA.items()))
    engine.apply({"side": side()}, time=0)
    if sql:
        engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    began, last = time.process_time(), []
    for at, batch in enumerate(given, 1):
        started = time.process_time()
        engine.apply(batch, time=at)
        last.append(time.process_time() - started)
    return engine, time.process_time() - began, statistics.median(last[-LAST:])


def loaded(given: list[Batch]) -> duckdb.DuckDBPyConnection:
    """DuckDB with all events, and one thread."""
    duck = duckdb.connect(config={"threads": 1})
    every = {name: pa.concat_tables([batch[name] for batch in given]) for name in given[0]} | {"side": side()}
    for name, rows in every.items():
        duck.register("rows", rows)
        duck.execute(f"CREATE TABLE {name} AS FROM rows")
    return duck


def recomputed(duck: duckdb.DuckDBPyConnection, sql: str) -> tuple[pa.Table, float]:
    """DuckDB's answer, and the seconds that it took (the median of three)."""
    times = []
    for _ in range(3):
        started = time.process_time()
        answer = duck.sql(sql.replace("date_bin(", "time_bucket(")).to_arrow_table()
        times.append(time.process_time() - started)
    return answer, statistics.median(times)


def check(name: str, engine: hj.Engine, expected: pa.Table) -> None:
    """Compare a view with DuckDB's answer."""
    found = engine.read("v")
    if "avg(" in QUERIES[name]:
        assert_same(tuples(found), tuples(expected), name)
        return
    counts = duckdb.sql("SELECT (SELECT count(*) FROM (FROM found EXCEPT ALL FROM expected)), "
                        "(SELECT count(*) FROM (FROM expected EXCEPT ALL FROM found))").fetchall()  # fmt: skip
    assert counts == [(0, 0)], f"{name}: {counts[0]} rows differ"


def main(count: int, size: int, names: list[str]) -> None:
    """Print a line for each query."""
    given = batches(count, size)
    duck = loaded(given)
    maintained("", given)  # what is loaded and allocated at first use is no part of the figures
    print(f"{count:,} events in batches of {size:,}")
    print(f"{'':5}{'events a second':>16}{'batch':>10}{'DuckDB':>11}{'times':>8}{'rows':>10}{'Flink, theirs':>15}")
    for name in ["none", *(names or QUERIES)]:
        engine, cpu, batch = maintained(QUERIES.get(name, ""), given)
        print(f"{name:5}{count / cpu:16,.0f}{1000 * batch:7.1f} ms", end="", flush=True)
        if name != "none":
            answer, seconds = recomputed(duck, QUERIES[name])
            check(name, engine, answer)
            theirs = f"{FLINK[name]:15,}" if name in FLINK else ""
            print(f"{1000 * seconds:8.1f} ms{seconds / batch:7.1f}x{answer.num_rows:10,}{theirs}", end="")
        print()
        engine.close()
    for name, reason in MISSING.items():
        print(f"{name:5}not here: {reason}")


if __name__ == "__main__":
    options = [int(one) for one in sys.argv[1:] if one.isdigit()]
    main(*(*options, *[500_000, 10_000][len(options):]), [one for one in sys.argv[1:] if not one.isdigit()])

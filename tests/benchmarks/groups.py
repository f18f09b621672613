"""One row changed in a large group, outer joins beside inner ones, and windows. `python -m tests.benchmarks.groups`.

Prints milliseconds per batch, medians and least, beside DuckDB, which computes the view again on the same contents, and
what the view keeps beyond the tables and its own rows.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
import pyarrow as pa

import halfjoin as hj
from examples.recompute import Recompute, settled
from examples.tpch import Changes, create_table, load
from tests.oracle.answers import assert_same
from tests.oracle.rows import tuples

BATCHES = 40
GROUPED = {  # one group of all rows
    "count": "SELECT g, count(*) AS n FROM numbers GROUP BY g",
    "sum": "SELECT g, sum(x) AS s FROM numbers GROUP BY g",
    "sum of doubles": "SELECT g, sum(f) AS s FROM numbers GROUP BY g",
    "avg": "SELECT g, avg(x) AS a FROM numbers GROUP BY g",
    "min": "SELECT g, min(x) AS m FROM numbers GROUP BY g",
    "max": "SELECT g, max(x) AS m FROM numbers GROUP BY g",
    "top 10": "SELECT id, x FROM numbers ORDER BY x DESC\nLIMIT 10",
    "median": "SELECT g, percentile_cont(0.5) WITHIN GROUP (ORDER BY x) AS m FROM numbers GROUP BY g",
}
WINDOWS = {  # partitions of 1,000 rows
    "row_number": "SELECT id, row_number() OVER (PARTITION BY p ORDER BY x, id) AS r FROM numbers",
    "running sum": "SELECT id, sum(x) OVER (PARTITION BY p ORDER BY x, id) AS s FROM numbers",
    "lag": "SELECT id, lag(x) OVER (PARTITION BY p ORDER BY x, id) AS b FROM numbers",
}
NEAR_THE_END = {  # one partition of all rows
    "row_number": "SELECT id, row_number() OVER (ORDER BY x, id) AS r FROM numbers",
    "running sum": "SELECT id, sum(x) OVER (ORDER BY x, id) AS s FROM numbers",
    "lag": "SELECT id, lag(x) OVER (ORDER BY x, id) AS b FROM numbers",
}
LINES = "l_orderkey = o_orderkey"
BOTH = "SELECT o_orderkey, o_orderdate, l_linenumber, l_shipdate FROM orders"
JOINS = {
    "inner join": f"{BOTH} JOIN lineitem ON {LINES}",
    "left join": f"{BOTH} LEFT JOIN lineitem ON {LINES}",
    "EXISTS": f"SELECT * FROM orders WHERE EXISTS (SELECT * FROM lineitem WHERE {LINES})",
    "NOT EXISTS": f"SELECT * FROM orders WHERE NOT EXISTS (SELECT * FROM lineitem WHERE {LINES})",
}
JOINED = {
    "customer": ("c_custkey", "c_mktsegment"),
    "orders": ("o_orderkey", "o_custkey", "o_orderdate"),
    "lineitem": ("l_orderkey", "l_linenumber", "l_shipdate"),
}
SIZES = {1: 60, 100: 20, 10_000: 3}


class Bench:
    """An engine and DuckDB with the same tables."""

    def __init__(self, tables: dict[str, tuple[str, pa.Table]]) -> None:
        self.engine, self.duck, self.now = hj.Engine(retain=0), Recompute(), 0
        for name, (ddl, rows) in tables.items():
            self.engine.execute(ddl)
            self.engine.apply({name: rows}, time=0, close=False)
            self.duck.load(name, rows)
        self.engine.advance(to=1)

    def create(self, sql: str) -> float:
        """The seconds to make and fill the view."""
        started = time.perf_counter()
        self.engine.execute(f"CREATE MATERIALIZED VIEW measured AS {sql}")
        return time.perf_counter() - started

    def apply(self, batch: dict[str, pa.Table]) -> float:
        """The seconds to maintain it."""
        self.now += 1
        started = time.perf_counter()
        self.engine.apply(batch, time=self.now)
        seconds = time.perf_counter() - started
        self.duck.apply(batch)
        return seconds

    def drop(self, sql: str) -> tuple[float, int, int]:
        """Compare with DuckDB and drop the view: DuckDB's seconds, and the rows and bytes that the view kept."""
        kept = [one for one in self.engine.stats().collections if one.kind == "node"]
        found = self.engine.read("measured")
        expected, _ = self.duck.run(settled(sql, found.column_names))
        if found.num_rows <= 100_000:
            assert_same(tuples(found), tuples(expected), sql)
        elif not self.duck.same(sql, found):
            raise SystemExit(f"it differs from DuckDB: {sql}")
        seconds = statistics.median(self.duck.run(sql)[1] for _ in range(3))
        self.engine.execute("DROP MATERIALIZED VIEW measured")
        return seconds, sum(one.updates for one in kept), sum(one.row_bytes + one.index_bytes for one in kept)


def main() -> None:
    """Print the three tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000, help="rows of the group")
    options.add_argument("--sf", default="0.1", help="TPC-H scale factor of the joins")
    given = options.parse_args()
    _one_row(f"One row changed in a group of {given.rows:,}; ms", GROUPED, given.rows)
    _one_row(f"One row changed in {given.rows // 1_000:,} partitions of 1,000; ms", WINDOWS, given.rows)
    _one_row(f"One row changed near the end of a partition of {given.rows:,}; ms", NEAR_THE_END, given.rows, last=100)
    _joins(given.sf)


def _one_row(title: str, views: dict[str, str], rows: int, last: int = 0) -> None:
    """`last`: change one of as many rows with the greatest values."""
    random = np.random.default_rng(1)
    numbers = _numbers(random, np.arange(rows), rows)
    columns = "id bigint PRIMARY KEY, g integer, p integer, x bigint, f double precision"
    bench = Bench({"numbers": (f"CREATE TABLE numbers ({columns})", numbers)})
    print(title)
    print(f"{'':16}{'maintain':>10}{'least':>10}{'recompute':>11}{'kept rows':>12}{'kept MB':>9}{'fill, s':>9}")
    seconds = [bench.apply(_update(random, rows, number, bench.duck, last)) for number in range(BATCHES)]
    print(f"{'no view':16}{statistics.median(seconds) * 1e3:10.2f}{min(seconds) * 1e3:10.2f}")
    for name, sql in views.items():
        fill = bench.create(sql)
        seconds = [bench.apply(_update(random, rows, number, bench.duck, last)) for number in range(BATCHES)]
        theirs, kept, size = bench.drop(sql)
        print(f"{name:16}{statistics.median(seconds) * 1e3:10.2f}{min(seconds) * 1e3:10.2f}{theirs * 1e3:11.1f}"
              f"{kept:12,}{size / 1e6:9.2f}{fill:9.2f}", flush=True)  # fmt: skip
    print()


def _update(random: np.random.Generator, rows: int, number: int, duck: Recompute, last: int) -> dict[str, pa.Table]:
    """One row with new values. Every other time it is the least or the greatest."""
    if last:
        near = f"(SELECT * FROM numbers ORDER BY x DESC LIMIT {last})"
        old = duck.run(f"SELECT * FROM {near} ORDER BY random() LIMIT 1")[0]
        (found,) = duck.run(f"SELECT min(x) AS least, max(x) AS most FROM {near}")[0].to_pylist()
        x = pa.array(random.integers(found["least"], found["most"] + 1, 1))
        new = old.set_column(old.column_names.index("x"), "x", x)
        return {"numbers": pa.concat_tables([old, new]).append_column("__diff", pa.array([-1, 1]))}
    order = ("random()", "x", "random()", "x DESC")[number % 4]
    old = duck.run(f"SELECT * FROM numbers ORDER BY {order} LIMIT 1")[0]
    new = _numbers(random, old["id"].to_numpy(), rows)
    return {"numbers": pa.concat_tables([old, new]).append_column("__diff", pa.array([-1, 1]))}


def _numbers(random: np.random.Generator, ids: object, rows: int) -> pa.Table:
    key = np.asarray(ids)
    return pa.table({
        "id": key, "g": np.zeros(len(key), np.int32), "p": (key % max(rows // 1_000, 1)).astype(np.int32),
        "x": random.integers(0, 10**9, len(key)), "f": np.round(random.random(len(key)), 3),
    })  # fmt: skip


def _joins(scale: str) -> None:
    tables = load(scale, JOINED, JOINED)
    print(f"Joins over TPC-H's orders and lines at scale {scale}; ms, and times the inner join")
    print(f"{'':12}" + "".join(f"{f'batch of {size:,}':>20}" for size in SIZES) + f"{'recompute':>12}{'kept rows':>11}")
    inner: dict[int, float] = {}
    bench = Bench({name: (create_table(name, JOINED[name]), rows) for name, rows in tables.items()})
    changes = Changes(tables, len(JOINS) * sum(size * count for size, count in SIZES.items()), seed=1)
    for name, sql in JOINS.items():
        bench.create(sql)
        cells = ""
        for size, count in SIZES.items():
            ms = statistics.median(bench.apply(changes.take(size)) for _ in range(count)) * 1e3
            cells += f"{ms:12.2f}{f'{ms / inner.setdefault(size, ms):.2f}x':>8}"
        theirs, kept, _ = bench.drop(sql)
        print(f"{name:12}{cells}{theirs * 1e3:12.1f}{kept:11,}", flush=True)


if __name__ == "__main__":
    main()

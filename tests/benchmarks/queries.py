"""Measures ad-hoc queries: lookups beside scans and DuckDB, aggregates beside DuckDB, and the cost of asking anew.

`python -m tests.benchmarks.queries [ROWS]` prints milliseconds (the median of several runs) and ratios. DuckDB reads
the same Arrow data. ROWS is the number of lines; an order has four of them, a customer ten orders.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa

import halfjoin as hj
from halfjoin.engine.statements.remembered import Remembered

LOOKUPS = {
    "lines of an order": "SELECT * FROM line WHERE o = 77",
    "a customer's lines": "SELECT l.* FROM customer c, orders o, line l "
                          "WHERE o.customer = c.c AND l.o = o.k AND c.c = 9",
    "a view by its key": "SELECT * FROM priced WHERE k = 77",
    "in the past": "SELECT * FROM line WHERE o = 77 AS OF 1",
}
AGGREGATES = {
    "count, sum": "SELECT count(*) AS n, sum(price) AS total FROM line",
    "with a filter": "SELECT count(*) AS n, sum(price) AS total FROM line WHERE price < 50",
    "by group": "SELECT price, count(*) AS n FROM line GROUP BY price",
}


def tables(rows: int) -> dict[str, pa.Table]:
    """Customers, their orders and the lines of these."""
    orders, random = np.arange(rows // 4), np.random.default_rng(1)
    return {
        "customer": pa.table({"c": np.arange(max(1, rows // 40))}),
        "orders": pa.table({"k": orders, "customer": orders // 10}),
        "line": pa.table({"o": np.repeat(orders, 4), "price": random.integers(0, 100, 4 * len(orders))}),
    }


def filled(data: dict[str, pa.Table]) -> hj.Engine:
    """An engine with the tables, indexes on what joins them, and a view."""
    engine = hj.Engine(clock="own", retain=1_000)
    engine.execute("CREATE TABLE customer (c bigint PRIMARY KEY); CREATE TABLE orders (k bigint PRIMARY KEY, "
                   "customer bigint); CREATE TABLE line (o bigint, price bigint)")  # fmt: skip
    engine.apply(data, time=1)
    engine.execute("CREATE INDEX ON orders (customer); CREATE INDEX ON line (o)")
    engine.execute("CREATE MATERIALIZED VIEW priced AS SELECT o.k, l.price FROM orders o JOIN line l ON l.o = o.k")
    engine.execute("CREATE INDEX ON priced (k)")
    engine.apply({"line": pa.table({"o": [5], "price": [5]})}, time=2)
    return engine


def median(call: Callable[[], object], runs: int) -> float:
    """Milliseconds of a call, after a first one that is not counted."""
    call()
    found = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        found.append(1000 * (time.perf_counter() - start))
    return statistics.median(found)


def main(rows: int) -> None:
    """Print the tables."""
    data = tables(rows)
    engine, duck = filled(data), duckdb.connect(config={"threads": 1})
    for name, table in data.items():
        duck.register(name, table)
    duck.register("priced", engine.read("priced"))
    print(f"{rows:,} lines\n\nlookup{'':20}ms  without memory      scan    DuckDB  scan/lookup")
    for name, sql in LOOKUPS.items():
        warm = median(lambda sql=sql: engine.query(sql), 21)  # type: ignore[misc]
        with patch.object(Remembered, "find", lambda *_: None):
            cold = median(lambda sql=sql: engine.query(sql), 9)  # type: ignore[misc]
            with patch("halfjoin.planner.filling.known_of", lambda *_: None):
                scan = median(lambda sql=sql: engine.query(sql), 3)  # type: ignore[misc]
        plain = sql.removesuffix(" AS OF 1")
        theirs = median(lambda sql=plain: duck.sql(sql).to_arrow_table(), 5)  # type: ignore[misc]
        print(f"{name:22}{warm:8.2f}{cold:16.2f}{scan:10.1f}{theirs:10.1f}{scan / warm:13.0f}")
    print(f"\naggregate{'':17}ms    DuckDB     ratio")
    for name, sql in AGGREGATES.items():
        ours = median(lambda sql=sql: engine.query(sql), 3)  # type: ignore[misc]
        theirs = median(lambda sql=sql: duck.sql(sql).to_arrow_table(), 5)  # type: ignore[misc]
        print(f"{name:22}{ours:8.1f}{theirs:10.1f}{ours / theirs:10.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6_000_000)

"""Apply a batch and its inverse in turn, and compare the cost of first and last. `python -m tests.benchmarks.history`.

Prints milliseconds, rows looked up, and rows made by half-joins, for a batch that deletes rows of both sides of a join
and for the batch that restores them; then the same for a join as a query, and milliseconds of a read.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

import halfjoin as hj
from halfjoin.engine.join.chain import Chain, Walked
from halfjoin.engine.join.half_join import HalfJoinOperator
from halfjoin.engine.updates.updates import Updates

DDL = """
CREATE TABLE customers (c bigint PRIMARY KEY, region bigint);
CREATE TABLE orders (o bigint PRIMARY KEY, c bigint, day bigint);
CREATE TABLE lines (o bigint, n bigint, price bigint, note text);
CREATE MATERIALIZED VIEW sold AS
    SELECT o.o, o.day, l.n, l.price, l.note, c.region
    FROM customers c JOIN orders o ON o.c = c.c JOIN lines l ON l.o = o.o;
CREATE MATERIALIZED VIEW dear AS SELECT s.o, s.price, o.day FROM sold s JOIN orders o ON o.o = s.o WHERE s.price > 500
"""
JOIN = "SELECT o.day, l.price FROM orders o JOIN lines l ON l.o = o.o"


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """Count the rows that half-joins look up (rows of the stream) and make while the block runs."""
    counts, whole, walk = {"looked up": 0, "made": 0}, HalfJoinOperator.__call__, Chain.walk

    def call(self: HalfJoinOperator, stream: Updates, *rest: Any) -> Iterator[Updates]:
        counts["looked up"] += len(stream)
        for found in whole(self, stream, *rest):
            counts["made"] += len(found)
            yield found

    def walked(*given: Any, **more: Any) -> Walked | None:
        found = walk(*given, **more)
        if found is not None:
            counts["looked up"] += found.entered
            counts["made"] += found.found
        return found

    HalfJoinOperator.__call__ = call  # type: ignore[method-assign]
    Chain.walk = walked  # type: ignore[assignment, method-assign]
    try:
        yield counts
    finally:
        HalfJoinOperator.__call__ = whole  # type: ignore[method-assign]
        Chain.walk = walk  # type: ignore[method-assign]


def tables(rows: int) -> dict[str, pa.Table]:
    """On average one order for every customer, and two lines for every order."""
    random, number = np.random.default_rng(9), np.arange(rows)
    lines = {"o": number.repeat(2), "n": np.tile([0, 1], rows), "price": random.integers(0, 1000, 2 * rows)}
    return {
        "customers": pa.table({"c": number, "region": number % 7}),
        "orders": pa.table({"o": number, "c": random.permutation(rows), "day": random.integers(0, 365, rows)}),
        "lines": pa.table({**lines, "note": pa.array([f"line {n}" for n in range(2 * rows)])}),
    }


def measured(work: Callable[[], Any]) -> tuple[float, int, int]:
    """Milliseconds, rows looked up, rows made."""
    with counted() as counts:
        start = time.perf_counter()
        work()
        return 1000 * (time.perf_counter() - start), counts["looked up"], counts["made"]


def main() -> None:
    """Print a line for each kind of work."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000, help="orders")
    parser.add_argument("--batch", type=int, default=10_000, help="rows of the batch, orders and lines")
    parser.add_argument("--times", type=int, default=24, help="applications of the batch and its inverse")
    given = parser.parse_args()
    data = tables(given.rows)
    with hj.Engine(clock="wall") as engine:
        engine.execute(DDL)
        engine.apply(data, time=1)
        gone = {"orders": data["orders"].slice(0, given.batch // 2), "lines": data["lines"].slice(0, given.batch // 2)}
        steps = {
            "batch": lambda: engine.apply({name: hj.deletes(rows) for name, rows in gone.items()}),
            "inverse": lambda: engine.apply(gone),
            "query": lambda: engine.query(JOIN),
            "read": lambda: engine.read("sold"),
        }
        for step in steps.values():  # what is made at its first use is made
            step()
        found = [{name: measured(step) for name, step in steps.items()} for _ in range(given.times)]
    print(f"{'':8} {'ms, first':>10} {'last 4':>8} {'ratio':>6}   rows looked up          rows made")
    for name in steps:
        first, last = found[0][name], found[-1][name]
        several = float(np.median([one[name][0] for one in found[-4:]]))
        print(f"{name:8} {first[0]:10.1f} {several:8.1f} {several / first[0]:6.2f}   "
              f"{first[1]:,} -> {last[1]:,}".ljust(60) + f"{first[2]:,} -> {last[2]:,}")  # fmt: skip


if __name__ == "__main__":
    main()

"""Measures many views over the same tables: what a batch costs that concerns none of them, one of them, and all.

`python -m tests.benchmarks.wide [VIEWS]` prints milliseconds of CPU a batch of one row (the median of 25 batches), for
one view and for VIEWS, and what each further view costs.
"""

from __future__ import annotations

import statistics
import sys
import time

import pyarrow as pa

import halfjoin as hj

ROWS, BATCHES = 20_000, 25
BATCH = {"over other tables": ("other", 0), "behind filters": ("line", -1), "one of them": ("line", 0)}
FILTERED = "SELECT line.id, product.price FROM line JOIN product ON line.product = product.id WHERE line.shop = {}"
EVERY = "SELECT line.id, product.price + {} AS price FROM line JOIN product ON line.product = product.id"


def filled(view: str, views: int) -> hj.Engine:
    """An engine with that many views, which differ in a constant."""
    engine = hj.Engine(clock="own")
    engine.execute("CREATE TABLE line (id bigint PRIMARY KEY, product bigint, shop bigint); CREATE TABLE product "
                   "(id bigint PRIMARY KEY, price bigint); CREATE TABLE other (id bigint PRIMARY KEY)")  # fmt: skip
    ids = pa.array(range(ROWS))
    engine.apply({"line": pa.table({"id": ids, "product": ids, "shop": pa.array([-2] * ROWS)}),
                  "product": pa.table({"id": ids, "price": ids})}, time=0)  # fmt: skip
    for number in range(views):
        engine.execute(f"CREATE MATERIALIZED VIEW v{number} AS {view.format(number)}")
    return engine


def milliseconds(engine: hj.Engine, table: str, shop: int) -> float:
    """CPU of a batch that inserts one row."""
    times, first = [], engine.stats().upper
    for at in range(first, first + BATCHES):
        row = {"id": ROWS + at, "product": at, "shop": shop} if table == "line" else {"id": at}
        started = time.process_time()
        engine.apply({table: [row]}, time=at)
        times.append(time.process_time() - started)
    return 1000 * statistics.median(times)


def main(views: int) -> None:
    """Print a table."""
    print(f"{'CPU of a batch of one row, ms':40}{'1 view':>9}{views:>7} views{'each further view':>20}")
    cases = [(f"that concerns {'none, ' if name != 'one of them' else ''}{name}", FILTERED, *which)
             for name, which in BATCH.items()]  # fmt: skip
    for name, view, table, shop in [*cases, ("that concerns all", EVERY, "line", 0)]:
        one, many = (milliseconds(filled(view, count), table, shop) for count in (1, views))
        print(f"{name:40}{one:9.2f}{many:13.2f}{(many - one) / (views - 1):20.4f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ["200"]))

"""TPC-H's 22 queries as maintained views, one by one and all together, beside DuckDB, which computes them again.

`python -m tests.benchmarks.tpch --sf 1`. One engine and DuckDB have the same tables. Each query becomes a view and gets
the same batches: orders come and go with their lines as in TPC-H's refreshes, and customers change segment. Queries
that read neither orders nor lines get parts that change their supplier. After the batches come their inverses, so each
query begins with the same contents. A view is compared with DuckDB's answer after the batches of each size.

`kept` is what a view's nodes hold beyond the tables and the view itself. `indexes` are those over the tables that its
paths look up; the views share them. `none` has no view: what a batch costs anyway. Times are medians of the whole call
in milliseconds. `times` is how much longer DuckDB takes to compute the query once.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import halfjoin as hj
from examples.recompute import Recompute, settled
from examples.tpch import COLUMNS, KEYS, QUERIES, Changes, create_table, load, query
from tests.oracle.answers import assert_same
from tests.oracle.rows import tuples

SIZES = {1: 20, 100: 6, 10_000: 1}  # rows in a batch: how many such batches in a round
ROUNDS = 2  # in each, all batches are applied, then their inverses
RECOMPUTED = 3  # times for each size
STOCK = ("q02", "q11", "q16")  # read neither orders nor lines

Batch = dict[str, pa.Table]



@dataclass
class Held:
    """What the engine holds for some views."""

    paths: int = 0
    nodes: set[str] = field(default_factory=set)
    arrangements: set[str] = field(default_factory=set)
    rows: int = 0
    bytes: int = 0
    index_bytes: int = 0


def main() -> None:
    """Print a line for each query, one for all of them, and what they share."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sf", default="1", help="TPC-H scale factor")
    scale = options.parse_args().sf
    fraction = f"{0.0001 / float(scale):.10f}".rstrip("0")
    texts = {view: query(view, fraction) for view in QUERIES}
    bench = Bench(load(scale, COLUMNS, _columns(texts.values())))
    print(f"TPC-H's queries as views at scale {scale}: {bench.rows:,} rows, {bench.bytes / 1e6:.1f} MB of tables")
    print(f"{'':5}{'':>6}{'':>6}{'':>11}{'kept':>9}{'indexes':>9}{'rows of':>9}  "
          + "".join(f"{f'batch of {size:,}':>18}" for size in SIZES))  # fmt: skip
    print(f"{'view':5}{'paths':>6}{'nodes':>6}{'rows':>11}{'MB':>9}{'MB':>9}{'the view':>9}  "
          + "".join(f"{'ms':>9}{'times':>9}" for _ in SIZES))  # fmt: skip
    bench.measure([], texts)
    alone = [bench.measure([view], texts) for view in QUERIES]
    together = bench.measure(list(QUERIES), texts)
    for what in ("arrangements", "nodes"):
        uses, distinct = sum(len(getattr(one, what)) for one in alone), len(getattr(together, what))
        print(f"all {len(alone)} views: {distinct} {what} serve {uses} uses")


def _columns(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The columns that a query names, and those of primary keys."""
    named = set(re.findall(r"\w+", " ".join(texts)))
    return {name: tuple(column for column in COLUMNS[name] if column in named or column in KEYS[name])
            for name in COLUMNS}  # fmt: skip


class Bench:
    """The engine and DuckDB with the same tables, and the batches."""

    def __init__(self, tables: dict[str, pa.Table]) -> None:
        self._engine, self._duck, self._now = hj.Engine(retain=0), Recompute(), 0
        for name, table in tables.items():
            self._engine.execute(create_table(name, table.column_names))
            self._duck.load(name, table)
        self._engine.apply(dict(tables), time=self._now)
        self.rows = sum(table.num_rows for table in tables.values())
        self.bytes = sum(one.row_bytes for one in self._engine.stats().collections)
        self._sales, self._stock = {}, {}
        for size, count in SIZES.items():
            orders = Changes(tables, size * count, seed=size)
            parts = _moved(tables["partsupp"], size * count, seed=size)
            self._sales[size] = [orders.take(size) for _ in range(count)]
            self._stock[size] = [{"partsupp": parts.slice(size * number, size)} for number in range(count)]

    def measure(self, views: list[str], texts: dict[str, str]) -> Held:
        """Make views, apply the batches, print a line, and drop the views."""
        for view in views:
            self._engine.execute(f"CREATE MATERIALIZED VIEW {view} AS {texts[view]}")
        held, shown = self._held(views), sum(self._engine.read(view).num_rows for view in views)
        name = views[0] if len(views) == 1 else "all" if views else "none"
        print(f"{name:5}{held.paths:6}{len(held.nodes):6}{held.rows:11,}{held.bytes / 1e6:9.2f}"
              f"{held.index_bytes / 1e6:9.2f}{shown:9,}  ", end="", flush=True)  # fmt: skip
        batches = self._stock if name in STOCK else self._sales
        for size in SIZES:
            ours, theirs = self._times(batches[size], {view: texts[view] for view in views})
            print(f"{ours:9.2f}{f'{theirs / ours:.1f}x' if views else '':>9}", end="", flush=True)
        print()
        for view in views:
            self._engine.execute(f"DROP MATERIALIZED VIEW {view}")
        return held

    def _times(self, batches: list[Batch], texts: dict[str, str]) -> tuple[float, float]:
        """The medians of maintaining and recomputing, in milliseconds. Ends with the contents at the beginning."""
        ours, theirs = [], []
        for number in range(ROUNDS):
            ours += [self._apply(batch) for batch in batches]
            if not number:
                for batch in batches:
                    self._duck.apply(batch)
                theirs = [sum(self._duck.run(sql)[1] for sql in texts.values()) for _ in range(RECOMPUTED)]
                for view, sql in texts.items():
                    found = self._engine.read(view)
                    expected, _ = self._duck.run(settled(sql, found.column_names))
                    assert_same(tuples(found), tuples(expected), view)
                for batch in reversed(batches):
                    self._duck.apply(_inverse(batch))
            ours += [self._apply(_inverse(batch)) for batch in reversed(batches)]
        return statistics.median(ours) * 1e3, statistics.median(theirs) * 1e3

    def _apply(self, batch: Batch) -> float:
        self._now += 1
        started = time.perf_counter()
        self._engine.apply(batch, time=self._now)
        return time.perf_counter() - started

    def _held(self, views: list[str]) -> Held:
        stats, held = self._engine.stats(), Held()
        plans = [json.loads(self._engine.explain(view, format="json")) for view in views]
        seen: set[str] = set()
        for node in (node for plan in plans for node in [*plan["nodes"], plan]):
            if node["name"] not in seen:
                held.paths += sum(len(branch) for branch in node["joins"])
            seen.add(node["name"])
        kept = {one.name: one for one in stats.collections if one.kind == "node"}
        held.nodes = seen
        held.rows = sum(one.updates for one in kept.values())
        held.bytes = sum(one.row_bytes + one.index_bytes for one in kept.values())
        used = [one for one in stats.arrangements if seen & set(one.users)]
        held.arrangements = {one.name for one in used}
        held.index_bytes = sum(one.bytes for one in used if one.collection in COLUMNS)
        return held


def _moved(partsupp: pa.Table, count: int, seed: int) -> pa.Table:
    """Rows of partsupp that go and come with another supplier, in turn, up to `count` rows."""
    part, supplier = (partsupp[column].to_numpy() for column in KEYS["partsupp"])
    other = supplier % supplier.max() + 1
    taken = set(zip(part.tolist(), supplier.tolist(), strict=True))
    free = np.array([pair not in taken for pair in zip(part.tolist(), other.tolist(), strict=True)])
    chosen = np.random.default_rng(seed).permutation(np.flatnonzero(free))[: count // 2]
    goes = partsupp.take(chosen)
    comes = goes.set_column(goes.schema.get_field_index("ps_suppkey"), "ps_suppkey", pa.array(other[chosen]))
    order = np.arange(2 * len(chosen)).reshape(2, -1).T.ravel()
    diff = pa.array(np.tile([-1, 1], len(chosen)))
    return pa.concat_tables([goes, comes]).take(order).append_column("__diff", diff)


def _inverse(batch: Batch) -> Batch:
    return {name: rows.set_column(rows.schema.get_field_index("__diff"), "__diff", pc.negate(rows["__diff"]))
            for name, rows in batch.items()}  # fmt: skip


if __name__ == "__main__":
    main()

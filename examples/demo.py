"""Maintain eight views over TPC-H's eight tables while days pass, and recompute them for comparison. See `make demo`.

Spark loads the tables into a warehouse, `demo-warehouse/sf0.1`. The batches after that run in this process. A second
run opens the warehouse and continues with the next days. `SF=1 make demo` takes a larger scale factor. Time is in
milliseconds since 1970, with one batch a day from 1995-03-15 on, so that the temporal filter moves with the days. At
the end the demo checks every view against recomputation, and writes pictures of the plans and latencies to `demo.html`.
"""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import halfjoin as hj
from examples.demo_page import page
from examples.recompute import Recompute, settled
from examples.tpch import COLUMNS, KEYS, Changes, create_table, generated, query

DAY = 86_400_000
START = 795_225_600_000  # 1995-03-15
SIZES = (1, 10, 100, 1_000) * 6  # changed rows in each batch

CHANGE_TABLE = """
    CREATE TABLE customer_changes (before_key bigint, before_segment text, after_key bigint, after_segment text)
"""
VIEWS = {
    **{view: query(view) for view in ("q03", "q05", "q10", "q18")},
    "brass_supply": """
SELECT p_partkey, p_mfgr, s_name, n_name, r_name, ps_supplycost
FROM part, partsupp, supplier, nation, region
WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
  AND p_size = 15 AND p_type LIKE '%BRASS'
""",
    "days_in_transit": """
SELECT l_orderkey, l_linenumber, d.day
FROM lineitem, generate_series(l_shipdate, l_receiptdate, interval '1 day') AS d(day)
WHERE l_shipmode = 'AIR' AND l_quantity = 50
""",
    "recent_orders": """
SELECT o_orderkey, o_custkey, o_orderdate
FROM orders
WHERE o_orderdate <= mz_now() AND mz_now() < o_orderdate + interval '90 days'
""",
    "segments": """
SELECT before_key AS custkey, before_segment AS segment FROM customer_changes, repeat_row(-1)
WHERE before_key IS NOT NULL
UNION ALL
SELECT after_key AS custkey, after_segment AS segment FROM customer_changes, repeat_row(1)
WHERE after_key IS NOT NULL
""",
}


def in_duckdb(view: str, now: int) -> str:
    """The SQL with which DuckDB computes the view from scratch at a time."""
    if view == "recent_orders":
        return (f"SELECT o_orderkey, o_custkey, o_orderdate FROM orders WHERE epoch_ms(o_orderdate) <= {now} "
                f"AND {now} < epoch_ms(o_orderdate + interval '90 days')")  # fmt: skip
    if view == "days_in_transit":
        return ("SELECT l_orderkey, l_linenumber, unnest(generate_series(l_shipdate::timestamp, "
                "l_receiptdate::timestamp, interval '1 day')) AS day "
                "FROM lineitem WHERE l_shipmode = 'AIR' AND l_quantity = 50")  # fmt: skip
    if view == "segments":
        return ("SELECT after_key, after_segment FROM customer_changes WHERE after_key IS NOT NULL EXCEPT ALL "
                "SELECT before_key, before_segment FROM customer_changes WHERE before_key IS NOT NULL")  # fmt: skip
    return VIEWS[view]


def load_in_bulk(engine: hj.Engine, scale: str, progress: Progress) -> None:
    """Load the tables and fill the views with Spark. Continues where an earlier run stopped."""
    from pyspark.sql import functions as F

    folder = generated(scale)
    there = {item.name for item in engine.stats().collections}
    task = progress.add_task("load", total=len(COLUMNS) + 1 + len(VIEWS))
    for name in (*COLUMNS, "customer_changes"):
        progress.update(task, description=f"load {name}")
        if name not in there:
            engine.execute(CHANGE_TABLE if name == "customer_changes" else create_table(name))
        source = "customer" if name == "customer_changes" else name
        rows = engine.spark.read.parquet(str(folder / f"{source}.parquet"))
        if name == "customer_changes":
            rows = rows.select(F.col("c_custkey").alias("after_key"), F.col("c_mktsegment").alias("after_segment"))
        engine.apply({name: rows}, time=START, close=False, batch_id=f"load {name}")
        progress.advance(task)
    if engine.stats().upper <= START:
        engine.advance(to=START + 1)
    for name, sql in VIEWS.items():
        progress.update(task, description=f"fill {name}")
        if name not in there:
            engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
        progress.advance(task)
    progress.update(task, description="loaded and filled")


@dataclass
class Batch:
    """The figures of one batch."""

    rows: int
    seconds: float
    recomputed: float
    changed: dict[str, int]


@dataclass
class Demo:
    """The engine, DuckDB with the same tables, and the figures of the batches."""

    console: Console
    scale: str
    engine: hj.Engine
    duckdb: Recompute = field(default_factory=Recompute)
    batches: list[Batch] = field(default_factory=list)
    first: int = START  # the day before the batches of this run
    now: int = START

    def beside(self, progress: Progress) -> Changes:
        """Load the same tables into DuckDB, and prepare changes of their rows."""
        self.first = self.now = self.engine.stats().upper - 1
        task = progress.add_task("beside", total=len(COLUMNS) + 1)
        tables = {}
        for name in (*COLUMNS, "customer_changes"):
            progress.update(task, description=f"{name} into DuckDB")
            tables[name] = self.engine.read(name)
            self.duckdb.load(name, tables[name])
            progress.advance(task)
        progress.update(task, description="the same in DuckDB")
        ordered = {name: tables[name].sort_by([(key, "ascending") for key in KEYS[name]]) for name in COLUMNS}
        return Changes(ordered, sum(SIZES), seed=self.now // DAY)

    def run(self, changes: Changes, progress: Progress) -> None:
        """Apply a batch a day: maintain the views here, recompute them there."""
        task = progress.add_task("batches", total=len(SIZES))
        suppliers = self.engine.read("supplier").sort_by("s_suppkey")
        for number, size in enumerate(SIZES):
            self.now += DAY
            batch = changes.take(size)
            if "customer" in batch:
                batch["customer_changes"] = change_events(batch["customer"])
                batch["supplier"] = moved(suppliers.slice(number, 1))
            applied = self.engine.apply(batch, time=self.now, batch_id=f"day {self.now // DAY}")
            self.duckdb.apply(batch)
            recomputed = sum(self.duckdb.run(in_duckdb(view, self.now))[1] for view in VIEWS)
            changed = {view: rows.num_rows for view, rows in applied.diffs.items()}
            self.batches.append(Batch(sum(map(len, batch.values())), applied.seconds, recomputed, changed))
            progress.advance(task)

    def show(self) -> None:
        """Print the changes of each batch, the shared arrangements, and contents as of three times."""
        changes = Table(title="A batch a day: rows of each view that changed, and milliseconds", header_style="bold")
        for title in ("rows", *VIEWS, "maintain", "recompute"):
            changes.add_column(title, justify="right")
        for batch in self.batches:
            counts = [f"{batch.changed.get(view, 0):,}" for view in VIEWS]
            changes.add_row(f"{batch.rows:,}", *counts, f"{batch.seconds * 1e3:.1f}", f"{batch.recomputed * 1e3:.0f}")
        self.console.print(changes)

        shared = Table(title="Arrangements of tables, and who shares them", header_style="bold")
        for title in ("arrangement", "entries", "bytes", "users"):
            shared.add_column(title, justify="right" if title in ("entries", "bytes") else "left")
        stats = self.engine.stats()
        views = {node.name: node.users for node in stats.collections if node.kind == "node"}
        for item in stats.arrangements:
            if item.collection in views:  # what a view keeps for itself, such as the sums of its groups
                continue
            users = dict.fromkeys(view for user in item.users for view in views.get(user, [user]))
            shared.add_row(item.name, f"{item.rows:,}", f"{item.bytes:,}", ", ".join(users))
        self.console.print(shared)

        times = (self.first, self.first + len(SIZES) // 2 * DAY, self.now)
        contents = Table(title="Rows as of three times", header_style="bold")
        contents.add_column("view")
        for at in times:
            contents.add_column(time.strftime("%Y-%m-%d", time.gmtime(at / 1000)), justify="right")
        for view in VIEWS:
            contents.add_row(view, *(f"{self.engine.read(view, as_of=at).num_rows:,}" for at in times))
        self.console.print(contents)

    def check(self) -> str:
        """Check every view against recomputation. Returns the verdict, with the latencies of both."""
        for view in VIEWS:
            found = self.engine.read(view)
            if not self.duckdb.same(settled(in_duckdb(view, self.now), found.column_names), found):
                raise SystemExit(f"{view} differs from its recomputation")
        ours = statistics.median(batch.seconds for batch in self.batches) * 1e3
        theirs = statistics.median(batch.recomputed for batch in self.batches) * 1e3
        verdict = (
            f"All {len(VIEWS)} views are what recomputing them gives. Median of a batch over all views: "
            f"{ours:.1f} ms maintained, {theirs:.0f} ms recomputed, {theirs / ours:.1f} x."
        )
        self.console.print(verdict, style="bold green")
        return verdict


def change_events(customers: pa.Table) -> pa.Table:
    """Customers with `__diff` as events with before and after images. The two images of a customer are one event."""
    sides = []
    for side, diff in (("before", -1), ("after", 1)):
        rows = customers.filter(pc.equal(customers["__diff"], diff)).select(["c_custkey", "c_mktsegment"])
        rows = rows.append_column(f"{side}_key", rows["c_custkey"])
        sides.append(rows.rename_columns(["key", f"{side}_segment", f"{side}_key"]))
    events = sides[0].join(sides[1], "key", join_type="full outer")
    return events.select(["before_key", "before_segment", "after_key", "after_segment"])


def moved(supplier: pa.Table) -> pa.Table:
    """A supplier that moves to the next nation: its old row goes, a new one comes."""
    nation = pc.bit_wise_and(pc.add(supplier["s_nationkey"], 1), 15)
    new = supplier.set_column(supplier.schema.get_field_index("s_nationkey"), "s_nationkey", nation)
    return pa.concat_tables([supplier, new]).append_column("__diff", pa.array([-1, 1]))


def main() -> None:
    """Open the warehouse, load it if necessary, run, show, check, and write the page."""
    console = Console(width=None if os.isatty(1) else 140)
    scale = os.environ.get("SF", "0.1")
    warehouse = Path("demo-warehouse") / f"sf{scale}"
    console.print(f"TPC-H at scale {scale}: {len(VIEWS)} views, {len(SIZES)} batches, in {warehouse}")
    bars = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*bars, console=console) as progress:
        with hj.Engine(warehouse, retain=90 * DAY, runner="spark") as engine:
            if VIEWS.keys() <= {item.name for item in engine.stats().collections}:
                console.print("The warehouse is there from an earlier run, which this one continues.")
            else:
                load_in_bulk(engine, scale, progress)
        with hj.Engine(warehouse, retain=90 * DAY) as engine:
            _demonstrate(Demo(console, scale, engine), progress)


def _demonstrate(demo: Demo, progress: Progress) -> None:
    console = demo.console
    demo.run(demo.beside(progress), progress)
    progress.stop()
    demo.show()
    verdict = demo.check()
    latencies = [(batch.rows, batch.seconds * 1e3, batch.recomputed * 1e3) for batch in demo.batches]
    target = Path("demo.html")
    views = {view: (sql, demo.engine.explain(view, format="html")) for view, sql in VIEWS.items()}
    target.write_text(page(f"TPC-H at scale {demo.scale}, maintained", verdict, latencies, views))
    console.print(f"Plans and latencies: {target}")


if __name__ == "__main__":
    main()

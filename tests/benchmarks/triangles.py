"""Cyclic joins in a graph with hubs, beside a fixed order and DuckDB: `python -m tests.benchmarks.triangles`.

The graph has some hubs, each with an edge to or from a tenth of all nodes, and random edges besides. A batch takes as
many edges away as it brings, and half of the new ones are at a hub. For each view and size of a batch it prints the
milliseconds of CPU to maintain the view (the median), and how many rows lookups found for each row of the batch and of
the change of the view: where rows choose their order, and in the order that is best on average. Beside them it prints
what DuckDB takes to compute the view from the edges; its answer must be the view. A fixed order takes minutes to fill
the view of cliques, so it is left out there.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import halfjoin as hj
from halfjoin.planner.choices import Choices

Edges = NDArray[np.int64]  # from, to: one row for each edge
SIZES = {1: 20, 100: 10, 10_000: 3}

CLIQUES = "cliques of 4"
VIEWS = {
    "triangles": """
        SELECT a.x AS p, a.y AS q, b.y AS r FROM e a, e b, e c WHERE a.y = b.x AND b.y = c.y AND a.x = c.x""",
    "of each node": """
        SELECT a.x AS p, count(*) AS n FROM e a, e b, e c WHERE a.y = b.x AND b.y = c.y AND a.x = c.x GROUP BY a.x""",
    CLIQUES: """
        SELECT ab.x AS p, ab.y AS q, cd.x AS r, cd.y AS s FROM e ab, e ac, e ad, e bc, e bd, e cd
        WHERE ab.x = ac.x AND ac.x = ad.x AND ab.y = bc.x AND bc.x = bd.x AND ac.y = bc.y AND bc.y = cd.x
        AND ad.y = bd.y AND bd.y = cd.y""",
}


def main() -> None:
    """Print a table for each view."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--edges", type=int, default=100_000, help="random edges")
    options.add_argument("--hubs", type=int, default=8, help="nodes with an edge to or from a tenth of all nodes")
    options.add_argument("--largest", type=int, default=10_000, help="the largest batch")
    options.add_argument("--largest-fixed", type=int, default=100, help="the largest batch in a fixed order")
    given = options.parse_args()
    nodes = max(given.edges // 4, 100)
    print(f"{given.edges:,} random edges, {nodes:,} nodes, {given.hubs} hubs")
    print(f"{'':14}{'changed':>8}{'made':>9}{'ms':>9}{'found':>9}{'fixed ms':>10}{'found':>9}{'ratio':>8}"
          f"{'DuckDB':>9}{'ratio':>8}")  # fmt: skip
    for name, sql in VIEWS.items():
        ours = measure(sql, given.edges, nodes, given.hubs, given.largest)
        with fixed():
            most = min(given.largest, given.largest_fixed)
            theirs = {} if name == CLIQUES else measure(sql, given.edges, nodes, given.hubs, most)
        for size, (ms, found, made, duck) in ours.items():
            line = f"{name if size == min(ours) else '':14}{size:8,}{made:9,.0f}{ms:9.2f}{found:9.2f}"
            if size in theirs:
                slow, more, _, _ = theirs[size]
                line += f"{slow:10.1f}{more:9,.1f}{slow / ms:7.1f}x"
            else:
                line += f"{'':27}"
            print(line + f"{duck:9.0f}{duck / ms:7.1f}x", flush=True)


@contextmanager
def fixed() -> Iterator[None]:
    """Plan no choices."""
    stages = Choices.stages
    Choices.stages = lambda *_: None  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        Choices.stages = stages  # type: ignore[method-assign]


def measure(sql: str, count: int, nodes: int, hubs: int, largest: int) -> dict[int, tuple[float, float, float, float]]:
    """For each size of a batch: the milliseconds; the rows found for each row that comes in or goes out; the rows that
    the view changes by; and the milliseconds of DuckDB."""
    random, medians = np.random.default_rng(1), dict[int, tuple[float, float, float, float]]()
    edges = np.unique(np.concatenate([random.integers(0, nodes, (count, 2)), *(
        np.stack([np.full(nodes // 10, hub), random.integers(0, nodes, nodes // 10)][:: 1 - 2 * (hub % 2)], 1)
        for hub in range(hubs))]), axis=0)  # fmt: skip
    engine = hj.Engine(retain=0)
    engine.execute("CREATE TABLE e (x bigint, y bigint)")
    engine.apply({"e": table(edges)}, time=1)
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    now = 1
    for size, batches in SIZES.items():
        taken, found, made = list[float](), list[float](), list[int]()
        for _ in range(batches if size <= largest else 0):
            edges, batch = changed(edges, size, nodes, hubs, random)
            now += 1
            started = time.process_time()
            applied = engine.apply({"e": batch}, time=now)
            taken.append((time.process_time() - started) * 1e3)
            made.append(len(applied.diffs["v"]))
            work = sum(one.found for one in engine.activity().recent[-1].nodes.values())
            found.append(work / (len(batch) + made[-1]))
        if taken:
            duck = in_duckdb(sql, edges, engine.read("v"))
            medians[size] = statistics.median(taken), statistics.median(found), statistics.median(made), duck
    return medians


def changed(edges: Edges, size: int, nodes: int, hubs: int, random: np.random.Generator) -> tuple[Edges, pa.Table]:
    """The edges after a batch, and the batch: random edges go, and others come, every second one at a hub."""
    gone = np.zeros(len(edges), np.bool_)
    gone[random.choice(len(edges), size, replace=False)] = True
    new = random.integers(0, nodes, (size, 2))
    at_hub = random.random(size) < 0.5
    new[at_hub, random.integers(0, 2)] = random.integers(0, hubs, int(at_hub.sum()))
    diff = np.repeat([-1, 1], size)
    batch = np.concatenate([edges[gone], new])
    return np.concatenate([edges[~gone], new]), table(batch).append_column("__diff", pa.array(diff))


def table(edges: Edges) -> pa.Table:
    return pa.table({"x": edges[:, 0].copy(), "y": edges[:, 1].copy()})


def in_duckdb(sql: str, edges: Edges, view: pa.Table) -> float:
    """The milliseconds in which DuckDB computes the view. It must have the same rows."""
    connection = duckdb.connect(config={"threads": 1})
    connection.register("loaded", table(edges))
    connection.register("view", view)
    connection.execute("CREATE TABLE e AS SELECT * FROM loaded")
    started = time.process_time()
    connection.execute(f"CREATE TABLE v AS {sql}")
    taken = time.process_time() - started
    sql = "SELECT count(*) FROM ((FROM v EXCEPT ALL FROM view) UNION ALL (FROM view EXCEPT ALL FROM v))"
    ((differing,),) = connection.execute(sql).fetchall()
    if differing:
        raise SystemExit(f"the view differs from DuckDB's answer in {differing} rows")
    return taken * 1e3


if __name__ == "__main__":
    main()

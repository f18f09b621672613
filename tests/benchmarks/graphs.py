"""Recursive views over graphs: edges change, beside computing the answer again. `python -m tests.benchmarks.graphs`.

For each view and size of a batch it prints the milliseconds to maintain the view, the median and the most, the rounds
and the changed rows of all nodes of its loop, and beside them the milliseconds that DuckDB and SciPy take to compute
the answer from the edges. A batch takes as many edges away as it brings. The graphs are a random one, in which new
edges come, and the roads of the world as the package `scgraph_data` ships them (OpenStreetMap), of which some are
closed until the next batch. DuckDB may take a minute for a problem. At the end each view is compared with SciPy's
answer. Where cargo is installed, differential-dataflow computes the same in Rust, on a random graph of the same size.

The label of a component is the least of its nodes' labels, which are in random order. The first label enters in round
0, twice as many in each group after it, and a group as many rounds after the one before as `late` says: two for the
random graph, where a few rounds reach all nodes, and 32 for the roads. So most nodes see the least label first.
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

import halfjoin as hj
from halfjoin.engine.loop.rounds import Pass
from tests.benchmarks.roads import roads
from tests.benchmarks.rust import differential

Edges = NDArray[np.int64]  # from, to: one row for each edge
Labels = NDArray[np.int64]
SIZES = {1: 30, 100: 10, 10_000: 2}
ROOT = 0
PATIENCE = 60  # seconds for DuckDB


@dataclass(frozen=True)
class Problem:
    """A view, the query of DuckDB that computes the same, and SciPy's function of the graph and the labels of its
    nodes: a value for each node."""

    view: str
    duck: str
    scipy: Callable[[sparse.csr_array, Labels], NDArray[np.float64]]


REACHED = """
    WITH RECURSIVE r(n) AS (
        SELECT n FROM roots UNION SELECT e.b FROM r JOIN edges e ON e.a = r.n)
    SELECT n, 0::bigint AS value FROM r"""

PROBLEMS = {
    "reachable": Problem(REACHED, REACHED, lambda graph, _: np.where(np.isinf(_hops(graph)), np.inf, 0)),
    "fewest edges": Problem(
        """
        WITH MUTUALLY RECURSIVE r (n bigint, d bigint) AS (
            SELECT n, min(d) FROM (
                SELECT n, 0::bigint AS d FROM roots UNION ALL SELECT e.b, r.d + 1 FROM r JOIN edges e ON e.a = r.n)
            GROUP BY n)
        SELECT n, d AS value FROM r""",
        """
        WITH RECURSIVE r(n, d) USING KEY (n) AS (
            SELECT n, 0::bigint FROM roots
            UNION (
                SELECT e.b, min(r.d) + 1 FROM r JOIN edges e ON e.a = r.n LEFT JOIN recurring.r known ON known.n = e.b
                WHERE known.n IS NULL GROUP BY e.b))
        SELECT n, d AS value FROM r""",
        lambda graph, _: _hops(graph),
    ),
    # The least label wins. Labels enter one after the other, so that most nodes see no other than that.
    "components": Problem(
        """
        WITH MUTUALLY RECURSIVE
            tick (k bigint) AS (
                SELECT 0::bigint UNION SELECT k + 1 FROM tick WHERE k < (SELECT max(late) FROM nodes)),
            label (n bigint, l bigint) AS (
                SELECT n, min(l) FROM (
                    SELECT nodes.n, nodes.label AS l FROM tick JOIN nodes ON nodes.late = tick.k
                    UNION ALL SELECT e.b, label.l FROM label JOIN edges e ON e.a = label.n
                    UNION ALL SELECT e.a, label.l FROM label JOIN edges e ON e.b = label.n)
                GROUP BY n)
        SELECT n, l AS value FROM label""",
        """
        WITH RECURSIVE ways AS (SELECT a, b FROM edges UNION ALL SELECT b, a FROM edges),
        label(n, l) USING KEY (n) AS (
            SELECT n, label FROM nodes
            UNION (
                SELECT e.b, min(label.l)
                FROM label JOIN ways e ON e.a = label.n JOIN recurring.label known ON known.n = e.b
                WHERE label.l < known.l GROUP BY e.b))
        SELECT n, l AS value FROM label""",
        lambda graph, label: _least_of_component(graph, label),
    ),
}  # fmt: skip


@dataclass
class Counter:
    """What the last batch did in its loop."""

    rounds: set[tuple[int, ...]] = field(default_factory=set)
    rows: int = 0


@contextmanager
def counted() -> Iterator[Counter]:
    """Count the rounds of loops, and the rows that change in them."""
    counter, run, take = Counter(), Pass.run, Pass._take

    def counting_run(self: Pass) -> object:
        made = run(self)
        counter.rows += sum(len(output) for output, _ in made.values())
        return made

    def counting_take(self: Pass, name: str, round: tuple[int, ...]) -> None:
        counter.rounds.add(round)
        take(self, name, round)

    Pass.run, Pass._take = counting_run, counting_take  # type: ignore[method-assign,assignment]
    try:
        yield counter
    finally:
        Pass.run, Pass._take = run, take  # type: ignore[method-assign]


def main() -> None:
    """Print a table for each graph."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--edges", type=int, default=1_000_000, help="edges of the random graph; 0: without it")
    options.add_argument("--degree", type=int, default=4, help="its edges for each node")
    options.add_argument("--no-roads", action="store_true", help="without the roads")
    options.add_argument("--largest", type=int, default=10_000, help="the largest batch")
    given = options.parse_args()
    random = np.random.default_rng(1)
    if given.edges:
        nodes = max(given.edges // given.degree, 2)
        edges = np.unique(random.integers(0, nodes, (given.edges, 2)), axis=0)
        ours = measure("a random graph", edges, nodes, random, given.largest, late=2, fresh=True)
        if (theirs := differential(given.edges, nodes, given.largest)) is not None:
            print("the same problems with differential-dataflow in Rust, on a random graph of that size")
            print(f"{'':14}{'changed':>8}{'ms':>10}{'maintain':>10}{'ratio':>9}")
            for (name, size), ms in theirs.items():
                taken = ours[name, size]
                print(f"{name if size == 'fill' else '':14}{size:>8}{ms:10.2f}{taken:10.1f}{taken / ms:8.1f}x")
            print()
    if not given.no_roads:
        edges, nodes = roads()
        measure("the roads of the world", edges, nodes, random, given.largest, late=32, fresh=False)


def measure(
    title: str, edges: Edges, nodes: int, random: np.random.Generator, largest: int, *, late: int, fresh: bool
) -> dict[tuple[str, str], float]:
    """Print what each problem takes on a graph. `fresh`: new edges come, not those that went with the batch before.
    Returns the milliseconds of each fill, and the median of each size of a batch."""
    medians: dict[tuple[str, str], float] = {}
    print(f"{title}: {len(edges):,} edges, {nodes:,} nodes")
    print(f"{'':14}{'changed':>8}{'ms':>10}{'most':>10}{'rounds':>8}{'rows':>11}{'DuckDB':>9}{'ratio':>9}{'SciPy':>9}{'ratio':>9}")
    engine = hj.Engine(retain=0)
    engine.execute("CREATE TABLE edges (a bigint, b bigint); CREATE TABLE roots (n bigint)")
    engine.execute("CREATE TABLE nodes (n bigint, label bigint, late bigint)")
    label = random.permutation(nodes)
    enters = late * np.floor(np.log2(label + 1)).astype(np.int64)
    tables = {"nodes": pa.table({"n": np.arange(nodes), "label": label, "late": enters}),
              "roots": pa.table({"n": [ROOT]})}  # fmt: skip
    engine.apply({**tables, "edges": _table(edges)}, time=1)
    now, closed = 1, edges[:0]
    for name, problem in PROBLEMS.items():
        duck = _duck(problem.duck, tables, edges)
        started = time.perf_counter()
        engine.execute(f"CREATE MATERIALIZED VIEW measured AS {problem.view}")
        medians[name, "fill"] = (time.perf_counter() - started) * 1e3
        print(f"{name:14}{'fill':>8}{medians[name, 'fill']:10.0f}", flush=True)
        for size, count in SIZES.items():
            if size > largest:
                continue
            taken, rounds, rows = list[float](), list[int](), list[int]()
            for _ in range(count):
                new = random.integers(0, nodes, (size, 2)) if fresh else closed
                edges, closed, batch = _changed(edges, size, new, random)
                now += 1
                with counted() as counter:
                    started = time.perf_counter()
                    engine.apply({"edges": batch}, time=now)
                    taken.append(time.perf_counter() - started)
                rounds.append(len(counter.rounds))
                rows.append(counter.rows)
            expected, scipy = _scipy(problem, edges, label)
            ours = statistics.median(taken)
            medians[name, f"{size}"] = ours * 1e3
            print(f"{'':14}{size:8,}{ours * 1e3:10.1f}{max(taken) * 1e3:10.1f}{statistics.median(rounds):8.0f}"
                  f"{statistics.median(rows):11,.0f}{_told(duck):>9}{duck / ours:8.1f}x{scipy * 1e3:9.0f}"
                  f"{scipy / ours:8.1f}x", flush=True)  # fmt: skip
        _compare(engine.read("measured"), expected)
        engine.execute("DROP MATERIALIZED VIEW measured")
    print()
    return medians


def _changed(edges: Edges, size: int, new: Edges, random: np.random.Generator) -> tuple[Edges, Edges, pa.Table]:
    """The edges after a batch, those that went, and the batch: some go, and the new ones come."""
    gone = np.zeros(len(edges), np.bool_)
    gone[random.choice(len(edges), size, replace=False)] = True
    batch = pa.concat_tables([_table(edges[gone]), _table(new)])
    diff = pa.array(np.repeat([-1, 1], [size, len(new)]))
    return np.concatenate([edges[~gone], new]), edges[gone], batch.append_column("__diff", diff)


def _table(edges: Edges) -> pa.Table:
    return pa.table({"a": edges[:, 0].copy(), "b": edges[:, 1].copy()})


def _duck(sql: str, tables: dict[str, pa.Table], edges: Edges) -> float:
    """The seconds in which DuckDB computes the answer, or those after which it is stopped."""
    connection = duckdb.connect()
    for name, rows in {**tables, "edges": _table(edges)}.items():
        connection.register("loaded", rows)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM loaded")
        connection.unregister("loaded")
    started, stop = time.perf_counter(), threading.Timer(PATIENCE, connection.interrupt)
    stop.start()
    with suppress(duckdb.InterruptException):
        connection.sql(sql).to_arrow_table()
    stop.cancel()
    return time.perf_counter() - started


def _told(seconds: float) -> str:
    return f"> {PATIENCE * 1e3:.0f}" if seconds > PATIENCE else f"{seconds * 1e3:.0f}"


def _scipy(problem: Problem, edges: Edges, label: Labels) -> tuple[NDArray[np.float64], float]:
    """SciPy's answer, and the seconds that it takes from the edges on."""
    started = time.perf_counter()
    ones = np.ones(len(edges), np.int8)
    graph = sparse.csr_array((ones, (edges[:, 0], edges[:, 1])), shape=(len(label), len(label)))
    answer = problem.scipy(graph, label)
    return answer, time.perf_counter() - started


def _hops(graph: sparse.csr_array) -> NDArray[np.float64]:
    found: NDArray[np.float64] = csgraph.dijkstra(graph, unweighted=True, indices=ROOT)
    return found


def _least_of_component(graph: sparse.csr_array, label: Labels) -> NDArray[np.float64]:
    count, component = csgraph.connected_components(graph, directed=False)
    least = np.full(count, len(label))
    np.minimum.at(least, component, label)
    found: NDArray[np.float64] = least[component].astype(np.float64)
    return found


def _compare(found: pa.Table, expected: NDArray[np.float64]) -> None:
    """Compare a view with the answer of SciPy: a value for each node, infinite for one that is not in the view."""
    own = np.full(len(expected), np.inf)
    own[found["n"].to_numpy()] = found["value"].to_numpy()
    if found.num_rows != np.isfinite(own).sum() or not (own == expected).all():
        raise SystemExit("the view differs from SciPy's answer")


if __name__ == "__main__":
    main()

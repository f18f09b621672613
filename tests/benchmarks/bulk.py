"""TPC-H Q3's join in bulk on Spark: its first fill, and a change of 500,000 rows, against recomputing it in Spark.

`python -m tests.benchmarks.bulk --sf 1`. A warehouse has tables with Q3's columns and primary keys. The changes come as
DataFrames, and the engine checks them like any batch. Recomputing reads the same rows from plain Parquet files without
times and keys, and writes the view's rows. Both take turns in one session. The program prints medians in seconds: with
two cores, and beside those with one core.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import halfjoin as hj
from examples.recompute import Recompute
from examples.tpch import Q3_COLUMNS, Q3_LINES, Changes, create_table, load
from halfjoin.engine.spark.session import start_session

ROWS = 500_000
CORES = (1, 2)  # those of the sessions, one after the other


def main() -> None:
    """Print both ratios, and how both sides gain from a second core."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sf", default="1", help="TPC-H scale factor")
    options.add_argument("--rows", default=ROWS, type=int, help="of a change")
    options.add_argument("--rounds", default=4, type=int, help="of which the first warms up and does not count")
    given = options.parse_args()
    found = {}
    for cores in CORES:
        session = start_session(cores)
        found[cores] = _measured(session, given)
        session.stop()
    most = found[CORES[-1]]
    print(f"TPC-H Q3's join at scale {given.sf}, on Spark with {CORES[-1]} cores; medians in seconds")
    print(f"{'':30} {'halfjoin':>9} {'recompute':>10} {'ratio':>6}")
    for pair in most:
        print(pair)
    print(f"\nThe same on local[{CORES[0]}] and local[{CORES[-1]}]; medians in seconds")
    print(f"{'':30} {'halfjoin':>20} {'recompute':>20}")
    print(f"{'':30}" + 2 * (f" {f'{CORES[0]} core':>7} {f'{CORES[-1]} cores':>7}" + 5 * " "))
    for one, two in zip(found[CORES[0]], most, strict=True):
        sides = zip(one.medians, two.medians, strict=True)
        print(f"{one.name:30}" + "".join(f" {a:7.2f} {b:7.2f} {a / b:4.1f}x" for a, b in sides))


def _measured(session: Any, given: argparse.Namespace) -> list[_Pair]:
    """The seconds of a first fill and of changes in one session."""
    tables = load(given.sf, Q3_COLUMNS, Q3_COLUMNS)
    changes = Changes(tables, 2 * given.rows * given.rounds, seed=1)
    plain = Recompute()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with hj.Engine(folder / "warehouse", runner="local") as engine:
            for table, rows in tables.items():
                plain.load(table, rows)
                engine.execute(create_table(table, Q3_COLUMNS[table]))
                engine.apply({table: rows})
            engine.flush()
        del tables
        pairs = []
        with hj.Engine(folder / "warehouse", spark=session, runner="spark") as engine:
            recompute = _recomputing(session, plain, folder)
            fills = _Pair("first fill")
            pairs.append(fills)
            for number in range(given.rounds):
                sql = f"CREATE MATERIALIZED VIEW fill{number} AS {Q3_LINES}"
                fills.add(_seconds(lambda sql=sql: engine.execute(sql)), _seconds(recompute))  # type: ignore[misc]
                engine.execute(f"DROP MATERIALIZED VIEW fill{number}")
            engine.execute(f"CREATE MATERIALIZED VIEW q3 AS {Q3_LINES}")
        for runner in ("spark", "auto"):
            with hj.Engine(folder / "warehouse", spark=session, runner=runner) as engine:  # type: ignore[arg-type]
                pair = _Pair(f"change of {given.rows:,} rows, {runner}")
                pairs.append(pair)
                for number in range(given.rounds):
                    batch = changes.take(given.rows)
                    plain.apply(batch)
                    recompute = _recomputing(session, plain, folder)
                    frames = {table: _frame(session, rows, folder / f"{runner} {number}" / table)
                              for table, rows in batch.items()}  # fmt: skip
                    pair.add(_seconds(lambda e=engine, f=frames: e.apply(f)), _seconds(recompute))  # type: ignore[misc]
                if not plain.same(Q3_LINES, engine.read("q3")):
                    raise SystemExit("the maintained view differs from the recomputed one")
    return pairs


class _Pair:
    """Seconds of both sides, without the first pair."""

    def __init__(self, name: str) -> None:
        self.name, self._both = name, list[tuple[float, float]]()

    def add(self, ours: float, theirs: float) -> None:
        self._both.append((ours, theirs))

    @property
    def medians(self) -> tuple[float, float]:
        """Our seconds, and those of recomputing."""
        ours, theirs = (statistics.median(pair[side] for pair in self._both[1:]) for side in (0, 1))
        return ours, theirs

    def __str__(self) -> str:
        ours, theirs = self.medians
        return f"{self.name:30} {ours:9.2f} {theirs:10.2f} {ours / theirs:5.1f}x"


def _recomputing(session: Any, plain: Recompute, folder: Path) -> Callable[[], None]:
    """Spark's own evaluation of the view over the tables' current rows."""
    for table in Q3_COLUMNS:
        path = folder / "plain" / f"{table}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(plain.run(f"SELECT * FROM {table}")[0], path, row_group_size=1 << 17)
        session.read.parquet(str(path)).createOrReplaceTempView(table)
    out = str(folder / "recomputed")
    return lambda: session.sql(Q3_LINES).write.mode("overwrite").parquet(out)


def _frame(session: Any, rows: pa.Table, folder: Path) -> Any:
    folder.mkdir(parents=True)
    pq.write_table(rows, folder / "rows.parquet", row_group_size=1 << 17)
    return session.read.parquet(str(folder))


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()

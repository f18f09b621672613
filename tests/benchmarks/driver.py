"""What this process holds while Spark applies a change: its peak memory, for changes of three sizes.

`python -m tests.benchmarks.driver`. Each size runs in a process of its own: a table of as many rows, a view that joins
it with another, and the change itself, a DataFrame. The memory is Python's; the JVM of a local session also carries the
tasks, which is no driver's work.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile

import halfjoin as hj
from halfjoin.engine.spark.session import start_session

SIZES = (100_000, 1_000_000, 5_000_000)


def main() -> None:
    """Print a line for each size."""
    print(f"{'changed rows':>12} {'view rows changed':>18} {'peak memory, MB':>16}")
    for size in SIZES:
        command = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.driver", str(size)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        changed, peak = map(int, done.stdout.split())
        print(f"{size:12,} {changed:18,} {peak / 1e6:16.0f}", flush=True)


def measure(size: int) -> None:
    """Print how many rows of the view changed, and the peak in bytes."""
    session = start_session()
    with tempfile.TemporaryDirectory() as folder, hj.Engine(folder, spark=session, runner="spark") as engine:
        engine.execute("CREATE TABLE a (k bigint PRIMARY KEY, x bigint)")
        engine.execute("CREATE TABLE b (k bigint PRIMARY KEY, y bigint)")
        engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a.k, x + y AS s FROM a, b WHERE a.k = b.k")
        engine.apply({"a": session.sql(f"SELECT id AS k, id AS x FROM range({size})")})
        applied = engine.apply({"b": session.sql(f"SELECT id AS k, id AS y FROM range({size})")})
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(applied.dataframe("v").count(), peak)


if __name__ == "__main__":
    measure(int(sys.argv[1])) if len(sys.argv) > 1 else main()

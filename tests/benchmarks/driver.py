"""Measure the driver's memory while Spark applies changes of three sizes: its Python's memory and Java's heap.

`python -m tests.benchmarks.driver`. Each size runs in a process of its own: a table with as many rows, a view that
joins it with another, and the change, a DataFrame. Tasks run in an executor, a separate process, so the driver's Java
does only the driver's work. Its heap may grow to `HEAP`. The program prints the most that a garbage collection left of
it, and what was left at the end.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyspark

import halfjoin as hj

SIZES = (100_000, 1_000_000, 5_000_000)
HEAP = "512m"  # of the driver; Spark does not start with much less


def main() -> None:
    """Print a line for each size."""
    print(f"MB in the driver; its Java may have {HEAP}")
    print(f"{'changed rows':>12} {'view rows changed':>18} {'Python, peak':>13} {'Java, peak':>11} {'at the end':>11}")
    for size in SIZES:
        command = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.driver", str(size)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        changed, python, peak, end = map(int, done.stdout.split()[-4:])
        print(f"{size:12,} {changed:18,} {python / 1e6:13.0f} {peak:11} {end:11}", flush=True)


def measure(size: int) -> None:
    """Print the changed rows of the view, the peak of Python in bytes, and that of Java's heap in megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "gc.log"
        session = _session(log)
        with hj.Engine(Path(folder) / "w", spark=session, runner="spark") as engine:
            engine.execute("CREATE TABLE a (k bigint PRIMARY KEY, x bigint)")
            engine.execute("CREATE TABLE b (k bigint PRIMARY KEY, y bigint)")
            engine.execute("CREATE MATERIALIZED VIEW v AS SELECT a.k, x + y AS s FROM a, b WHERE a.k = b.k")
            engine.apply({"a": session.sql(f"SELECT id AS k, id AS x FROM range({size})")})
            applied = engine.apply({"b": session.sql(f"SELECT id AS k, id AS y FROM range({size})")})
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            java = subprocess.run(["pgrep", "-P", str(os.getpid()), "java"], check=True, capture_output=True, text=True)
            subprocess.run(["jcmd", java.stdout.split()[0], "GC.run"], check=True, capture_output=True)
            left = [int(found) for found in re.findall(r"Pause .*\d+M->(\d+)M\(", log.read_text())]
            print(applied.dataframe("v").count(), peak, max(left), left[-1])
        session.stop()


def _session(log: Path) -> Any:
    """A session of a cluster with one executor in a separate process."""
    from pyspark.sql import SparkSession

    os.environ |= {
        "SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": sys.executable,
        "SPARK_WORKER_DIR": str(log.with_name("work")),
    }  # fmt: skip
    settings = {
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "8",
        "spark.driver.memory": HEAP, "spark.driver.extraJavaOptions": f"-Xlog:gc:file={log}",
        "spark.executor.memory": "3g", "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", str(Path.cwd())),
    }  # fmt: skip
    builder = SparkSession.builder.master("local-cluster[1,2,4096]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


if __name__ == "__main__":
    measure(int(sys.argv[1])) if len(sys.argv) > 1 else main()

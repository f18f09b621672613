"""Measure the engine alone in a process: seconds to load and fill, latency per batch, peak memory. Prints JSON."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import halfjoin as hj
from examples.tpch import Q3_COLUMNS, Q3_VIEWS, Changes, create_table, load
from tests.benchmarks.sizes import ROWS, SIZES


def loaded(
    tables: dict[str, Any], warehouse: Path | None = None, retain: int | None = None
) -> tuple[hj.Engine, float]:
    """An engine with Q3's tables, and the seconds to load them."""
    engine, started = hj.Engine(warehouse, retain=retain), time.perf_counter()
    for name, columns in Q3_COLUMNS.items():
        engine.execute(create_table(name, columns))
    for number, (name, rows) in enumerate(tables.items()):
        engine.apply({name: rows}, time=number)
    return engine, time.perf_counter() - started


def measure(scale: str, view: str, profile: str = "uniform") -> dict[str, Any]:
    """Measure in a fresh process, so that only the engine's memory counts."""
    command = [sys.executable, "-m", "tests.benchmarks.alone", scale, view, profile]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=root)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main(scale: str, view: str, profile: str) -> None:
    """Load, fill, then apply the batches of a profile."""
    tables = load(scale, Q3_COLUMNS, Q3_COLUMNS)
    engine, load_seconds = loaded(tables)
    started = time.perf_counter()
    engine.execute(f"CREATE MATERIALIZED VIEW q3 AS {Q3_VIEWS[view]}")
    fill_seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    changes = Changes(tables, ROWS, seed=1, hot=profile == "hot")
    medians, at = {}, 10
    for size, count in SIZES.items():
        seconds = []
        for _ in range(count):
            batch, at = changes.take(size), at + 1
            started = time.perf_counter()
            engine.apply(batch, time=at)
            seconds.append(time.perf_counter() - started)
        medians[size] = statistics.median(seconds)
    print(json.dumps({"load": load_seconds, "fill": fill_seconds, "peak": peak * 1024, "medians": medians}))


if __name__ == "__main__":
    main(*sys.argv[1:])

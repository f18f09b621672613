"""Compare a warehouse with a budget of a tenth of its data with one that fits. `python -m tests.benchmarks.budget`.

Each engine runs in a process of its own, so that each peak of memory is its own. Work goes on behind the first batches:
what lookups need often is loaded, or copied. The last batches come when nothing is left of that.
"""

from __future__ import annotations

import argparse
import json
import pickle
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

import halfjoin as hj
from examples.tpch import Q3_COLUMNS, Q3_LINES, Changes, load
from tests.benchmarks.alone import loaded
from tests.benchmarks.sizes import ROWS, SIZES

SHARE = 10  # the budget is the data divided by this
LATER = {1: 50, 100: 20, 10_000: 9}  # as SIZES, of the batches after the work behind
SETTLING = 3  # batches of 10,000 in between; after each the work behind ends


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sf", default="1", help="TPC-H scale factor")
    scale = options.parse_args().sf
    with tempfile.TemporaryDirectory(dir=".") as folder:
        warehouse = str(Path(folder) / "warehouse")
        made = _run("make", warehouse, scale, 0)
        print(
            f"TPC-H Q3's join at scale {scale}: {made['rows']:,} rows, {made['bytes'] / 1e6:.0f} MB in memory with "
            f"indexes; loaded, filled and compacted in {made['seconds']:.1f} s"
        )
        budget = made["bytes"] // SHARE
        print(f"{'':>26} {'in memory':>10} {'on disk':>10}")
        both = []
        for limit in (0, budget):
            copy = shutil.copytree(warehouse, Path(folder) / str(limit))
            both.append(_run("use", str(copy), scale, limit))
        _row("budget, MB", ["none", f"{budget / 1e6:.1f}"])
        _row("most held, MB", [f"{one['held'] / 1e6:.1f}" for one in both])
        _row("peak of process, MB", [f"{one['peak'] / 1e6:.0f}" for one in both])
        _row("of files, MB", [f"{one['files'] / 1e6:.0f}" for one in both])
        _row("without the engine, MB", [f"{one['before'] / 1e6:.0f}" for one in both])
        _row("first batch after, s", [f"{one['ready']:.2f}" for one in both])
        for when in ("first", "later"):
            for size in SIZES:
                _row(f"{when}: batch of {size}, ms", [f"{one[when][str(size)] * 1e3:.2f}" for one in both])
        _row("later: from, s", [f"{one['settled']:.1f}" for one in both])


def _row(name: str, cells: list[str]) -> None:
    print(f"{name:>26} {cells[0]:>10} {cells[1]:>10}")


def _run(what: str, warehouse: str, scale: str, budget: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.benchmarks.budget", what, warehouse, scale, str(budget)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def make(warehouse: str, scale: str) -> dict[str, Any]:
    """Load the tables, fill the view, and prepare the batches. Returns the rows, their bytes in memory, and seconds."""
    tables = load(scale, Q3_COLUMNS, Q3_COLUMNS)
    started = time.perf_counter()
    engine, _ = loaded(tables, Path(warehouse))
    with engine:
        engine.execute(f"CREATE MATERIALIZED VIEW q3 AS {Q3_LINES}")
        engine.compact()
        held = _held(engine)
    seconds = time.perf_counter() - started
    later = sum(size * count for size, count in LATER.items()) + SETTLING * 10_000
    changes = Changes(tables, ROWS + later, seed=1)
    batches = [
        {size: [_alone(changes.take(size)) for _ in range(count)] for size, count in sizes.items()}
        for sizes in (SIZES, {10_000: SETTLING}, LATER)
    ]
    (Path(warehouse).parent / "batches").write_bytes(pickle.dumps(batches))
    return {"rows": sum(table.num_rows for table in tables.values()), "bytes": held, "seconds": seconds}


def use(warehouse: str, budget: int) -> dict[str, Any]:
    """Open, and apply the batches of the uniform profile."""
    first, between, later = pickle.loads((Path(warehouse).parent / "batches").read_bytes())
    before, most, files, at = _status("VmHWM"), 0, 0, 10
    started, ready = time.perf_counter(), 0.0

    def medians(batches: dict[int, list[dict[str, pa.Table]]]) -> dict[int, float]:
        nonlocal at, most, files, ready
        found = {}
        for size, waiting in batches.items():
            seconds = []
            for batch in waiting:
                begun, at = time.perf_counter(), at + 1
                engine.apply(batch, time=at)
                seconds.append(time.perf_counter() - begun)
                ready = ready or time.perf_counter() - started
                most, files = max(most, _held(engine)), max(files, _status("RssFile"))
            found[size] = statistics.median(seconds)
        return found

    with hj.Engine(warehouse, memory=budget or None) as engine:
        soon = medians(first)
        store: Any = engine._store
        for batch in between[10_000]:
            medians({10_000: [batch]})
            store._flusher.wait()
            store._behind.wait()
        settled = time.perf_counter() - started
        answer = {"first": soon, "later": medians(later), "settled": settled}
    return {**answer, "held": most, "peak": _status("VmHWM"), "files": files, "before": before, "ready": ready}


def _held(engine: hj.Engine) -> int:
    return sum(one.row_bytes + one.index_bytes for one in engine.stats().collections)


def _alone(batch: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Copy rows out of the tables that they are slices of."""
    return {name: rows.take(pa.array(range(len(rows)))) for name, rows in batch.items()}


def _status(what: str) -> int:
    """What the system says of this process's memory, in bytes. `VmHWM` is its peak: other figures of that include the
    process that started it. `RssFile` are pages of files, such as libraries and mapped copies."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", warehouse, scale, _]:
            print(json.dumps(make(warehouse, scale)))
        case ["use", warehouse, _, budget]:
            print(json.dumps(use(warehouse, int(budget))))
        case _:
            main()

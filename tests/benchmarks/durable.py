"""Compare Q3's views in memory and in a warehouse on disk: the cost of never losing an acknowledged batch."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

import halfjoin as hj
from examples.tpch import Q3_COLUMNS, Q3_VIEWS, Changes, load
from tests.benchmarks.alone import loaded
from tests.benchmarks.sizes import ROWS, SIZES

SYNCS = 100  # of the disk, to be seen beside the figures


def durable(scale: str, view: str) -> None:
    """Of one of `Q3_VIEWS`, print the latency per batch, then the times to flush and to open again."""
    tables = load(scale, Q3_COLUMNS, Q3_COLUMNS)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "warehouse"
        print(f"{view}; one write of 4 KB made durable by this disk: {_sync_seconds(Path(folder)) * 1e3:.2f} ms")
        memory, _ = loaded(tables)
        disk, load_seconds = loaded(tables, path)
        fill_seconds = 0.0
        for engine in (memory, disk):
            started = time.perf_counter()
            engine.execute(f"CREATE MATERIALIZED VIEW q3 AS {Q3_VIEWS[view]}")
            fill_seconds = time.perf_counter() - started
        started = time.perf_counter()
        disk.flush()
        flush_seconds = time.perf_counter() - started
        print(f"load {load_seconds:.1f} s, first fill {fill_seconds:.2f} s, flush {flush_seconds:.1f} s")
        print(f"{'batch':>6} {'memory':>8} {'durable':>8} {'slowest durable':>16}")
        changes, at = Changes(tables, ROWS, seed=1), 10
        for size, count in SIZES.items():
            seconds: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(count):
                batch, at = changes.take(size), at + 1
                for engine in (memory, disk):
                    started = time.perf_counter()
                    engine.apply(batch, time=at)
                    seconds[engine is disk].append(time.perf_counter() - started)
            plain, kept = (statistics.median(seconds[where]) * 1e3 for where in (False, True))
            print(f"{size:6} {plain:8.2f} {kept:8.2f} {max(seconds[True]) * 1e3:16.1f}", flush=True)
        _print_reopening(disk, path, changes, at)


def _print_reopening(disk: hj.Engine, path: Path, changes: Changes, at: int) -> None:
    disk.close()
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    started = time.perf_counter()
    with hj.Engine(path) as engine:
        opened = time.perf_counter() - started
        engine.apply(changes.take(1), time=at + 1)
        ready = time.perf_counter() - started
    print(f"{size / 1e6:.0f} MB on disk; opened in {opened:.2f} s, first batch done {ready:.1f} s")


def _sync_seconds(folder: Path) -> float:
    seconds = []
    handle = os.open(folder / "probe", os.O_WRONLY | os.O_CREAT)
    for _ in range(SYNCS):
        started = time.perf_counter()
        os.write(handle, bytes(4096))
        os.fdatasync(handle)
        seconds.append(time.perf_counter() - started)
    os.close(handle)
    return statistics.median(seconds)

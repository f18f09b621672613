"""One contender in a process of its own: the medians of its batches and what it holds at the end, as JSON.

`python -m tests.benchmarks.peers.alone CONTENDER SCALE VIEW PROFILE`.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from examples.tpch import Q3_COLUMNS, Changes, load
from tests.benchmarks.peers.integers import Columns, Tables, checksum
from tests.benchmarks.sizes import ROWS, SIZES

Result = dict[str, Any]

OURS, PATHWAY = "halfjoin", "Pathway, 1 worker"
PYTHON = "HALFJOIN_PATHWAY"
CONTENDERS = {  # as the table names them: the class, what the environment adds
    OURS: ("ours.Halfjoin", {}),
    "halfjoin, no kernels": ("ours.Halfjoin", {"HALFJOIN_NATIVE": "0"}),
    "SQLite, by hand": ("sqlite.Sqlite", {}),
    "SQLite, with history": ("sqlite_history.SqliteHistory", {}),
    PATHWAY: ("pathway.Pathway", {}),
    "DuckDB, again": ("duck.Duckdb", {}),
    "NumPy, by hand": ("kernel.Kernel", {}),
}


class Contender(Protocol):
    """Keeps a view of `Q3_VIEWS` over tables that change. Loading the tables fills the view."""

    def prepare(self, batch: Tables) -> Any:
        """The batch in the form that this contender likes best. Not timed."""

    def apply(self, batch: Any) -> Any:
        """Change the tables and the view. Timed."""

    def contents(self) -> Columns:
        """The view's rows, as integers."""


def installed(name: str) -> bool:
    """Whether the contender can run here. Only Pathway is not among the project's dependencies, and needs an older
    pyarrow: it runs in a Python of its own, which HALFJOIN_PATHWAY names."""
    return name != PATHWAY or PYTHON in os.environ


def started(name: str, tables: Tables, view: str) -> Contender:
    """The contender of that name, loaded and filled."""
    module, _, kind = CONTENDERS[name][0].partition(".")
    made: Contender = getattr(importlib.import_module(f"tests.benchmarks.peers.{module}"), kind)(tables, view)
    return made


def raced(contender: Contender, changes: Changes, sizes: Mapping[int, int]) -> Result:
    """Apply so many batches of each size. Returns the medians in seconds, and what the contender holds."""
    medians = {}
    for size, count in sizes.items():
        seconds = []
        for _ in range(count):
            taken = changes.take(size)
            if not taken:  # little data have fewer changes of rows that reach the view
                break
            batch = contender.prepare(taken)
            began = time.perf_counter()
            contender.apply(batch)
            seconds.append(time.perf_counter() - began)
        medians[str(size)] = statistics.median(seconds)
    return {"medians": medians, "holds": checksum(contender.contents())}


def measure(name: str, scale: str, view: str, profile: str) -> Result:
    """`raced` in a fresh process."""
    python = os.environ[PYTHON] if name == PATHWAY else sys.executable
    command = [python, "-m", "tests.benchmarks.peers.alone", name, scale, view, profile]
    root, environment = Path(__file__).resolve().parents[3], os.environ | CONTENDERS[name][1]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=root, env=environment)
    answer: Result = json.loads(done.stdout.splitlines()[-1])
    return answer


def main(name: str, scale: str, view: str, profile: str) -> None:
    """Print the result."""
    tables = load(scale, Q3_COLUMNS, Q3_COLUMNS)
    changes = Changes(tables, ROWS, seed=1, hot=profile == "hot")
    print(json.dumps(raced(started(name, tables, view), changes, SIZES)))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""halfjoin beside others that keep the same views: one table, everything in one run.

`python -m tests.benchmarks.peers --sf 1`. The views are the join of TPC-H's query 3 (`lines`) and its aggregate
(`groups`). Each contender runs in a process of its own, one after the other, with the same tables and batches: inserts
and deletes over three tables (`examples.tpch.Changes`). Figures are medians in milliseconds, from the batch in the form
that the contender takes to the view's new contents. Beside them stand times halfjoin's: 2.00x took twice as long. At
the end of each run all must hold the same rows. The last table is halfjoin's alone: a batch and its inverse in turn.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from examples.tpch import Q3_COLUMNS, Changes, load
from tests.benchmarks.peers.alone import CONTENDERS, OURS, PATHWAY, PYTHON, Result, installed, measure
from tests.benchmarks.peers.churn import BATCH, ENDS, PAIRS, Churn, churned
from tests.benchmarks.sizes import ROWS, SIZES

VIEWS, PROFILES = ("lines", "groups"), ("uniform", "hot")


def main() -> None:
    """Print the tables. Ends with status 1 if contenders do not hold the same rows."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sf", default="1", help="TPC-H scale factor")
    scale = options.parse_args().sf
    names = [name for name in CONTENDERS if installed(name)]
    print(f"TPC-H's query 3 at scale {scale}; medians in ms, and times halfjoin's")
    print(f"{'view':7} {'profile':8} {'contender':22}" + "".join(f"{f'batch of {size:,}':>18}" for size in SIZES))
    for view in VIEWS:
        for profile in PROFILES:
            _race(names, scale, view, profile)
    if PATHWAY not in names:
        print(f"Pathway's lines are missing: {PYTHON} names no Python that has it; `make bench` makes one if it can")
    _churn(scale)


def _race(names: list[str], scale: str, view: str, profile: str) -> None:
    found: dict[str, Result] = {}
    for name in names:
        found[name] = measure(name, scale, view, profile)
        print(f"{view:7} {profile:8} {name:22}" + "".join(_cells(found[name], found[OURS])), flush=True)
    holds = {one["holds"] for one in found.values()}
    if len(holds) > 1:
        raise SystemExit("they differ: " + "; ".join(f"{name} holds {one['holds']}" for name, one in found.items()))
    print(f"{view:7} {profile:8} all hold {holds.pop()}")


def _cells(theirs: Result, ours: Result) -> Iterator[str]:
    for size in SIZES:
        if str(size) in theirs["medians"]:
            seconds = theirs["medians"][str(size)]
            yield f"{seconds * 1e3:10.2f}{seconds / ours['medians'][str(size)]:7.2f}x"


def _churn(scale: str) -> None:
    print(
        f"\nA batch of {BATCH} and its inverse, {PAIRS} times; ms of both, medians of the first {ENDS} and last {ENDS}"
    )
    print(
        f"{'view':7} {'profile':8} {'first':>7} {'last':>7} {'rows, entries: before, after, compacted':>42} {'MB':>24}"
    )
    tables = load(scale, Q3_COLUMNS, Q3_COLUMNS)
    for view in VIEWS:
        for profile in PROFILES:
            churn = churned(tables, view, Changes(tables, ROWS, seed=1, hot=profile == "hot"))
            print(f"{view:7} {profile:8} {_churn_cells(churn)}", flush=True)


def _churn_cells(churn: Churn) -> str:
    first, last = churn.ends()
    rows = " -> ".join(f"{held.updates + held.entries:,}" for held in churn[1:])
    size = " -> ".join(f"{held.bytes / 1e6:.2f}" for held in churn[1:])
    return f"{first * 1e3:7.2f} {last * 1e3:7.2f} {rows:>42} {size:>24}"


if __name__ == "__main__":
    main()

"""Measure the memory of views beyond their inputs: 1 and 10 joins of three tables. `python -m tests.benchmarks.memory`.

Pairwise joins keep every intermediate result, and a delta query keeps none. There are only the views' own rows and the
indexes on the inputs, which the views share.
"""

from __future__ import annotations

import argparse

from examples.tpch import Q3_COLUMNS, Q3_LINES, SEGMENTS, load
from tests.benchmarks.alone import loaded


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sf", default="0.1", help="TPC-H scale factor")
    scale = options.parse_args().sf
    tables = load(scale, Q3_COLUMNS, Q3_COLUMNS)
    engine, _ = loaded(tables)
    print(f"Q3's join at scale {scale}: {sum(rows.num_rows for rows in tables.values()):,} rows of input")
    header = f"{'views':>5} {'records beyond inputs and views':>32} {'arrangements':>13} {'index bytes':>12}"
    print(f"{header} {'rows of the views':>18}")
    for views in (1, 10):
        for number in range(1, views + 1):
            segment, day = SEGMENTS[number % 5], 5 + number
            sql = Q3_LINES.replace("BUILDING", segment).replace("1995-03-15", f"1995-03-{day:02}")
            engine.execute(f"CREATE MATERIALIZED VIEW IF NOT EXISTS q3_{number} AS {sql}")
        stats = engine.stats()
        held = {c.name: c.updates for c in stats.collections}
        shown = sum(engine.read(f"q3_{n}").num_rows for n in range(1, views + 1))
        beyond = sum(held.values()) - sum(rows.num_rows for rows in tables.values()) - shown
        size = sum(a.bytes for a in stats.arrangements)
        print(f"{views:5} {beyond:32,} {len(stats.arrangements):13} {size:12,} {shown:18,}")
    print(f"\n{'arrangement':34} {'entries':>10} {'bytes each':>10}  shared by")
    for a in stats.arrangements:
        print(f"{a.name:34} {a.rows:10,} {a.bytes / max(a.rows, 1):10.1f}  {len(a.users)}")
    print(f"\n{'collection':34} {'rows':>10} {'bytes each':>10}")
    for c in stats.collections[:3]:
        print(f"{c.name:34} {c.updates:10,} {c.row_bytes / max(c.updates, 1):10.1f}")


if __name__ == "__main__":
    main()

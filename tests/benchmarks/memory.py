"""Measure the memory of views beyond their inputs: 1 and 10 joins of three tables. `python -m tests.benchmarks.memory`.

Pairwise joins keep every intermediate result, and a delta query keeps none. There are only the views' own rows and the
indexes on the inputs, which the views share. These have entries only for the rows that the views want. Each table shows
them beside the same indexes made by an engine that gives every row an entry.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

import halfjoin as hj
from examples.tpch import Q3_COLUMNS, Q3_LINES, SEGMENTS, load
from halfjoin.engine.arrange import partial
from tests.benchmarks.alone import loaded

_DAY = 86_400_000  # milliseconds
_EVENTS = 1_000  # a day
_USERS = 1_000


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sf", default="0.1", help="TPC-H scale factor")
    scale = options.parse_args().sf
    tables = load(scale, Q3_COLUMNS, Q3_COLUMNS)
    inputs = sum(rows.num_rows for rows in tables.values())
    print(f"Q3's join at scale {scale}: {inputs:,} rows of input")
    both = [_engine(lambda: loaded(tables)[0], whole=whole) for whole in (True, False)]
    for views in (1, 10):
        for engine, whole in zip(both, (True, False), strict=True):
            with _entries_for_all(whole):
                _q3(engine, views)
        stats = both[1].stats()
        shown = sum(both[1].read(f"q3_{number}").num_rows for number in range(1, views + 1))
        beyond = sum(c.updates for c in stats.collections) - inputs - shown
        print(f"\n{views} views: {shown:,} rows, {beyond:,} records beyond them and the inputs")
        _compare(*both)
    print(f"\n{'collection':34} {'rows':>10} {'bytes each':>10}")
    for c in both[1].stats().collections[:3]:
        print(f"{c.name:34} {c.updates:10,} {c.row_bytes / max(c.updates, 1):10.1f}")
    print(f"\nEvents of ten days of a year: a batch of {_EVENTS:,} and a person a day; no call of compact")
    both = [_engine(_year, whole=whole) for whole in (True, False)]
    _compare(*both)
    print("\nThe same after compact")
    for engine, whole in zip(both, (True, False), strict=True):
        with _entries_for_all(whole):
            engine.compact()
    _compare(*both)


@contextmanager
def _entries_for_all(whole: bool) -> Iterator[None]:
    """`whole`: no index counts as large, so that each has entries for all rows."""
    least = partial.LARGE
    partial.LARGE = 1 << 60 if whole else least
    try:
        yield
    finally:
        partial.LARGE = least


def _engine(make: Callable[[], hj.Engine], *, whole: bool) -> hj.Engine:
    with _entries_for_all(whole):
        return make()


def _q3(engine: hj.Engine, views: int) -> None:
    for number in range(1, views + 1):
        segment, day = SEGMENTS[number % 5], 5 + number
        sql = Q3_LINES.replace("BUILDING", segment).replace("1995-03-15", f"1995-03-{day:02}")
        engine.execute(f"CREATE MATERIALIZED VIEW IF NOT EXISTS q3_{number} AS {sql}")


def _year() -> hj.Engine:
    engine, random = hj.Engine(clock="own"), np.random.default_rng(1)
    engine.execute("CREATE TABLE person (id bigint PRIMARY KEY, name text);"
                   "CREATE TABLE event (person bigint, ts timestamp);"
                   "CREATE MATERIALIZED VIEW recent AS SELECT id, name, ts FROM person JOIN event ON person = id "
                   "WHERE mz_now() < ts + interval '10 days'")  # fmt: skip
    ids = np.arange(_USERS)
    engine.apply({"person": pa.table({"id": ids, "name": [f"person {one}" for one in ids]})}, time=0)
    for day in range(365):
        ts = np.sort(random.integers(0, _DAY, _EVENTS)) + day * _DAY
        events = {"person": random.integers(0, _USERS, _EVENTS), "ts": ts.astype("datetime64[ms]")}
        person = {"id": _USERS + day, "name": "new"}  # one row that looks the events up
        engine.apply({"event": pa.table(events), "person": [person]}, time=(day + 1) * _DAY)
    engine.advance(366 * _DAY)
    return engine


def _compare(before: hj.Engine, after: hj.Engine) -> None:
    print(f"{'arrangement':34} {'for all rows':>24} {'for rows wanted':>24}  shared by  only rows")
    there, wanted = before.stats().arrangements, after.stats().arrangements
    for one, other in zip(there, wanted, strict=True):
        sizes = [f"{size.rows:10,} {size.bytes:11,} B" for size in (one, other)]
        print(f"{one.name:34} {sizes[0]:>24} {sizes[1]:>24}  {len(other.users):9}  {other.only}".rstrip())
    sums = [f"{sum(a.rows for a in all_):10,} {sum(a.bytes for a in all_):11,} B" for all_ in (there, wanted)]
    print(f"{'all':34} {sums[0]:>24} {sums[1]:>24}")


if __name__ == "__main__":
    main()

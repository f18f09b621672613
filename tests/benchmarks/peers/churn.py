"""A batch and its inverse, again and again: neither what a pair costs nor what the engine holds may grow."""

from __future__ import annotations

import statistics
import time
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

import halfjoin as hj
from examples.tpch import Changes
from tests.benchmarks.peers.integers import Tables
from tests.benchmarks.peers.ours import Halfjoin

PAIRS, BATCH = 50, 100
ENDS = 10  # so many pairs at each end are told as one median


class Held(NamedTuple):
    """What an engine holds: updates of tables, views and nodes, entries of arrangements, and the bytes of both."""

    updates: int
    entries: int
    bytes: int


class Churn(NamedTuple):
    """The seconds of each pair, and what is held before all of them, after them, and when that is compacted."""

    seconds: list[float]
    before: Held
    after: Held
    compacted: Held

    def ends(self) -> tuple[float, float]:
        """The medians of the first pairs and of the last, in seconds."""
        return statistics.median(self.seconds[:ENDS]), statistics.median(self.seconds[-ENDS:])


def churned(tables: Tables, view: str, changes: Changes) -> Churn:
    """Apply the next batch and its inverse `PAIRS` times, after once that does not count. The engine retains no
    history, which would be told as growth."""
    ours, batch = Halfjoin(tables, view, retain=0), changes.take(BATCH)
    inverse = {name: _negated(rows) for name, rows in batch.items()}
    pair, seconds = (batch, inverse), []
    for each in pair:
        ours.apply(each)
    ours.engine.compact()
    before = _held(ours.engine)
    for _ in range(PAIRS):
        began = time.perf_counter()
        for each in pair:
            ours.apply(each)
        seconds.append(time.perf_counter() - began)
    after = _held(ours.engine)
    ours.engine.compact()
    return Churn(seconds, before, after, _held(ours.engine))


def _negated(rows: pa.Table) -> pa.Table:
    """The rows that take these back."""
    at = rows.schema.get_field_index("__diff")
    return rows.set_column(at, "__diff", pc.negate(rows["__diff"]))


def _held(engine: hj.Engine) -> Held:
    stats = engine.stats()
    return Held(
        sum(one.updates for one in stats.collections),
        sum(one.rows for one in stats.arrangements),
        sum(one.row_bytes + one.index_bytes for one in stats.collections),
    )

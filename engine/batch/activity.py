"""What the last batches did, for people who watch an engine: rows in, rows out of each node, seconds."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

_KEPT = 1000  # batches
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Work(NamedTuple):
    """What a node did in a batch: the rows of its output, the seconds that it took, when it began (`perf_counter`), and
    the rows that its half-joins found in this process, of all steps of all paths. Of a node of a recursive query the
    seconds are its own, of all rounds, and it began when the query did."""

    rows: int
    seconds: float
    began: float = 0.0
    found: int = 0


@dataclass(frozen=True, slots=True)
class BatchWork:
    """One batch. `at`: when it ended, in seconds since 1970. `tables`: how many updates each table got. `nodes`: the
    work of each view and node that was due, by name, in the order in which they ran."""

    at: float
    upper: int
    runner: str
    seconds: float
    tables: Mapping[str, int]
    nodes: Mapping[str, Work]


@dataclass(slots=True)
class Activity:
    """The last 1,000 batches of this engine, and how many batches, rows and seconds there were since it was opened.

    `within`: how many batches took at most each of `BOUNDS`, and more than the one before it; at last, those beyond.
    """

    recent: deque[BatchWork] = field(default_factory=lambda: deque(maxlen=_KEPT))
    batches: int = 0
    rows: int = 0
    seconds: float = 0.0
    within: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))

    def copy(self) -> Activity:
        """What there is now; later batches do not change it."""
        return Activity(self.recent.copy(), self.batches, self.rows, self.seconds, self.within.copy())

    def add(
        self, upper: int, runner: str, seconds: float, tables: Mapping[str, int], nodes: Mapping[str, Work]
    ) -> None:
        """Note a batch that has just ended."""
        self.recent.append(BatchWork(time.time(), upper, runner, seconds, tables, nodes))
        self.batches += 1
        self.rows += sum(tables.values())
        self.seconds += seconds
        self.within[bisect_left(BOUNDS, seconds)] += 1

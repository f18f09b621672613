"""What the last batches did, for people who watch an engine: rows in, rows out of each node, seconds."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

_KEPT = 1000  # batches


class Work(NamedTuple):
    """What a node did in a batch: the rows of its output, and the seconds that it took."""

    rows: int
    seconds: float


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
    """The last 1,000 batches of this engine, and how many batches and rows there were since it was opened."""

    recent: deque[BatchWork] = field(default_factory=lambda: deque(maxlen=_KEPT))
    batches: int = 0
    rows: int = 0

    def copy(self) -> Activity:
        """What there is now; later batches do not change it."""
        return Activity(self.recent.copy(), self.batches, self.rows)

    def add(
        self, upper: int, runner: str, seconds: float, tables: Mapping[str, int], nodes: Mapping[str, Work]
    ) -> None:
        """Note a batch that has just ended."""
        self.recent.append(BatchWork(time.time(), upper, runner, seconds, tables, nodes))
        self.batches += 1
        self.rows += sum(tables.values())

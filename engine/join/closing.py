"""What a batch closes, as joins and reduces ask for it, and where they look rows up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from halfjoin.engine.arrange.part import Part
from halfjoin.engine.updates.updates import MINIMUM, Updates
from halfjoin.planner.plan import Version

# The runs of a collection before or after the batch.
RunsOf = Callable[[str, Version], Sequence[Part]]


@dataclass(slots=True)
class Found:
    """How many rows lookups have found, for people who watch an engine."""

    rows: int = 0


class Closing(NamedTuple):
    """What a batch closes: times below `before` are closed before it, times below `after` after it.

    Updates with times below `netted` may be added up. `updates` gives a collection's updates with times that the batch
    closes, whenever they arrived. `failing` says whether a view or node has errors at the last time closed before it.
    `found` counts what half-joins find in this process. No change that looks rows up has a time below `begins`.
    `at_hand` says whether the runs of a collection are known to be there without opening or loading anything.
    `share` is that of a change which looks rows up at a time.
    """

    netted: int
    before: int
    after: int
    updates: Callable[[str], Updates]
    failing: Callable[[str], bool]
    found: Found = Found()  # one that nobody reads
    begins: int = MINIMUM
    at_hand: Callable[[str], bool] = lambda _: False
    share: float = 1.0

"""A collection: a table's or view's whole history of updates, as a few runs with shared arrangements on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from halfjoin.engine.consolidate import cancel, consolidate
from halfjoin.engine.keys import key_columns
from halfjoin.engine.run import KeyColumns, Run, merge_runs
from halfjoin.engine.tables import Registry
from halfjoin.engine.updates import Updates, concat, empty
from halfjoin.planner.plan import ArrangementKey

# A run is merged into the one before unless that is this many times larger: few runs to look up in, and each row is
# copied a logarithmic number of times.
GROWTH = 8


class User(NamedTuple):
    """Who keeps an arrangement: a view, an index, a primary key, a query that is being answered."""

    kind: Literal["view", "index", "primary key of", "query"]
    name: str

    def __str__(self) -> str:
        return self.name if self.kind in ("view", "query") else f"{self.kind} {self.name}"


@dataclass(slots=True)
class Arrangement:
    """Who shares an arrangement, and how its keys are computed."""

    columns: KeyColumns
    users: dict[User, None] = field(default_factory=dict)  # in the order in which they came


class Stored(Protocol):
    """A collection's updates on disk, which come into memory when first needed."""

    rows: int
    latest: int  # of their times

    def load(self) -> Sequence[Run]:
        """All the updates, as of now."""

    def grow(self, run: Run) -> None:
        """Take note of a run that is on disk too by now."""


@dataclass(slots=True)
class Collection:
    """Rows stored once, in runs from oldest to newest; an arrangement adds an index to each run, no rows.

    Runs are replaced, never changed, so whoever holds one sees a consistent state. They are either all `held` in memory
    or all `stored`; asking for `runs` loads them.
    """

    name: str
    schema: Mapping[str, pa.DataType]
    retain: int  # time units of history kept
    since: int = 0
    held: tuple[Run, ...] = ()
    arrangements: dict[ArrangementKey, Arrangement] = field(default_factory=dict)
    stored: Stored | None = None

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, loaded if they are not in memory."""
        if self.stored is not None:
            self.held, self.stored = tuple(self.stored.load()), None
        return self.held

    def __len__(self) -> int:
        """Updates, in memory or not."""
        return sum(map(len, self.held)) if self.stored is None else self.stored.rows

    def share(self, key: ArrangementKey, user: User, registry: Registry) -> None:
        """Use an arrangement, made if it is not there; an index is built when first looked up."""
        if key not in self.arrangements:
            self.arrangements[key] = Arrangement(key_columns(key, registry))
        self.arrangements[key].users[user] = None

    def build(self, key: ArrangementKey) -> None:
        """Build a shared arrangement's indexes now."""
        for run in self.runs:
            run.index(key, self.arrangements[key].columns)

    def release(self, user: User) -> None:
        """Use no arrangement any longer; one without users is dropped with its indexes."""
        for key, arrangement in list(self.arrangements.items()):
            arrangement.users.pop(user, None)
            if not arrangement.users:
                del self.arrangements[key]
                for run in self.held:
                    run.indexes.pop(key, None)

    def publish(self, run: Run) -> None:
        """Add a batch's run: the step from "before" to "after"."""
        if self.stored is not None:
            self.stored.grow(run)
        elif len(run):
            self.held = (*self.held, run)

    def advance(self, upper: int) -> None:
        """Let history older than `retain` go, the next time its runs are merged."""
        self.since = max(self.since, upper - max(self.retain, 1))
        for run in self.held:
            run.close(upper)

    def tidy(self, upper: int) -> None:
        """Merge the newest runs until each is much larger than the next."""
        runs = list(self.held)
        first = len(runs) - 1
        size = len(runs[first]) if runs else 0
        while first > 0 and len(runs[first - 1]) < GROWTH * size:
            first -= 1
            size += len(runs[first])
        if first < len(runs) - 1:
            self._replace(first, upper, final=False)

    def compact(self, upper: int) -> None:
        """Merge everything into one run."""
        if self.held:
            self._replace(0, upper, final=True)

    def _replace(self, first: int, upper: int, *, final: bool) -> None:
        live = {key: arrangement.columns for key, arrangement in self.arrangements.items()}
        merged = merge_runs(self.held[first:], self.since, upper, live, final=final)
        self.held = (*self.held[:first], merged) if len(merged) else self.held[:first]

    def as_of(self, time: int, *, distinct: bool) -> Updates:
        """Contents: what the updates at or before `time` add up to. With `distinct` one row per distinct row.

        The result's times are without meaning.
        """
        parts = [run.updates.filter(run.updates.time <= time) for run in self.runs]
        if not parts:
            return empty(self.schema)
        found = concat(parts)
        return consolidate(found, by_time=False) if distinct else cancel(found, by_time=False)

    def closing(self, low: int, high: int, staged: Run | None = None) -> Updates:
        """The consolidated updates that close when upper goes from `low` to `high`, those of a staged run included."""
        runs = self.held if self.stored is not None and self.stored.latest < low else self.runs
        parts = [part for run in runs if len(part := run.closing(low, high))]
        new = empty(self.schema) if staged is None else staged.updates.filter(staged.updates.time < high)
        return consolidate(concat([*parts, new])) if parts else new  # a staged run is consolidated

    def changes(self, low: int, high: int) -> Updates:
        """The consolidated updates with times in `[low, high)`, for any times at or above since."""
        parts = [run.updates.filter((low <= run.updates.time) & (run.updates.time < high)) for run in self.runs]
        parts = [part for part in parts if len(part)]
        if not parts:
            return empty(self.schema)
        found = consolidate(concat(parts))
        return found.take(np.argsort(found.time, kind="stable"))

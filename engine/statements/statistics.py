"""What a plan is made on: the sizes of collections, and how many distinct keys arrangements have or would have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.batch.state import ROW_BYTES, State
from halfjoin.engine.spark.runners import BULK
from halfjoin.engine.updates.codes import codes
from halfjoin.engine.updates.updates import Ints, Updates
from halfjoin.planner.plan import ArrangementKey, Node
from halfjoin.sql.expr import columns_of

_SAMPLE = 1 << 16  # rows whose keys are counted


@dataclass(frozen=True, slots=True)
class Statistics:
    """The planner's questions (`planner.facts.Facts`), answered for a plan that is to be made.

    Whether an arrangement exists decides nothing here: the keys of one that does not are counted, too. Else the plan
    of a view would depend on what was created before it.
    """

    state: State

    def rows(self, collection: str) -> int:
        """Rows that are there, as far as that is known: of rows in files every update counts."""
        if not self.state.has(collection):  # a node that is to be made
            return 0
        found = self.state.collection(collection)
        if found.cold is not None:
            return found.cold.rows
        counts = (sum(map(_count, part.loaded(0))) if part.in_memory else len(part) for part in found.held)
        return sum(counts)

    def unique_keys(self, collection: str) -> tuple[tuple[str, ...], ...]:
        """A table's primary key."""
        return self.state.unique_keys(collection)

    def incarnation(self, collection: str) -> str:
        """What tells a table or view apart from its namesakes."""
        return self.state.incarnation(collection)

    def node(self, name: str) -> Node | None:
        """A node that is kept already, with its own plan."""
        return self.state.node(name)

    def node_users(self, name: str) -> tuple[str, ...]:
        """Views that share a node."""
        return self.state.node_users(name)

    def users(self, key: ArrangementKey) -> tuple[str, ...] | None:
        """Who shares an existing arrangement."""
        return self.state.users(key)

    def distinct(self, key: ArrangementKey) -> int | None:
        """Distinct keys of the rows in the largest run, if that has most of them; None where it stays in files.

        A collection that was not needed yet is opened, if memory takes it: whoever fills a view opens it anyway.
        """
        if not self.state.has(key.collection):
            return None
        collection = self.state.collection(key.collection)
        cold = collection.cold
        few = cold is not None and cold.rows < BULK and self.state.memory.allows(cold.rows * ROW_BYTES)
        parts = collection.runs if few else collection.held
        runs = [run for part in parts if part.in_memory for run in part.loaded(0)]
        run = max(runs, key=len, default=None)
        if run is None or 2 * len(run) < len(collection) or not _count(run):
            return None
        if key in run.indexes:
            return run.indexes[key].distinct()
        if key.through is not None:  # a function, perhaps the user's, is not called to see what it makes
            return None
        names = sorted(frozenset().union(*map(columns_of, key.keys)))
        some, share = _sample(run, names)
        arrays, rows = key_columns(key, self.state.functions)(some)
        if rows is not None and not len(rows):  # the key fails for all of them
            return None
        return _distinct(codes(arrays, len(some) if rows is None else len(rows)), share)


def _count(run: Run) -> int:
    """Rows of a run that are there."""
    return len(run) if run.net is None or run.net.there is None else int(np.count_nonzero(run.net.there))


def _sample(run: Run, names: list[str]) -> tuple[Updates, float]:
    """Rows that are there, the same ones each time, and how many of those there are stand behind each.

    They are drawn, not taken at equal distances, which rows in a regular order would answer to.
    """
    there = None if run.net is None or run.net.there is None else np.flatnonzero(run.net.there)
    count = len(run) if there is None else len(there)
    updates = run.updates.select(names)
    if count <= _SAMPLE:
        return updates if there is None else updates.take(there), 1.0
    drawn = np.unique(np.random.default_rng(0).integers(0, count, _SAMPLE))
    return updates.take(drawn if there is None else there[drawn]), count / len(drawn)


def _distinct(values: Ints, share: float) -> int:
    """The distinct values of all rows, guessed from those of a sample, of which one row stands for `share` rows.

    Values that come once in the sample tell how many have not come at all (the first-order jackknife of Haas and
    Stokes, 1998): where all come once all rows are taken to be distinct, where none does the sample has all values.
    """
    counts = np.unique(values, return_counts=True)[1]
    once = int(np.count_nonzero(counts == 1))
    return max(1, round(len(counts) / (1 - (1 - 1 / share) * once / len(values))))

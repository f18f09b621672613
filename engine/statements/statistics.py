"""The figures for planning: the sizes of collections, and the distinct keys that arrangements have or would have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.batch.state import ROW_BYTES, State
from halfjoin.engine.spark.runners import BULK
from halfjoin.engine.updates.codes import codes
from halfjoin.engine.updates.updates import Ints, Updates
from halfjoin.planner.facts import Kept
from halfjoin.planner.plan import ArrangementKey, Node
from halfjoin.sql.expr import columns_of

_SAMPLE = 1 << 16  # the most rows whose keys are counted


@dataclass(frozen=True, slots=True)
class Statistics:
    """Answers the planner's questions (`planner.facts.Facts`) for a new plan.

    Keys are counted whether or not the arrangement exists. Otherwise a view's plan would depend on what was created
    before it.
    """

    state: State

    def rows(self, collection: str) -> int:
        """Live rows, as far as they are known. In files every update counts as a row."""
        if not self.state.has(collection):  # a node that does not exist yet
            return 0
        found = self.state.collection(collection)
        if found.cold is not None:
            return found.cold.rows
        counts = (sum(map(_count, part.loaded(0))) if part.in_memory else len(part) for part in found.held)
        return sum(counts)

    def unique_keys(self, collection: str) -> tuple[tuple[str, ...], ...]:
        """The sets of columns that identify a row of a table."""
        return self.state.unique_keys(collection)

    def values(self, collection: str, column: str) -> None:
        """None: conditions change less often than values, and a view's plan outlives these."""

    def incarnation(self, collection: str) -> str:
        """The id that tells a table or view apart from others of its name."""
        return self.state.incarnation(collection)

    def node_name(self, fingerprint: str) -> str:
        """The name of the node with that fingerprint."""
        return self.state.node_name(fingerprint)

    def node(self, name: str) -> Node | None:
        """The node of that name, if it is kept already."""
        return self.state.node(name)

    def node_users(self, name: str) -> tuple[str, ...]:
        """The views that share a node."""
        return self.state.node_users(name)

    def kept(self, name: str) -> Kept | None:
        """What an existing node keeps."""
        return self.state.kept(name)

    def users(self, key: ArrangementKey) -> tuple[str, ...] | None:
        """Who shares an arrangement; None if it does not exist."""
        return self.state.users(key)

    def distinct(self, key: ArrangementKey) -> int | None:
        """Distinct keys of the live rows in the largest run; None if that run is in files or has less than half of all.

        A small cold collection is opened if it fits in memory; filling a view would open it anyway.
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
        if key in run.indexes and run.indexes[key].partial is None:
            return run.indexes[key].distinct()
        if key.through is not None:  # functions, which may be the user's, are not called only to count
            return None
        names = sorted(frozenset().union(*map(columns_of, key.keys)))
        some, share = _sample(run, names)
        arrays, rows = key_columns(key, self.state.functions)(some)
        if rows is not None and not len(rows):  # the key fails for all rows
            return None
        return _distinct(codes(arrays, len(some) if rows is None else len(rows)), share)


def _count(run: Run) -> int:
    """The live rows of a run."""
    return len(run) if run.net is None or run.net.there is None else int(np.count_nonzero(run.net.there))


def _sample(run: Run, names: list[str]) -> tuple[Updates, float]:
    """A sample of the live rows, the same on each call, and how many live rows each sampled row stands for.

    The rows are drawn at random. Rows at equal distances would be a bad sample of rows in a regular order.
    """
    there = None if run.net is None or run.net.there is None else np.flatnonzero(run.net.there)
    count = len(run) if there is None else len(there)
    updates = run.updates.select(names)
    if count <= _SAMPLE:
        return updates if there is None else updates.take(there), 1.0
    drawn = np.unique(np.random.default_rng(0).integers(0, count, _SAMPLE))
    return updates.take(drawn if there is None else there[drawn]), count / len(drawn)


def _distinct(values: Ints, share: float) -> int:
    """The distinct values of all rows, estimated from a sample in which one row stands for `share` rows.

    Values that occur once in the sample tell how many values it misses (the first-order jackknife of Haas and Stokes,
    1998). If every value occurs once, all rows are taken to be distinct; if none does, the sample has all values.
    """
    counts = np.unique(values, return_counts=True)[1]
    once = int(np.count_nonzero(counts == 1))
    return max(1, round(len(counts) / (1 - (1 - 1 / share) * once / len(values))))

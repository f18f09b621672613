"""Partners that kernels find and gather in all runs of an arrangement at once, with a few calls for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.index import find_all
from halfjoin.engine.arrange.run import KeyColumns, Run
from halfjoin.engine.kernels import native
from halfjoin.engine.scalar.threshold import Threshold
from halfjoin.engine.scalar.values import mask_of
from halfjoin.engine.updates.updates import Ints, Mask, Positions, Updates
from halfjoin.planner.plan import ArrangementKey

Fetch = tuple[tuple[str, str], ...]  # columns of the collection, and their names in the stream


class Partners(NamedTuple):
    """Pairs of a position in the stream and a row: `counts[i]` pairs with rows of `runs[i]`, run after run."""

    positions: Ints
    runs: list[Run]
    rows: Positions
    counts: list[int]
    exact: bool  # whether equal codes mean equal keys in all these runs

    def __len__(self) -> int:
        return len(self.rows)

    def apart(self) -> Iterator[tuple[Ints, Run, Positions]]:
        """The pairs of each run."""
        start = 0
        for run, count in zip(self.runs, self.counts, strict=True):
            stop = start + count
            yield self.positions[start:stop], run, self.rows[start:stop]
            start = stop

    def filter(self, mask: Mask) -> Partners:
        """The pairs where the mask is true."""
        if mask.all():
            return self
        starts = np.cumsum([0, *self.counts[:-1]])
        left = np.add.reduceat(mask, starts, dtype=np.int64).tolist()
        some = [(run, count) for run, count in zip(self.runs, left, strict=True) if count]
        runs, counts = [run for run, _ in some], [count for _, count in some]
        return Partners(self.positions[mask], runs, self.rows[mask], counts, self.exact)

    def passing(self, mask: pa.Array) -> Partners:
        """The pairs where a condition is true, not false or NULL."""
        made = native.passing(mask, self.positions, self.rows, self.counts)
        return self.filter(mask_of(mask)) if made is None else self._left(*made)

    def beyond(self, column: str, threshold: Threshold) -> Partners | None:
        """The pairs whose partner meets a threshold in one of the collection's columns. None: there is no kernel."""
        made = native.meeting(self.sources([column]), threshold.constant, threshold.allowed, self.positions, self.rows,
                              self.counts)  # fmt: skip
        return None if made is None else self._left(*made)

    def _left(self, positions: Ints, rows: Positions, counts: list[int]) -> Partners:
        """The pairs that a kernel has left."""
        if counts is self.counts:
            return self
        if 0 not in counts:
            return Partners(positions, self.runs, rows, counts, self.exact)
        runs = [run for run, count in zip(self.runs, counts, strict=True) if count]
        return Partners(positions, runs, rows, [count for count in counts if count], self.exact)

    def sources(self, names: Sequence[str]) -> list[list[pa.Array]]:
        """These columns of each run."""
        return [[columns[name] for name in names] for columns in [run.updates.columns for run in self.runs]]

    def columns(self, fetch: Fetch) -> dict[str, pa.Array] | None:
        """The partners' columns. None: there is no kernel for some type."""
        if not fetch:
            return {}
        made = native.gather(self.sources([name for name, _ in fetch]), self.rows, self.counts)
        return None if made is None else dict(zip([name for _, name in fetch], made, strict=True))

    def weights(self, closed: int) -> tuple[Ints, Ints] | None:
        """The partners' times and diffs. Updates below `closed` are added up, where a run has netted them."""
        return native.weights([run.weights(closed) for run in self.runs], self.rows, self.counts)

    def joined(self, stream: Updates, names: Sequence[str], fetch: Fetch, closed: int) -> Updates | None:
        """The stream's columns `names` with the partners' columns, by one call. None: there is no kernel."""
        sources, weights = self.sources([name for name, _ in fetch]), [run.weights(closed) for run in self.runs]
        made = native.joined([stream.columns[name] for name in names], self.positions, stream.time, stream.diff,
                             sources, weights, self.rows, self.counts)  # fmt: skip
        if made is None:
            return None
        left, right, time, diff = made
        columns = dict(zip(names, left, strict=True))
        columns.update(zip([name for _, name in fetch], right, strict=True))
        return Updates(columns, time, diff)


def search(
    probes: Ints, runs: Sequence[Run], key: ArrangementKey, columns: KeyColumns, closed: int
) -> Partners | None:
    """The rows of all runs whose codes equal a probe. None: without kernels, or if they are too many for one piece."""
    entries = [(run, index) for run in runs for index in run.entries(key, columns, closed)]
    found = find_all(probes, [index for _, index in entries])
    if found is None:
        return None
    positions, rows, counts = found
    some = [(run, index.exact, count) for (run, index), count in zip(entries, counts, strict=True) if count]
    exact = not [1 for _, own, _ in some if not own]
    return Partners(positions, [run for run, _, _ in some], rows, [count for _, _, count in some], exact)
